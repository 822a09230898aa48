package broker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"google.golang.org/grpc"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/rpc"
)

// maxRequest caps requirements and updates together, in bytes: the request is journalled whole.
const maxRequest = rpc.MaxMessage / 2

// CommitTable is the catalog's commit point.
func (s *catalogService) CommitTable(st grpc.ClientStreamingServer[hostv1.CommitTableRequest, hostv1.CommitTableResponse]) error {
	l, err := s.b.lease(st.Context())
	if err != nil {
		return err
	}
	reqs, upds, err := recvRequest(st)
	if err != nil {
		return toRefusal("receive the request", err)
	}
	commit := l.commitTable
	if l.spec.AllowAlter {
		commit = l.alterTable
	}
	at, err := commit(st.Context(), reqs, upds)
	if err != nil {
		return toRefusal("commit", err)
	}
	return st.SendAndClose(&hostv1.CommitTableResponse{Location: at.location, Version: at.version})
}

func recvRequest(st grpc.ClientStreamingServer[hostv1.CommitTableRequest, hostv1.CommitTableResponse]) (reqs, upds []byte, err error) {
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return reqs, upds, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if len(reqs)+len(upds)+len(m.GetRequirements())+len(m.GetUpdates()) > maxRequest {
			return nil, nil, invalid("the request passes %d bytes", maxRequest)
		}
		if reqs == nil && upds == nil {
			reqs, upds = m.GetRequirements(), m.GetUpdates()
			continue
		}
		reqs, upds = append(reqs, m.GetRequirements()...), append(upds, m.GetUpdates()...)
	}
}

func (l *Lease) commitTable(ctx context.Context, reqs, upds []byte) (*landing, error) {
	l.committing.Lock()
	defer l.committing.Unlock()
	if err := l.mayCommit(ctx); err != nil {
		return nil, err
	}
	if l.spec.Catalog == nil {
		return nil, refuse(kindPermanent, "this table has no catalog")
	}
	req, err := parseRequest(reqs, upds)
	if err != nil {
		return nil, err
	}
	a, err := l.vet(ctx, req)
	if err != nil {
		return nil, err
	}
	t, err := l.b.target(&l.spec, coordinator.KindCatalog)
	if err != nil {
		return nil, err
	}
	return l.commit(ctx, a, t)
}

// commit seals, sends and waits.
func (l *Lease) commit(ctx context.Context, a coordinator.Attempt, t target) (*landing, error) {
	r, err := l.seal(ctx, a, t)
	if err != nil {
		return nil, err
	}
	return l.outcomeOf(ctx, r)
}

// outcomeOf waits for what becomes of a sealed attempt.
func (l *Lease) outcomeOf(ctx context.Context, r *run) (*landing, error) {
	o, err := l.await(ctx, r)
	if err != nil {
		return nil, err
	}
	return answer(r, o)
}

// mayCommit refuses a lease that may not, has committed, or has an attempt whose outcome is open. For that one it waits a while.
func (l *Lease) mayCommit(ctx context.Context) error {
	if l.spec.Gate == nil || l.spec.ReadOnly {
		return refuse(kindPermanent, "the lease does not commit")
	}
	l.mu.Lock()
	r := l.run
	l.mu.Unlock()
	if r != nil {
		o, err := l.await(ctx, r)
		if err != nil {
			return err
		}
		if o.Kind == coordinator.OutcomeLanded || o.Kind == coordinator.OutcomeFound {
			return alreadyAt(o.Version, o.Location)
		}
	}
	if at := l.hasLanded(); at != nil {
		return alreadyAt(at.version, at.location)
	}
	return l.live()
}

