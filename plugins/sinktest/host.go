package sinktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/protocol"
	"github.com/signet-io/signet/plugins/sdk"
)

// Host is host.v1 in memory, for one table. The zero value is not usable. It admits what the scheduler's host admits, and it keeps account: what a sink
// asked for beyond its lease is refused and counted.
type Host struct {
	Location string
	Lease    string // allows everything; the suite's checks take narrower ones

	mu       sync.Mutex
	desc     *sinkv1.DescribeResponse // nil: names of objects are not looked at
	catalog  Catalog                  // nil: the sink has none
	secrets  map[string]string
	dial     map[string]string
	objects  map[string][]byte
	times    map[string]time.Time
	commits  []*hostv1.CommitPoint // that landed, in order
	leases   map[string]*lease
	beyond   []string // what was refused because no lease allows it
	calls    int
	asked    int
	fenced   bool
	sealed   map[int64]*hostv1.CommitPoint
	delay    time.Duration
	servers  []interface{ Stop() }
	before   func(n int)       // runs before the n-th commit point, from 1
	refuse   func(n int) error // refuses it, if it gives an error
	after    func(n int) error // runs when it has landed; what it gives is the answer
	onCall   func(ctx context.Context, call string) error
	messages []string // what was logged through host.v1
}

// use is what a lease is for.
type use int

const (
	anything use = iota
	reading
	defining   // CreateTable, AlterTable, DropTable: no commit point is taken
	staging    // objects, and no commit point
	committing // the commit point, with exactly the lease's markers
)

type lease struct {
	use     use
	markers []string
	revoked bool
}

// NewHost makes a host of an empty location.
func NewHost(location string) *Host {
	h := &Host{
		Location: location, Lease: rand.Text(), objects: map[string][]byte{}, times: map[string]time.Time{}, leases: map[string]*lease{},
		sealed: map[int64]*hostv1.CommitPoint{},
	}
	h.leases[h.Lease] = &lease{}
	return h
}

// Register registers the services of host.v1.
func (h *Host) Register(r grpc.ServiceRegistrar) {
	hostv1.RegisterCatalogServer(r, catalogService{h: h})
	hostv1.RegisterStorageServer(r, storageService{h: h})
	hostv1.RegisterSealServer(r, sealService{h: h})
	hostv1.RegisterSecretsServer(r, secretsService{h: h})
	hostv1.RegisterDialServer(r, dialService{h: h})
	hostv1.RegisterLogServer(r, logService{h: h})
	hostv1.RegisterProgressServer(r, progressService{h: h})
	if s, ok := r.(interface{ Stop() }); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.servers = append(h.servers, s)
	}
}

// BeforeCommit runs f before each commit point; f may call anything of the host.
func (h *Host) BeforeCommit(f func(n int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = f
}

// LoseReply lets the next commit point land without an answer.
func (h *Host) LoseReply() {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.asked + 1
	h.after = func(n int) error {
		if n == next {
			return sdk.Refuse(sdk.Unknown, "the answer was lost")
		}
		return nil
	}
}

// Fence refuses commit points, as after a cancel.
func (h *Host) Fence(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fenced = on
}

// Put creates an object as another writer would.
func (h *Host) Put(uri string, body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[uri], h.times[uri] = body, time.Now()
}

// Body is an object as it is; nil: there is none.
func (h *Host) Body(uri string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects[uri]
}

// Touch sets the time at which an object was made.
func (h *Host) Touch(uri string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[uri] = at
}

// Objects lists what exists.
func (h *Host) Objects() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.objects))
}

// Commits are the commit points that landed.
func (h *Host) Commits() []*hostv1.CommitPoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.commits)
}

// Beyond lists what was refused because no lease allows it: in order, a line each.
func (h *Host) Beyond() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.beyond)
}

func (h *Host) grant(u use, markers ...string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	token := rand.Text()
	h.leases[token] = &lease{use: u, markers: markers}
	return token
}

func (h *Host) revoke(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases[token].revoked = true
}

