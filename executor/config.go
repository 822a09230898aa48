package executor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/rpc"
)

// Config of an executor. Zero values get defaults where one is named.
type Config struct {
	Scheduler string      // host:port
	Token     string      // join token; empty: none
	TLS       *tls.Config // nil: plain text, which only loopback addresses may have together with a token

	// Exchange is where this executor serves what its tasks leave for those of later stages; default: a port of its own on loopback.
	Exchange exchange.Endpoint
	// Fetch says how such output is fetched. Its TLS defaults to TLS above.
	Fetch exchangeclient.Config

	Scratch     string // parent of the scratch directories; created. Best on the tables' file system: files are linked into place then
	MemoryBytes int64  // DuckDB's share of this process, over all slots; default 60 % of the machine's or container's memory
	Slots       int    // tasks at a time; default half the processors, at least 2
	Threads     int    // per task; default so that all slots together have two threads per processor
	// ObjectCacheBytes bounds what of object stores is kept in scratch for later tasks; default 10 GiB; negative: nothing.
	ObjectCacheBytes int64
	MinFreeBytes     int64 // scratch space below which no task starts; default 256 MiB; negative: no check

	Drain   time.Duration // how long running tasks may finish, and outputs be fetched, after a stop; default 3 s
	Version string
	Store   upload.Store // default upload.Local
	Logger  *slog.Logger // default slog.Default

	// DialOptions come after the executor's own. For tests.
	DialOptions []grpc.DialOption
	// MinBackoff and MaxBackoff bound the pauses between attempts to connect and to report; default 50 ms and 5 s.
	MinBackoff, MaxBackoff time.Duration
}

const (
	defaultMinFree = 256 << 20
	defaultCache   = 10 << 30
	minMemory      = 64 << 20 // per slot: below it DuckDB cannot hold two row groups
	maxAnalyses    = 8        // at a time
)

func (c Config) withDefaults() (Config, error) {
	cpus := runtime.GOMAXPROCS(0)
	if c.Slots <= 0 {
		c.Slots = max(2, cpus/2)
	}
	if c.Threads <= 0 {
		c.Threads = max(1, 2*cpus/c.Slots)
	}
	if c.MemoryBytes <= 0 {
		c.MemoryBytes = machineMemory() / 10 * 6
	}
	if c.MinFreeBytes == 0 {
		c.MinFreeBytes = defaultMinFree
	}
	if c.ObjectCacheBytes == 0 {
		c.ObjectCacheBytes = defaultCache
	}
	c.ObjectCacheBytes = max(c.ObjectCacheBytes, 0)
	if c.Drain <= 0 {
		c.Drain = 3 * time.Second
	}
	if c.MinBackoff <= 0 {
		c.MinBackoff = 50 * time.Millisecond
	}
	if c.MaxBackoff <= 0 {
		c.MaxBackoff = 5 * time.Second
	}
	if c.Fetch.TLS == nil {
		c.Fetch.TLS = c.TLS
	}
	if c.Store == nil {
		c.Store = upload.Local{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Scheduler == "" {
		return c, errors.New("no scheduler address (--scheduler host:port)")
	}
	if c.Scratch == "" {
		return c, errors.New("no scratch directory (--scratch DIR)")
	}
	if perSlot := c.MemoryBytes / int64(c.Slots); perSlot < minMemory {
		return c, fmt.Errorf("%d bytes of memory for %d slots: a task needs at least %d; raise the memory or lower the slots", c.MemoryBytes, c.Slots, int64(minMemory))
	}
	if c.Token != "" && c.TLS == nil && !exchangeclient.IsLoopback(c.Scheduler) {
		return c, fmt.Errorf("the join token must not travel to %s in plain text: use TLS (--tls-ca FILE)", c.Scheduler)
	}
	abs, err := filepath.Abs(c.Scratch)
	if err != nil {
		return c, fmt.Errorf("scratch directory: %w", err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return c, fmt.Errorf("scratch directory: %w", err)
	}
	// DuckDB compares allowed directories with resolved paths.
	c.Scratch, err = filepath.EvalSymlinks(abs)
	return c, err
}

func backoffConfig(first, last time.Duration) grpcbackoff.Config {
	cfg := grpcbackoff.DefaultConfig
	cfg.BaseDelay, cfg.MaxDelay = first, last
	return cfg
}

func (c Config) dialOptions() []grpc.DialOption {
	creds := insecure.NewCredentials()
	if c.TLS != nil {
		creds = credentials.NewTLS(c.TLS)
	}
	// gRPC's own pauses between connection attempts grow to two minutes: a scheduler that is back should not wait so long for its
	// executors.
	params := grpc.ConnectParams{MinConnectTimeout: 5 * time.Second, Backoff: backoffConfig(c.MinBackoff, c.MaxBackoff)}
	opts := append([]grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithConnectParams(params)}, rpc.DialOptions()...)
	return append(opts, c.DialOptions...)
}