// vet checks the request by the rules of the lease's write mode and makes it an attempt. The table as last served is what it is checked
// against: the catalog compares the requirements itself.
func (l *Lease) vet(ctx context.Context, req *request) (coordinator.Attempt, error) {
	t, err := l.served(ctx)
	if err != nil {
		return coordinator.Attempt{}, err
	}
	if t != nil {
		if err := l.checkMarkers(t); err != nil {
			return coordinator.Attempt{}, err
		}
	}
	a := coordinator.Attempt{Kind: coordinator.KindCatalog, Markers: l.spec.Markers, Requirements: req.requirements, Updates: req.updates}
	switch l.spec.Mode {
	case sinkv1.WriteMode_WRITE_MODE_APPEND, sinkv1.WriteMode_WRITE_MODE_OVERWRITE, sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, sinkv1.WriteMode_WRITE_MODE_REWRITE,
		sinkv1.WriteMode_WRITE_MODE_REPLACE, sinkv1.WriteMode_WRITE_MODE_PICK:
		if t == nil {
			return a, refuse(kindNotFound, "table %s does not exist", l.spec.Ident)
		}
		if err := l.vetWrite(ctx, t, req); err != nil {
			return a, err
		}
		a.TableUUID, a.Location = t.UUID, t.Location
		// A snapshot that no branch has may expire without any branch moving, and its files with it: what picks it has to find it there when it lands.
		if t.Metadata.Version() == 1 || l.spec.Mode == sinkv1.WriteMode_WRITE_MODE_PICK {
			a.Follows = t.MetadataLocation
			var err error
			if a.Requirements, err = following(req.requirements, t.MetadataLocation); err != nil {
				return a, err
			}
		}
	case sinkv1.WriteMode_WRITE_MODE_CREATE:
		if t != nil {
			return a, refuse(kindExists, "table %s exists", l.spec.Ident)
		}
		if err := l.vetCreate(ctx, req); err != nil {
			return a, err
		}
		a.TableUUID, a.Location, a.Creates = req.assignUUID, req.location, true
	default:
		return a, refuse(kindPermanent, "write mode %v does not commit to a catalog", l.spec.Mode)
	}
	a.SnapshotID, a.Parent, a.SequenceNumber = req.snapshot.ID, req.parent, req.snapshot.Sequence
	a.Version = strconv.FormatInt(a.SnapshotID, 10)
	return a, nil
}

// served is the table as last served; nil where it did not exist.
func (l *Lease) served(ctx context.Context) (*catalog.Table, error) {
	l.mu.Lock()
	t, missing := l.last, l.missing
	l.mu.Unlock()
	if t != nil || missing {
		return t, nil
	}
	t, err := l.load(ctx)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, l.b.explain(l, "load table", err)
	}
	return t, nil
}

// checkMarkers looks for the lease's markers before anything is sent (C4, C5): memory and journal may have been lost.
func (l *Lease) checkMarkers(t *catalog.Table) error {
	found := findMarkers(t.Metadata, l.spec.MarkerProperty, l.spec.Markers)
	switch len(found) {
	case 0:
		return nil
	case len(l.spec.Markers):
		at := &landing{version: anyOf(found), location: t.MetadataLocation}
		l.markLanded(at.version, at.location)
		return alreadyAt(at.version, at.location)
	default:
		return refuse(kindPermanent, "%d of %d units have committed before: commit the others without them", len(found), len(l.spec.Markers))
	}
}

// following adds to the requirements of a request that it follows this very metadata. Snapshots of format version 1 have no sequence numbers, by which a
// request that may be on its way could be told dead once the table has gone on; and some requests rely on more than requirements can say.
func following(requirements json.RawMessage, location string) (json.RawMessage, error) {
	var all []json.RawMessage // snapshot ids are no floating-point numbers
	if err := json.Unmarshal(requirements, &all); err != nil {
		return nil, invalid("requirements: %v", err)
	}
	own, err := json.Marshal(map[string]string{"type": catalog.AssertMetadataLocation, "metadata-location": location})
	if err != nil {
		return nil, err
	}
	return json.Marshal(append(all, own))
}
