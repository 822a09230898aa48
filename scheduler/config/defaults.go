package config

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/internal/rpc"
)

// MaxInline is the largest result that fits into a job's status: a message, less what else a status says.
const MaxInline = rpc.MaxMessage - 256<<10

// DefaultDataDir is $XDG_DATA_HOME/signet, or ~/.local/share/signet.
func DefaultDataDir() string {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "signet")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir() // an account without a home, as in some containers
	}
	return filepath.Join(home, ".local", "share", "signet")
}

// Embedded is the configuration of a cluster in one user's data directory; "" means DefaultDataDir.
func Embedded(dataDir string) *Config {
	c := base()
	if dataDir != "" {
		c.DataDir = dataDir
	}
	if abs, err := filepath.Abs(c.DataDir); err == nil {
		c.DataDir = abs
	}
	c.fill()
	return c
}

// base holds the defaults that depend on nothing.
func base() *Config {
	return &Config{
		DataDir: DefaultDataDir(),
		Listen:  "127.0.0.1:0",
		Cluster: "default",
		Executors: Executors{
			Local:   1,
			Slots:   4,
			Threads: runtime.NumCPU(),
		},
		Dispatch: baseDispatch(),
		Timeouts: Timeouts{
			Heartbeat:    time.Second,
			ExecutorLoss: 15 * time.Second,
			PluginStart:  20 * time.Second,
			Drain:        30 * time.Second,
			Root:         10 * time.Minute,
		},
		Limits: Limits{
			TaskRetries:    3,
			TaskLosses:     3,
			CommitRetries:  20,
			MaxResultBytes: 64 << 20,
			MaxSourceFiles: 100_000,
			MaxInlineBytes: MaxInline,
			MaxTasks:       10_000,
			MaxStages:      1_000,
			MaxJobTasks:    100_000,
			MaxPlanBytes:   256 << 20,
			MaxRunningJobs: 200,
			MaxUserJobs:    100,
			MaxQueuedJobs:  5_000,
			MaxCacheBytes:  10 << 30,
			Roots:          16,

			MaxEventLogBytes: 64 << 20,
		},
		Log: Log{Level: "info", Format: "text"},
	}
}

// fill adds the defaults that depend on other settings.
func (c *Config) fill() {
	if len(c.Catalogs) == 0 {
		c.Catalogs = map[string]Catalog{
			"lake": {
				Type:      CatalogSQL,
				URI:       "sqlite://" + filepath.Join(c.DataDir, "catalog.db"),
				Warehouse: "file://" + filepath.Join(c.DataDir, "warehouse"),
			},
			"delta": {Type: CatalogDelta, Root: "file://" + filepath.Join(c.DataDir, "delta"), Implied: true},
		}
	}
	for name, cat := range c.Catalogs {
		if cat.Type == CatalogSQL && cat.Name == "" {
			cat.Name = name
		}
		if cat.Type == CatalogDelta && cat.Sink == "" {
			cat.Sink = CatalogDelta
		}
		if cat.Type != CatalogSink {
			cat.Credentials.fill()
		}
		c.Catalogs[name] = cat
	}
	if c.Executors.Scratch == "" {
		c.Executors.Scratch = filepath.Join(c.DataDir, "scratch")
	}
	beside := "."
	if exe, err := os.Executable(); err == nil {
		beside = filepath.Dir(exe)
	}
	if c.Executors.Binary == "" {
		c.Executors.Binary = filepath.Join(beside, "signet-executor")
	}
	if c.Plugins.Dir == "" {
		c.Plugins.Dir = filepath.Join(beside, "plugins")
	}
	if c.Executors.MemoryLimit == 0 {
		c.Executors.MemoryLimit = Bytes(memory()) / 2 / Bytes(max(1, c.Executors.Local))
	}
}

// memory is the machine's memory, or a modest guess where the kernel does not say.
func memory() int64 {
	const guess = 4 << 30
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return guess
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "MemTotal:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			if err == nil && kb > 0 {
				return kb << 10
			}
		}
	}
	return guess
}

// OwnPaths are the files and directories that no statement may read, whatever the source rules say.
func (c *Config) OwnPaths() []string {
	var out []string
	add := func(paths ...string) {
		for _, p := range paths {
			if p != "" {
				out = append(out, p)
			}
		}
	}
	add(c.DataDir, c.Executors.Scratch, c.Plugins.Dir, c.TLS.Key, c.Executors.TLSKey, c.Path)
	for _, name := range sortedKeys(c.Catalogs) {
		add(c.Catalogs[name].TLS.Key)
		if db, ok := strings.CutPrefix(c.Catalogs[name].URI, "sqlite://"); ok {
			add(db, db+"-wal", db+"-shm", db+"-journal")
		}
	}
	c.eachSecret(func(_ string, s Secret) { add(s.File()) })
	add(c.Lineage.File, c.CommitReports.File, c.Audit.File)
	return out
}

// SecretEnv are the variables that secrets refer to: children are started without them.
func (c *Config) SecretEnv() []string {
	var out []string
	c.eachSecret(func(_ string, s Secret) {
		if s.Env() != "" {
			out = append(out, s.Env())
		}
	})
	return out
}

// SecretValues are what the secrets say now: what must not be shown.
func (c *Config) SecretValues() []string {
	var out []string
	c.eachSecret(func(_ string, s Secret) {
		if v, err := s.Resolve(); err == nil { // CheckSecrets tells what is missing
			out = append(out, v)
		}
	})
	return out
}

// CheckSecrets resolves every secret once, so that a missing one is known at start and not at the first commit.
func (c *Config) CheckSecrets() error {
	var first error
	c.eachSecret(func(key string, s Secret) {
		if _, err := s.Resolve(); err != nil && first == nil {
			first = fmt.Errorf("%s: %w", key, err)
		}
	})
	return first
}

func (c *Config) eachSecret(f func(key string, s Secret)) {
	visit := func(key string, s Secret) {
		if !s.IsZero() {
			f(key, s)
		}
	}
	visit("auth.join_token", c.Auth.JoinToken)
	for i, t := range c.Auth.JoinTokens {
		visit(fmt.Sprintf("auth.join_tokens[%d].token", i), t.Token)
	}
	for i, t := range c.Auth.Tokens {
		visit(fmt.Sprintf("auth.tokens[%d].token", i), t.Token)
	}
	for _, name := range sortedKeys(c.Catalogs) {
		for _, k := range sortedKeys(c.Catalogs[name].Secret) {
			visit("catalogs."+name+".secret."+k, c.Catalogs[name].Secret[k])
		}
	}
	for i, r := range c.Sources.Remote {
		for _, k := range sortedKeys(r.Secret) {
			visit(fmt.Sprintf("sources.remote[%d].secret.%s", i, k), r.Secret[k])
		}
	}
	for _, k := range sortedKeys(c.Lineage.Headers) {
		visit("lineage.headers."+k, c.Lineage.Headers[k])
	}
	for _, k := range sortedKeys(c.CommitReports.Headers) {
		visit("commit_reports.headers."+k, c.CommitReports.Headers[k])
	}
	for _, sink := range sortedKeys(c.Plugins.Secrets) {
		for _, k := range sortedKeys(c.Plugins.Secrets[sink]) {
			visit("plugins.secrets."+sink+"."+k, c.Plugins.Secrets[sink][k])
		}
	}
}
