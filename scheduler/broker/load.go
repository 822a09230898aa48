package broker

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"google.golang.org/grpc"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/rpc"
)

// catalogService serves host.v1.Catalog.
type catalogService struct {
	hostv1.UnimplementedCatalogServer
	b *Broker
}

// LoadTable streams the table's metadata verbatim.
func (s *catalogService) LoadTable(r *hostv1.LoadTableRequest, st grpc.ServerStreamingServer[hostv1.LoadTableResponse]) error {
	l, err := s.b.lease(st.Context())
	if err != nil {
		return err
	}
	if err := l.live(); err != nil {
		return err
	}
	if l.spec.Catalog == nil {
		return st.Send(&hostv1.LoadTableResponse{Missing: true, DefaultLocation: l.spec.Location})
	}
	t, err := l.load(st.Context())
	if errors.Is(err, catalog.ErrNotFound) {
		return l.sendMissing(st)
	}
	if errors.Is(err, catalog.ErrUnreadable) { // trying again is of no use, and the user can tell why
		return refuse(kindPermanent, "load table: %s", clip(err.Error(), maxLogValue))
	}
	if err != nil {
		return s.b.explain(l, "load table", err)
	}
	if r.GetKnownLocation() != "" && r.GetKnownLocation() == t.MetadataLocation {
		return st.Send(&hostv1.LoadTableResponse{Location: t.MetadataLocation, Unchanged: true})
	}
	raw, err := l.rawMetadata(st.Context(), t)
	if err != nil {
		return s.b.explain(l, "read table metadata", err)
	}
	first := &hostv1.LoadTableResponse{Location: t.MetadataLocation, Metadata: raw[:min(len(raw), rpc.Chunk)]}
	if err := st.Send(first); err != nil {
		return err
	}
	for c := range slices.Chunk(raw[len(first.GetMetadata()):], rpc.Chunk) {
		if err := st.Send(&hostv1.LoadTableResponse{Metadata: c}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lease) sendMissing(st grpc.ServerStreamingServer[hostv1.LoadTableResponse]) error {
	if !l.mayCreate() {
		return refuse(kindNotFound, "table %s does not exist", l.spec.Ident)
	}
	location, err := l.defaultLocation(st.Context())
	if err != nil {
		return l.b.explain(l, "choose a location", err)
	}
	return st.Send(&hostv1.LoadTableResponse{Missing: true, DefaultLocation: location})
}

// defaultLocation is where the lease may create its table: LeaseSpec.Location, or what the catalog says the first time it is asked. It answers
// anew each time, and will where files lie already, so that a job with several leases gives them all one Location.
func (l *Lease) defaultLocation(ctx context.Context) (string, error) {
	if known := l.Location(); known != "" {
		return known, nil
	}
	location, err := l.spec.Catalog.DefaultLocation(ctx, l.spec.Ident)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.location == "" {
		l.location = location
	}
	return l.location, nil
}

// load asks the catalog and remembers the answer: commits are vetted against what was last served.
func (l *Lease) load(ctx context.Context) (*catalog.Table, error) {
	if err := fault.Hit("broker.load.before"); err != nil {
		return nil, err
	}
	t, err := l.spec.Catalog.Load(ctx, l.spec.Ident)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.missing = t, err != nil
	if err != nil {
		l.last = nil
		return nil, err
	}
	if l.spec.Mode != sinkv1.WriteMode_WRITE_MODE_UNSPECIFIED && l.spec.Mode != sinkv1.WriteMode_WRITE_MODE_CREATE {
		if l.uuid == "" {
			l.uuid = t.UUID
		}
		if !sameUUID(l.uuid, t.UUID) { // C32
			l.last = nil
			return nil, refuse(kindPermanent, "table %s was dropped and created again: it has UUID %s, the job writes to %s", l.spec.Ident, t.UUID, l.uuid)
		}
	}
	return t, nil
}

func (l *Lease) rawMetadata(ctx context.Context, t *catalog.Table) ([]byte, error) {
	key := l.spec.Catalog.Name() + "\x00" + t.UUID + "\x00" + t.MetadataLocation
	if raw, ok := l.b.raw.get(key); ok {
		return raw, nil
	}
	raw, err := l.spec.Catalog.RawMetadata(ctx, t)
	if err == nil {
		l.b.raw.put(key, raw)
	}
	return raw, err
}

// explain logs an error with its cause and returns what the plugin may know of it.
func (b *Broker) explain(l *Lease, op string, err error) error {
	out := toRefusal(op, err)
	level := slog.LevelDebug
	var r *Refusal
	if errors.As(out, &r) && r.Kind == kindRetryable && !errors.Is(err, context.Canceled) { // nobody asked for this one
		level = slog.LevelWarn
	}
	b.log.Log(context.Background(), level, "host call refused", "job", l.spec.JobID, "op", op, "cause", err)
	return out
}
