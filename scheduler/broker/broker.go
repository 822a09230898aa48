package broker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	hostv1 "github.com/signet-io/signet/api/host/v1"
)

// LeaseKey is the gRPC metadata key that carries a lease.
const LeaseKey = "signet-lease"

// Config is what one broker needs. The zero value works: nothing to hand out, nothing to dial.
type Config struct {
	// Epoch is written into every attempt. 0: the Gate fills it in.
	Epoch uint64
	// Logger gets the plugins' log lines and the broker's own; slog.Default if nil.
	Logger *slog.Logger
	// Secrets are what plugins may ask for: plugin name, secret name, and how to read it.
	Secrets map[string]map[string]func() ([]byte, error)
	// Dials are where plugins may connect to: plugin name, address name, address as in net.Dial ("tcp" only).
	Dials map[string]map[string]string
	// Progress hears what a sink says about its job; nil: nobody.
	Progress func(jobID, phase string, fraction float64)
	// CommitTimeout bounds one send to a commit point, after which its outcome is unknown; 60 s if 0.
	CommitTimeout time.Duration
	// SettleWait is how long a plugin's call waits for an outcome that is being resolved; 10 s if 0.
	SettleWait time.Duration
	// BackoffMin and BackoffMax bound the waits between sends of one identical request; 50 ms and 5 s if 0.
	BackoffMin, BackoffMax time.Duration
	// MetadataCacheBytes bounds the metadata files kept in memory; 64 MiB if 0.
	MetadataCacheBytes int64
	// Bodies is the directory for commit objects that are too large for the journal, beside which it lies; empty: such objects are refused.
	Bodies string
}

func (c *Config) setDefaults() {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.CommitTimeout, time.Minute},
		{&c.SettleWait, 10 * time.Second},
		{&c.BackoffMin, 50 * time.Millisecond},
		{&c.BackoffMax, 5 * time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if c.MetadataCacheBytes <= 0 {
		c.MetadataCacheBytes = 64 << 20
	}
}

// Broker holds the leases of one scheduler. It is safe for concurrent use, and one broker serves any number of plugins.
type Broker struct {
	cfg    Config
	log    *slog.Logger
	raw    *byteCache // metadata.json by catalog and location
	lists  *listCache // parsed manifest lists by URI
	bodies bodies

	ctx  context.Context // the broker's life: resolving goes on without the call that began it
	stop context.CancelFunc
	runs sync.WaitGroup

	mu     sync.RWMutex
	leases map[leaseHash]*Lease
	closed bool
}

// leaseHash keeps tokens out of the map: a lookup compares nothing that an attacker could guess byte by byte.
type leaseHash [sha256.Size]byte

// New returns a broker without leases.
func New(c Config) *Broker {
	c.setDefaults()
	ctx, stop := context.WithCancel(context.Background())
	return &Broker{
		cfg: c, log: c.Logger, raw: newByteCache(c.MetadataCacheBytes), lists: newListCache(), bodies: bodies{c.Bodies},
		ctx: ctx, stop: stop, leases: map[leaseHash]*Lease{},
	}
}

// Register adds all services of host.v1.
func (b *Broker) Register(r grpc.ServiceRegistrar) {
	hostv1.RegisterCatalogServer(r, &catalogService{b: b})
	hostv1.RegisterStorageServer(r, &storageService{b: b})
	hostv1.RegisterSealServer(r, &sealService{b: b})
	hostv1.RegisterSecretsServer(r, &secretsService{b: b})
	hostv1.RegisterDialServer(r, &dialService{b: b})
	hostv1.RegisterLogServer(r, &logService{b: b})
	hostv1.RegisterProgressServer(r, &progressService{b: b})
}

// Close fences all leases, stops resolving, and waits for what is being sent. An outcome that is open then stays so in the journal.
func (b *Broker) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	all := make([]*Lease, 0, len(b.leases))
	for _, l := range b.leases {
		all = append(all, l)
	}
	b.mu.Unlock()
	for _, l := range all {
		l.Close()
	}
	b.stop()
	done := make(chan struct{})
	go func() {
		b.runs.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start runs f in the background; false after Close.
func (b *Broker) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.runs.Add(1)
	go func() {
		defer b.runs.Done()
		f()
	}()
	return true
}

func newToken() (string, leaseHash) {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	token := hex.EncodeToString(raw[:])
	return token, sha256.Sum256([]byte(token))
}

// lease finds the lease of a call.
func (b *Broker) lease(ctx context.Context) (*Lease, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	v := md.Get(LeaseKey)
	if len(v) != 1 {
		return nil, unauthenticated()
	}
	h := leaseHash(sha256.Sum256([]byte(v[0])))
	b.mu.RLock()
	l := b.leases[h]
	b.mu.RUnlock()
	if l == nil {
		return nil, unauthenticated()
	}
	return l, nil
}