// set changes the host's faults.
func (h *Host) set(change func(*Host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// points is how often a commit point was asked for.
func (h *Host) points() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// close ends the services under running calls, as if the host had gone.
func (h *Host) close() {
	h.mu.Lock()
	servers := h.servers
	h.servers = nil
	h.mu.Unlock()
	for _, s := range servers {
		s.Stop()
	}
}

// enter admits a call: it has a lease that lives, and it waits as long as the host is slow.
func (h *Host) enter(ctx context.Context, call string) (*lease, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	h.mu.Lock()
	h.calls++
	delay, onCall := h.delay, h.onCall
	tokens := md.Get(protocol.LeaseKey)
	var l *lease
	if len(tokens) == 1 {
		l = h.leases[tokens[0]]
	}
	revoked := l != nil && l.revoked
	h.mu.Unlock()
	if l == nil {
		return nil, h.overstepped("%s without the call's lease", call)
	}
	if revoked {
		return nil, sdk.Refuse(sdk.Fenced, "the lease is closed")
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if onCall != nil {
		return l, onCall(ctx, call)
	}
	return l, nil
}

// overstepped counts and refuses what no lease allows.
func (h *Host) overstepped(format string, args ...any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	h.beyond = append(h.beyond, what)
	if strings.HasSuffix(what, "lease") {
		return sdk.Refuse(sdk.Fenced, "refused: %s", what)
	}
	return sdk.Refuse(sdk.Permanent, "refused: %s", what)
}

// rel is a URI's path below the table.
func (h *Host) rel(uri string) (string, error) {
	rel, ok := strings.CutPrefix(uri, h.Location+"/")
	if uri == h.Location {
		return "", nil
	}
	if !ok || rel == "" || path.Clean("/"+rel) != "/"+rel {
		return "", h.overstepped("%s is outside the table", uri)
	}
	return rel, nil
}

// creatable decides about the name of an object, as the scheduler's host does.
func (h *Host) creatable(l *lease, uri string, point bool) error {
	rel, err := h.rel(uri)
	if err != nil {
		return err
	}
	d := h.desc
	if d == nil {
		return nil
	}
	declared := matches(d.GetCommitPoints(), rel)
	switch {
	case rel == "":
		return h.overstepped("%s is no name for an object", uri)
	case l.use == reading:
		return h.overstepped("create %s in a call that only reads", rel)
	case point && !declared:
		return h.overstepped("%s is none of the commit points that Describe declares", rel)
	case declared && !point && l.use != defining:
		return h.overstepped("create %s, a commit point, without saying that it is one", rel)
	case point && l.use == staging:
		return h.overstepped("take a commit point in a call that only stages")
	case !declared && !matches(d.GetCreates(), rel):
		return h.overstepped("%s matches none of the patterns that Describe declares", rel)
	}
	return nil
}

func matches(patterns []string, rel string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, rel)
		return err == nil && ok
	})
}

// point takes the way of every commit point: before, the refusals, landing, after.
func (h *Host) point(ctx context.Context, l *lease, p *hostv1.CommitPoint, land func() error) error {
	h.mu.Lock()
	h.asked++
	n, before, refuse, after := h.asked, h.before, h.refuse, h.after
	h.mu.Unlock()
	if err := h.vet(l, p); err != nil {
		return err
	}
	if before != nil {
		before(n)
	}
	h.mu.Lock()
	closed := h.fenced || l.revoked
	h.mu.Unlock()
	switch {
	case closed:
		return sdk.Refuse(sdk.Fenced, "the job was cancelled")
	case ctx.Err() != nil: // nobody waits for it: nothing is let through
		return ctx.Err()
	}
	if refuse != nil {
		if err := refuse(n); err != nil {
			return err
		}
	}
	if err := land(); err != nil {
		return err
	}
	h.mu.Lock()
	h.commits = append(h.commits, p)
	h.mu.Unlock()
	if after != nil {
		return after(n)
	}
	return nil
}

func (h *Host) vet(l *lease, p *hostv1.CommitPoint) error {
	switch {
	case l.use == anything:
		return nil
	case l.use != committing:
		return h.overstepped("take a commit point in a call that does not commit")
	case p.GetVersion() == "":
		return h.overstepped("a commit point without a version")
	}
	got, want := slices.Sorted(slices.Values(p.GetMarkers())), slices.Sorted(slices.Values(l.markers))
	if !slices.Equal(got, want) {
		return h.overstepped("a commit point with the markers %q in place of %q", got, want)
	}
	return nil
}
