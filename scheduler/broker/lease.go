package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/internal/uri"
)

// LeaseSpec says what a lease allows.
type LeaseSpec struct {
	JobID     string
	Table     *sinkv1.TableRef
	TableUUID string // the only table that may be committed to; empty: that of the first load
	Mode      sinkv1.WriteMode
	Branch    string          // that a write goes to; empty: the main one
	WapID     string          // of the snapshot that a write stages, which no branch gets; empty: it is the head of Branch
	Pick      string          // the snapshot whose changes the commit makes once more on top of Branch (WRITE_MODE_PICK)
	Gate      Gate            // nil: this lease never commits
	Catalog   catalog.Catalog // nil: a storage sink
	Ident     catalog.Ident
	// Location is where a storage sink's table lies, and where a table may be created; empty: the catalog's default.
	Location string
	Store    storage.Store // nil: opened for the table's location
	Sink     *sinkv1.DescribeResponse
	// Plugin is the operator's name of the plugin, by which Secrets and Dials are listed; empty: Sink's name.
	Plugin         string
	MarkerProperty string
	Markers        []string // of the units that the commit carries; exactly these
	KeepMarkers    []string // must stay in the marker property
	// Totals of the accepted task manifests; what an append adds must be exactly that. nil: unchecked.
	Totals *sinkv1.Totals
	// Replaced are the data files that the accepted task manifests replace; a row-level write or a rewrite removes exactly those.
	Replaced map[string]struct{}
	// Scope decides which files an overwrite may remove; nil: none.
	Scope Scope
	// Summary is what the snapshot's summary says of each unit, besides what the format counts: exactly this.
	Summary []map[string]string
	// Deletes lets the commit add delete files. Deleted are the data files that those of the accepted task manifests are about.
	Deletes bool
	Deleted map[string]struct{}
	// AddsFiles: the write registers files which others have written, and may give the table a name mapping for them.
	AddsFiles bool
	// Adopted are objects that an earlier lease of the same job created (StagedRef.objects, as journalled).
	Adopted                []string
	AllowCreate, AllowDrop bool
	// AllowAlter lets the lease change the table's metadata, without a gate. BeforeExpire is told which snapshots a request is about to remove,
	// and may refuse; nil: nobody wants to know.
	AllowAlter   bool
	BeforeExpire func(t *catalog.Table, snapshots []int64) error
	// DataPath refuses places that the data files of a new table at location may not go to; nil: only what is below it passes.
	DataPath func(location, path string) error
	ReadOnly bool
}

// Scope is what an overwrite covers.
type Scope interface {
	// Covers reports whether all rows of a data file are in the scope, or all rows that a delete file may be about. partition is the partition spec of its
	// manifest as table metadata has it, in JSON.
	Covers(e *icemanifest.Entry, specID int32, partition []byte) (bool, error)
}

func (s *LeaseSpec) pluginName() string {
	if s.Plugin != "" {
		return s.Plugin
	}
	return s.Sink.GetName()
}

func (s *LeaseSpec) validate() error {
	switch {
	case s.Catalog == nil && s.Store == nil && s.Location == "":
		return errors.New("lease: neither a catalog nor a location")
	case s.Catalog == nil && s.Store == nil:
		return errors.New("lease: a storage sink needs its store")
	case s.Gate != nil && len(s.Markers) == 0:
		return errors.New("lease: a commit without a marker could not be found again")
	case s.Gate != nil && s.Catalog != nil && s.MarkerProperty == "":
		return errors.New("lease: no marker property")
	}
	for _, m := range s.Markers {
		if !validMarker(m) {
			return fmt.Errorf("lease: marker %q: want lower-case hexadecimal digits", m)
		}
	}
	return nil
}

// Lease lets one plugin call work on one table for one job.
type Lease struct {
	b     *Broker
	spec  LeaseSpec
	token string
	hash  leaseHash

	ctx  context.Context // ends with the lease, and with it every stream that it let in
	stop context.CancelFunc
	puts sync.WaitGroup

	committing sync.Mutex // one commit at a time

	mu       sync.Mutex
	closed   bool
	last     *catalog.Table // as last served
	missing  bool           // the last load found no table
	uuid     string         // LeaseSpec.TableUUID, or that of the first load
	location string         // where a missing table would be created
	store    storage.Store
	created  map[string]object // by objectKey
	landed   *landing
	run      *run // the attempt whose outcome is open
	pick     *pick
	external *external
}

