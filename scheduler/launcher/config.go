package launcher

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/internal/mutant"
)

// BinaryName is the executor's file name. It is looked for beside the running executable.
const BinaryName = "signet-executor"

// ErrNoBinary: there is no executor to launch.
var ErrNoBinary = errors.New("no executor binary")

// Config says what to launch. Zero values get defaults.
type Config struct {
	Binary    string   // absolute path; empty: BinaryName beside this executable
	Count     int      // number of executors, at least 1
	Scheduler string   // address that the executors dial
	Token     string   // join token; empty: the scheduler asks for none
	CAFile    string   // PEM file with the scheduler's certificate authority; empty: plain text
	CertFile  string   // PEM file with the certificate that executors show to a scheduler that asks for one; empty: none
	KeyFile   string   // its private key
	Dir       string   // private directory for the token, logs and scratch; created
	Scratch   string   // parent of the scratch directories; empty: Dir
	Slots     int      // tasks at once per executor; 0: the executor's default
	Threads   int      // per task; 0: the executor's default
	Memory    int64    // bytes per executor; 0: the executor's default
	Args      []string // further arguments, appended
	Logger    *slog.Logger
	// OnExit is told of each executor process that ended, whatever the reason. It must not block.
	OnExit func(pid int)

	StopGrace  time.Duration // between SIGTERM and SIGKILL; 0: 5 s
	QuickExit  time.Duration // an executor that lives shorter counts as failed at its start; 0: 2 s
	QuickLimit int           // so many in a row are given up; 0: 5
	MinPause   time.Duration // first pause before a restart; 0: 100 ms
	MaxPause   time.Duration // 0: 10 s
}

func (c Config) withDefaults() (Config, error) {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.StopGrace, 5*time.Second)
	def(&c.QuickExit, 2*time.Second)
	def(&c.MinPause, 100*time.Millisecond)
	def(&c.MaxPause, 10*time.Second)
	c.Count = max(c.Count, 1)
	if c.QuickLimit == 0 {
		c.QuickLimit = 5
	}
	if c.Scratch == "" {
		c.Scratch = c.Dir
	}
	if c.OnExit == nil {
		c.OnExit = func(int) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dir == "" || c.Scheduler == "" {
		return c, errors.New("launcher: Dir and Scheduler are required")
	}
	var err error
	c.Binary, err = FindBinary(c.Binary)
	return c, err
}

// FindBinary returns the absolute path of the executor. Empty: the one beside this executable.
func FindBinary(path string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoBinary, err)
		}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		path = filepath.Join(filepath.Dir(self), BinaryName)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoBinary, err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w (`make build` makes it)", ErrNoBinary, err)
	}
	if st.IsDir() || st.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%w: %s is not an executable file", ErrNoBinary, path)
	}
	return path, nil
}

// args is the executor's command line. It holds nothing secret.
func (c Config) args(n int) []string {
	out := []string{"--ignore-interrupt", "--parent-pid", strconv.Itoa(os.Getpid()), "--scheduler", c.Scheduler, "--scratch", filepath.Join(c.Scratch, fmt.Sprintf("executor-%d", n))}
	if c.Token != "" {
		out = append(out, "--token-file", c.tokenFile())
	}
	if c.CAFile != "" {
		out = append(out, "--tls-ca", c.CAFile)
	}
	if c.CertFile != "" {
		out = append(out, "--tls-cert", c.CertFile, "--tls-key", c.KeyFile)
	}
	if c.Slots > 0 {
		out = append(out, "--slots", strconv.Itoa(c.Slots))
	}
	if c.Threads > 0 {
		out = append(out, "--threads", strconv.Itoa(c.Threads))
	}
	if c.Memory > 0 {
		out = append(out, "--memory", strconv.FormatInt(c.Memory, 10))
	}
	return append(out, c.Args...)
}

func (c Config) tokenFile() string { return filepath.Join(c.Dir, "join-token") }

func (c Config) logFile(n int) string {
	return filepath.Join(c.Dir, fmt.Sprintf("executor-%d.log", n))
}

// passed are the only variables that an executor inherits. SIGNET_FAILPOINTS is among them so that tests reach its fault points.
var passed = []string{
	"PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG", "LC_ALL", "SIGNET_FAILPOINTS", "GOCOVERDIR", "GOTRACEBACK", "GOMAXPROCS", "GODEBUG",
	"SSL_CERT_FILE", "SSL_CERT_DIR", // whom to trust for object stores and web servers
	// Where to send traces; headers are not among them, since they hold the collector's token.
	"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
	"OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_BSP_SCHEDULE_DELAY",
}

// environ is the executor's environment: never the launcher's own, which may hold catalog secrets.
func environ(lookup func(string) (string, bool)) []string {
	if mutant.On("launcher/environment-passed") {
		return os.Environ()
	}
	var out []string
	for _, name := range passed {
		if v, ok := lookup(name); ok && !strings.ContainsRune(v, 0) {
			out = append(out, name+"="+v)
		}
	}
	return out
}
