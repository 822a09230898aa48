package exchangeclient

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/signet-io/signet/internal/rpc"
)

// Config of a Dialer. Zero values get the defaults named.
type Config struct {
	// TLS verifies executors on other machines; its ServerName is not used: the address is what the certificate must be for. Nil: only
	// loopback addresses can be dialled.
	TLS *tls.Config
	// Idle is how long a connection that nobody uses stays open; default 30 s.
	Idle time.Duration
	// Tries is how often a fetch is begun or resumed without any progress before its part counts as lost; default 6.
	Tries int
	// MinPause and MaxPause bound the pauses between tries, which double; defaults 100 ms and 2 s.
	MinPause, MaxPause time.Duration
	// Parallel is how many fetches of this process run at a time, so that their memory is bounded, each having a few messages of up to 1 MiB;
	// further ones wait. Default 16.
	Parallel int
	// Stall is how long a stream may bring nothing before it counts as broken; default 20 s.
	Stall time.Duration
	// DialOptions come after the package's own. For tests.
	DialOptions []grpc.DialOption
}

// Dialer keeps one connection per executor. It is safe for concurrent use.
type Dialer struct {
	cfg    Config
	slots  chan struct{}
	mu     sync.Mutex
	conns  map[string]*conn
	closed bool
}

type conn struct {
	*grpc.ClientConn
	users int
	idle  *time.Timer
}

// window is how much of a stream may be on its way, in bytes.
const window = 1 << 20

var errClosed = errors.New("exchange client: closed")

// NewDialer makes a dialer without connections.
func NewDialer(cfg Config) *Dialer {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&cfg.Idle, 30*time.Second)
	def(&cfg.MinPause, 100*time.Millisecond)
	def(&cfg.MaxPause, 2*time.Second)
	def(&cfg.Stall, 20*time.Second)
	if cfg.Tries <= 0 {
		cfg.Tries = 6
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = 16
	}
	return &Dialer{cfg: cfg, slots: make(chan struct{}, cfg.Parallel), conns: map[string]*conn{}}
}

// Close closes every connection; fetches that run fail.
func (d *Dialer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	var errs []error
	for address, c := range d.conns {
		if c.idle != nil {
			c.idle.Stop()
		}
		errs = append(errs, c.Close())
		delete(d.conns, address)
	}
	return errors.Join(errs...)
}

// Connections is the number of executors that are connected, or were until a moment ago.
func (d *Dialer) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// get borrows the connection to an address until release is called.
func (d *Dialer) get(address string) (c *grpc.ClientConn, release func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, errClosed
	}
	found := d.conns[address]
	if found == nil {
		opts, err := d.options(address)
		if err != nil {
			return nil, nil, err
		}
		cc, err := grpc.NewClient("passthrough:///"+address, opts...)
		if err != nil {
			return nil, nil, fmt.Errorf("exchange address %q: %w", address, err)
		}
		found = &conn{ClientConn: cc}
		d.conns[address] = found
	}
	if found.idle != nil {
		found.idle.Stop()
		found.idle = nil
	}
	found.users++
	return found.ClientConn, func() { d.release(address, found) }, nil
}

func (d *Dialer) release(address string, c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.users--; c.users > 0 || d.conns[address] != c {
		return
	}
	c.idle = time.AfterFunc(d.cfg.Idle, func() { d.retire(address, c) })
}

// retire closes a connection that nobody has used for a while.
func (d *Dialer) retire(address string, c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.users > 0 || d.conns[address] != c {
		return
	}
	delete(d.conns, address)
	_ = c.Close() // it carries nothing
}

func (d *Dialer) options(address string) ([]grpc.DialOption, error) {
	creds := insecure.NewCredentials()
	if !IsLoopback(address) {
		if d.cfg.TLS == nil {
			return nil, fmt.Errorf("executor at %s: %w", address, ErrNoTLS)
		}
		cfg := d.cfg.TLS.Clone()
		cfg.ServerName = ""
		creds = credentials.NewTLS(cfg)
	}
	// gRPC's own pauses between connection attempts grow to two minutes; Fetch gives up long before.
	pauses := backoff.Config{BaseDelay: d.cfg.MinPause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: d.cfg.MaxPause}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: 5 * time.Second}),
		// Fixed, or gRPC lets each stream grow to what the network could carry: parts are read as they come, several at a time.
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(4 * window),
		// Bytes go between machines of one cluster: no proxy of the environment is meant.
		grpc.WithNoProxy(),
	}
	opts = append(opts, rpc.DialOptions()...)
	return append(opts, d.cfg.DialOptions...), nil
}

// IsLoopback tells whether host:port names this machine only. Names other than localhost do not: what they resolve to may change.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
