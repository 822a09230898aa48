package host

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"google.golang.org/grpc"
)

// Config says how one plugin is run. Zero values mean the defaults named here.
type Config struct {
	// Name is the sink's name as users type it: [a-z0-9-]+.
	Name string
	// AnyName takes the sink by whatever name it calls itself, and Name only for messages. For tests of sinks.
	AnyName bool
	// Path is the plugin's file: absolute, regular, executable, no symbolic link.
	Path string
	// SHA256 is the expected checksum in hex, from plugins.lock. Empty only with Unlocked.
	SHA256 string
	// Dir is a directory of the host's own in which every running plugin gets a private one, removed at its stop. Default: below os.TempDir.
	Dir string
	// Register registers the services of signet.host.v1 that the plugin may call. Nil: none.
	Register func(grpc.ServiceRegistrar)
	// Logger takes what the plugin logs. Default: slog.Default.
	Logger *slog.Logger
	// AllowEnv names variables that are passed on besides PATH, the proxy variables and SIGNET_FAILPOINTS. Never name one that holds a secret.
	AllowEnv []string
	// AllowRead names files and directories that a confined plugin may read besides the system's and the directory of Path: an interpreter's
	// packages, for instance. Never name one that holds a secret.
	AllowRead []string
	// Isolation is how the process is kept from the host. Default: the best that the system allows.
	Isolation Isolation
	// Unlocked allows a plugin without a checksum. For development.
	Unlocked bool
	// StartTimeout bounds the time from exec to the first answer. Default: 20 s.
	StartTimeout time.Duration
	// DrainTimeout bounds how long Stop waits for running calls. Default: 30 s.
	DrainTimeout time.Duration
	// DialOptions and ServerOptions come before the host's own, for calls of the plugin and of what Register registers: to measure and trace them.
	DialOptions   []grpc.DialOption
	ServerOptions []grpc.ServerOption
	// Deadlines are those of calls whose context has none; see DefaultDeadlines.
	Deadlines Deadlines
}

// Deadlines bound the calls by kind.
type Deadlines struct {
	Short  time.Duration // Describe and Lookup
	Table  time.Duration // PrepareWrite, DescribeTable, CreateTable, DropTable, Abort
	Stage  time.Duration // Stage and PlanScan: a whole stream
	Commit time.Duration
}

// DefaultDeadlines are generous: they end what hangs, not what is slow.
func DefaultDeadlines() Deadlines {
	return Deadlines{Short: 30 * time.Second, Table: 2 * time.Minute, Stage: 30 * time.Minute, Commit: 10 * time.Minute}
}

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (c *Config) complete() error {
	d := DefaultDeadlines()
	c.StartTimeout = orDefault(c.StartTimeout, 20*time.Second)
	c.DrainTimeout = orDefault(c.DrainTimeout, 30*time.Second)
	c.Deadlines.Short = orDefault(c.Deadlines.Short, d.Short)
	c.Deadlines.Table = orDefault(c.Deadlines.Table, d.Table)
	c.Deadlines.Stage = orDefault(c.Deadlines.Stage, d.Stage)
	c.Deadlines.Commit = orDefault(c.Deadlines.Commit, d.Commit)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Dir == "" {
		c.Dir = filepath.Join(os.TempDir(), fmt.Sprintf("signet-plugins-%d", os.Getuid()))
	}
	if c.Isolation == IsolationAuto {
		c.Isolation, _ = DetectIsolation()
	}
	return c.check()
}

func orDefault(v, d time.Duration) time.Duration {
	if v <= 0 {
		return d
	}
	return v
}

func (c *Config) check() error {
	if c.AnyName && c.Name == "" {
		c.Name = "unnamed"
	}
	bad := func(detail, hint string) error {
		return &Error{Kind: ErrConfig, Plugin: c.Name, Path: c.Path, Detail: detail, Hint: hint}
	}
	if !nameRule.MatchString(c.Name) {
		return bad(fmt.Sprintf("the name %q is not of the form [a-z0-9-]+", c.Name), "rename it")
	}
	if !filepath.IsAbs(c.Path) {
		return bad("the path is not absolute", "a relative one would be searched in PATH; give the full path")
	}
	info, err := os.Lstat(c.Path)
	switch {
	case err != nil:
		return &Error{Kind: ErrConfig, Plugin: c.Name, Path: c.Path, Cause: err, Hint: "build or install the plugin there"}
	case info.Mode()&fs.ModeSymlink != 0:
		return bad("the path is a symbolic link", "name the file itself, so that what was locked is what runs")
	case !info.Mode().IsRegular():
		return bad("the path is no regular file", "name the plugin's executable")
	case info.Mode()&0o111 == 0:
		return bad("the file is not executable", "chmod +x it")
	}
	if c.SHA256 == "" && !c.Unlocked {
		return &Error{
			Kind: ErrNotLocked, Plugin: c.Name, Path: c.Path,
			Hint: "write plugins.lock for its directory (signet sink install), or allow unlocked plugins for development",
		}
	}
	return nil
}