// object is one that the lease created: for certain, or perhaps.
type object struct {
	uri     string
	certain bool
}

// objectKey makes the spellings of one file equal.
func objectKey(file string) string { return uri.Key(file) }

// landing is where the job's commit is.
type landing struct{ version, location string }

// Lease hands out a new lease.
func (b *Broker) Lease(spec LeaseSpec) (*Lease, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	l := &Lease{b: b, spec: spec, store: spec.Store, location: spec.Location, uuid: spec.TableUUID, created: make(map[string]object, len(spec.Adopted))}
	for _, uri := range spec.Adopted {
		l.created[objectKey(uri)] = object{uri: uri, certain: true}
	}
	l.token, l.hash = newToken()
	l.ctx, l.stop = context.WithCancel(b.ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		l.stop()
		return nil, errors.New("lease: the broker is closed")
	}
	b.leases[l.hash] = l
	return l, nil
}

// Token is what the plugin sends as signet-lease metadata.
func (l *Lease) Token() string { return l.token }

// Location is where a table that does not exist would be created; empty while nobody has asked. A job that creates its table keeps it with its
// plan and gives it to its later leases.
func (l *Lease) Location() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.location
}

// Close fences the lease: calls that come later are refused, and streams that are open create nothing. An attempt that has been sealed goes on.
func (l *Lease) Close() {
	l.b.mu.Lock()
	delete(l.b.leases, l.hash)
	l.b.mu.Unlock()
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	ext := l.external
	l.mu.Unlock()
	l.stop()
	if first && ext != nil {
		ext.abandon()
	}
}

// Created lists the URIs of what exists because of this lease, adopted objects included.
func (l *Lease) Created() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]string, 0, len(l.created))
	for _, o := range l.created {
		out = append(out, o.uri)
	}
	slices.Sort(out)
	return out
}

// Drain waits for creations that were under way when the lease was closed; after it Created is complete.
func (l *Lease) Drain() { l.puts.Wait() }

// live refuses a fenced lease.
func (l *Lease) live() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return refuse(kindFenced, "the lease is closed")
	}
	return nil
}

// writable refuses what a lease that only reads, or has committed, may not do.
func (l *Lease) writable() error {
	if err := l.live(); err != nil {
		return err
	}
	if l.spec.ReadOnly {
		return refuse(kindPermanent, "the lease is read-only")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.landed != nil {
		return alreadyAt(l.landed.version, l.landed.location)
	}
	return nil
}

func (l *Lease) addCreated(uri string, certain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := objectKey(uri)
	l.created[key] = object{uri: uri, certain: certain || l.created[key].certain}
}

// owns reports whether the lease created the object.
func (l *Lease) owns(uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.created[objectKey(uri)].certain
}

func (l *Lease) markLanded(version, location string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.landed == nil {
		l.landed = &landing{version: version, location: location}
	}
}

func (l *Lease) hasLanded() *landing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.landed
}

// openStore returns the store of the table: where it lies, or where the lease may create it. Staging need not load the table first: its write
// spec says all that it needs.
func (l *Lease) openStore(ctx context.Context) (storage.Store, error) {
	l.mu.Lock()
	store := l.store
	l.mu.Unlock()
	if store != nil {
		return store, nil
	}
	location, err := l.home(ctx)
	if err != nil {
		return nil, err
	}
	if store, err = l.spec.Catalog.Store(ctx, l.spec.Ident, location); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store == nil {
		l.store = store
	}
	return l.store, nil
}

func (l *Lease) home(ctx context.Context) (string, error) {
	t, err := l.served(ctx)
	switch {
	case err != nil:
		return "", err
	case t != nil && l.spec.Mode == sinkv1.WriteMode_WRITE_MODE_CREATE && l.tableUUID() != "" && !sameUUID(l.tableUUID(), t.UUID):
		return "", refuse(kindExists, "table %s was created by somebody else", l.spec.Ident)
	case t != nil:
		return t.Location, nil
	case !l.mayCreate():
		return "", refuse(kindNotFound, "table %s does not exist", l.spec.Ident)
	default:
		return l.defaultLocation(ctx)
	}
}

func (l *Lease) mayCreate() bool {
	return l.spec.AllowCreate || l.spec.Mode == sinkv1.WriteMode_WRITE_MODE_CREATE
}

// tableUUID is the only table that the lease may commit to.
func (l *Lease) tableUUID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uuid
}
