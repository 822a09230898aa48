package iceberg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// attempt is one try of a commit: load, look, check, build, send.
type attempt struct {
	sink    *Sink
	host    Host
	batch   *batch
	resp    *sinkv1.CommitResponse
	nonce   string
	n       int
	metrics *sinkv1.CommitMetrics // of what was built last
	before  *meta.Metadata        // the table as it was defined before a replacement
	// created waits for the manifests that the call creates; nil: they are still to be created.
	created func() error
}

func (a *attempt) run(ctx context.Context) error {
	if a.created == nil {
		a.created = a.batch.create(ctx, a.host)
	}
	start := a.sink.now()
	t, err := a.sink.load(ctx, a.host, a.batch.req.GetTable(), a.n > 1)
	a.lap(&a.resp.Timings.LoadMicros, &start)
	if err != nil {
		return err
	}
	if done, err := a.look(t); done || err != nil {
		return err
	}
	req, manifests, listURI, err := a.build(ctx, t)
	a.lap(&a.resp.Timings.BuildMicros, &start)
	if errors.Is(err, errNothing) {
		a.unchanged(t)
		return nil
	}
	if err != nil {
		return err
	}
	if err = a.created(); err != nil {
		a.created = nil
	} else {
		err = a.send(ctx, req)
	}
	a.lap(&a.resp.Timings.CommitMicros, &start)
	if err == nil && listURI != "" {
		a.sink.lists.put(listURI, listURI, manifests)
	}
	return err
}

func (a *attempt) lap(micros *int64, since *time.Time) {
	now := a.sink.now()
	*micros += now.Sub(*since).Microseconds()
	*since = now
}

// look decides what the state of the table means for the batch: landed before, refused, or to be built.
func (a *attempt) look(t *table) (done bool, err error) {
	b, ref := a.batch, a.batch.req.GetTable()
	create := b.plan.GetCreatesTable()
	switch {
	case t.missing && create:
		return false, nil
	case t.missing:
		return false, sdk.Refuse(sdk.Permanent, "table %s has been dropped since the job was planned", tableName(ref))
	case t.UUID != b.plan.GetTableUuid() && create:
		return false, sdk.Refuse(sdk.Permanent, "table %s was created by someone else since the job was planned", tableName(ref))
	case t.UUID != b.plan.GetTableUuid(): // C32
		return false, sdk.Refuse(sdk.Permanent, "table %s was dropped and created again since the job was planned: it has UUID %s, the files were written for %s",
			tableName(ref), t.UUID, b.plan.GetTableUuid())
	}
	found, version := 0, ""
	for _, m := range b.markers {
		id, ok, err := t.findMarker(b.req.GetMarkerProperty(), m)
		if err != nil {
			return false, permanent(ref, err)
		}
		if ok {
			found, version = found+1, versionOf(id)
		}
	}
	switch {
	case found == len(b.markers) || create: // a table of this UUID can only be the one that this job created
		a.resp.Outcome, a.resp.Version, a.resp.Location = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, version, t.location
		return true, nil
	case found > 0:
		return false, sdk.Refuse(sdk.Permanent, "table %s: %d of %d jobs of this commit have been committed before; commit the others without them", tableName(ref), found, len(b.markers))
	}
	if id := b.plan.GetWapId(); id != "" {
		if err := unstaged(t.Metadata, id); err != nil {
			return false, permanent(ref, err)
		}
	}
	landable := b.landable
	switch {
	case b.plan.Replace != nil:
		landable = b.replaceable
	case b.plan.GetPick() != "":
		landable = b.pickable
	}
	if err := landable(t); err != nil {
		return false, permanent(ref, err)
	}
	if b.nothing() { // C16
		a.unchanged(t)
		return true, nil
	}
	return false, nil
}

// unchanged ends a commit that has nothing to do.
func (a *attempt) unchanged(t *table) {
	a.resp.Outcome, a.resp.Location, a.resp.Message = sinkv1.Outcome_OUTCOME_COMMITTED, t.location, "no files: the table was not changed"
	if id, err := t.BranchID(a.batch.branch()); err == nil && id != nil {
		a.resp.Version = versionOf(*id)
	}
}

// build writes the manifest list and makes the request. A table that is created gets a first snapshot even if it has no rows: it carries the marker, and
// the host seals snapshots.
func (a *attempt) build(ctx context.Context, t *table) (req *request, manifests []icefile.Manifest, listURI string, err error) {
	b := a.batch
	req = &request{}
	props := map[string]string{}
	base, location := t.Metadata, b.plan.Location
	if t.missing {
		base = &meta.Metadata{FormatVersion: int(b.plan.GetFormatVersion()), CurrentSchemaID: b.plan.GetSchemaId()}
		req.create(b.plan)
		maps.Copy(props, b.plan.Create.Properties)
	} else {
		location = t.Location
		if err := req.onHead(t, b.branch()); err != nil {
			return nil, nil, "", permanent(b.req.GetTable(), err)
		}
		if d := b.plan.Replace; d != nil {
			req.redefine(b.plan)
			maps.Copy(props, d.Properties)
			next := *base
			next.FormatVersion, next.CurrentSchemaID = max(d.Version, base.FormatVersion), b.plan.GetSchemaId()
			a.before, base = base, &next
		}
	}
	snap, manifests, err := a.snapshot(ctx, base, location)
	if err != nil {
		return nil, nil, "", err
	}
	if err := b.mapNames(base, props); err != nil {
		return nil, nil, "", permanent(b.req.GetTable(), err)
	}
	if b.plan.GetWapId() == "" {
		req.snapshot(snap, b.branch(), base.Refs[b.branch()])
	} else {
		req.stage(snap)
	}
	props[b.req.GetMarkerProperty()] = addMarkers(base.Properties[b.req.GetMarkerProperty()], b.markers, snap.ID, b.req.GetKeepMarkers())
	req.setProperties(props)
	return req, manifests, snap.ManifestList, nil
}

// snapshot writes the manifest list of the batch on top of base, and describes it.
func (a *attempt) snapshot(ctx context.Context, base *meta.Metadata, location string) (*meta.Snapshot, []icefile.Manifest, error) {
	b := a.batch
	head, err := base.Branch(b.branch())
	if err != nil {
		return nil, nil, permanent(b.req.GetTable(), err)
	}
	s := &meta.Snapshot{
		ID: b.snapshotID, ParentID: idOf(head), TimestampMS: max(a.sink.now().UnixMilli(), base.LastUpdatedMS),
		SchemaID: &base.CurrentSchemaID,
	}
	if s.ID == 0 {
		if s.ID, err = freshID(base); err != nil {
			return nil, nil, permanent(b.req.GetTable(), err)
		}
	}
	if base.FormatVersion >= 2 {
		s.SequenceNumber = base.LastSequenceNumber + 1
	}
	manifests := make([]icefile.Manifest, 0, len(b.refs))
	for _, r := range b.refs {
		manifests = append(manifests, r.manifest(s.ID, s.SequenceNumber))
	}
	old, err := a.parents(ctx, base, head)
	if err != nil {
		return nil, nil, err
	}
	gone := newRemoval(a, base, s)
	if b.plan.GetPick() != "" {
		if manifests, err = gone.pick(ctx, head); err != nil {
			return nil, nil, err
		}
	}
	if err := a.checkPaths(ctx, old); err != nil {
		return nil, nil, err
	}
	var clustered *reclustering
	if b.plan.Operation == operationManifests {
		if old, clustered, err = gone.recluster(ctx, old); err != nil {
			return nil, nil, err
		}
	} else if b.plan.Mode != 0 && (b.pick == nil || b.pick.overwrites) {
		if old, err = gone.remove(ctx, head, old); err != nil {
			return nil, nil, err
		}
	}
	if b.req.GetMode() != sinkv1.WriteMode_WRITE_MODE_REPLACE && base.FormatVersion >= 2 && clustered == nil {
		if old, err = gone.merge(ctx, old, len(manifests)); err != nil {
			return nil, nil, err
		}
	}
	manifests = append(manifests, old...)
	s.Summary = b.summary(head, gone)
	if clustered != nil {
		clustered.summary(s.Summary)
	}
	a.metrics = &sinkv1.CommitMetrics{
		SequenceNumber: s.SequenceNumber, AddedFiles: b.added.dataFiles, RemovedFiles: gone.gone.dataFiles, AddedRows: b.added.rows, RemovedRows: gone.gone.rows,
		Partitions: int64(b.touched(gone)), AddedDeleteFiles: b.added.deleteFiles(), RemovedDeleteFiles: gone.gone.deleteFiles(),
	}
	// The job is in the name so that what a process that died has left can be told from other writers' files.
	s.ManifestList = metadataPath(location, "snap-%d-%d-%s-%s.avro", s.ID, a.n, b.units[0].GetJobId(), a.nonce)
	h := icefile.ListHeader{Version: base.FormatVersion, SnapshotID: s.ID, ParentID: s.ParentID, SequenceNumber: s.SequenceNumber, FirstRowID: base.NextRowID}
	data, rowIDs, err := icefile.WriteList(h, manifests)
	if err != nil {
		return nil, nil, permanent(b.req.GetTable(), err)
	}
	if base.FormatVersion >= 3 {
		s.FirstRowID, s.AddedRows = &base.NextRowID, &rowIDs
	}
	return s, manifests, a.putList(ctx, s.ManifestList, data)
}

func idOf(s *meta.Snapshot) *int64 {
	if s == nil {
		return nil
	}
	return &s.ID
}

// freshID chooses a snapshot id that the table does not have.
func freshID(base *meta.Metadata) (int64, error) {
	for {
		id := rand.Int64() | 1 // never 0
		if s, err := base.Snapshot(id); s == nil {
			return id, err
		}
	}
}

// parents are the manifests of the head that have files.
func (a *attempt) parents(ctx context.Context, base *meta.Metadata, head *meta.Snapshot) ([]icefile.Manifest, error) {
	if head == nil {
		return nil, nil
	}
	manifests, err := a.sink.manifests(ctx, a.host, head)
	if err != nil {
		return nil, err
	}
	out := make([]icefile.Manifest, 0, len(manifests))
	for _, m := range manifests {
		if m.SnapshotID == nil {
			m.SnapshotID = &head.ID // the nearest that is known
		}
		if base.FormatVersion >= 2 && (!m.Files.Known() || !m.Rows.Known()) { // tables that were of version 1 once
			if m.Files, m.Rows, err = a.count(ctx, m.Path); err != nil {
				return nil, err
			}
		}
		if m.Files.Known() && m.Files.Live() == 0 { // it says what an earlier snapshot removed
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

func (a *attempt) count(ctx context.Context, uri string) (files, rows icefile.Counts, err error) {
	raw, err := a.host.Get(ctx, uri)
	if err != nil {
		return files, rows, fmt.Errorf("read Iceberg manifest %s: %w", uri, err)
	}
	if files, rows, err = icefile.Count(raw); err != nil {
		err = sdk.Refuse(sdk.Permanent, "Iceberg manifest %s: %v", uri, err)
	}
	return files, rows, err
}

// manifests reads the manifest list of a snapshot.
func (s *Sink) manifests(ctx context.Context, h Host, snap *meta.Snapshot) ([]icefile.Manifest, error) {
	if _, list, ok := s.lists.latest(snap.ManifestList); ok {
		return list, nil
	}
	raw, err := h.Get(ctx, snap.ManifestList)
	if err != nil {
		return nil, fmt.Errorf("read manifest list %s: %w", snap.ManifestList, err)
	}
	list, err := icefile.ReadList(raw)
	if err != nil {
		return nil, sdk.Refuse(sdk.Permanent, "manifest list %s: %v", snap.ManifestList, err)
	}
	s.lists.put(snap.ManifestList, snap.ManifestList, list)
	return list, nil
}

func (a *attempt) putList(ctx context.Context, uri string, data []byte) error {
	if err := hit("iceberg.commit.before-list"); err != nil {
		return err
	}
	_, err := a.host.PutIfAbsent(ctx, uri, data)
	switch {
	case errors.Is(err, sdk.ErrExists):
		a.nonce = nonce()
		return sdk.Refuse(sdk.Retryable, "manifest list %s exists already", uri)
	case err != nil:
		return fmt.Errorf("write manifest list %s: %w", uri, err)
	}
	return hit("iceberg.commit.after-list")
}

// send asks for the commit point.
func (a *attempt) send(ctx context.Context, req *request) error {
	requirements, updates, err := req.encode()
	if err != nil {
		return permanent(a.batch.req.GetTable(), err)
	}
	if err := hit("iceberg.commit.before-send"); err != nil {
		return err
	}
	location, version, err := a.host.CommitTable(ctx, requirements, updates)
	if errors.Is(err, sdk.ErrExists) { // the table that was to be created
		return fmt.Errorf("%w: %w", sdk.Refuse(sdk.Conflict, "the table exists"), err)
	}
	if err != nil {
		return err
	}
	a.resp.Outcome, a.resp.Version, a.resp.Location, a.resp.Metrics = sinkv1.Outcome_OUTCOME_COMMITTED, version, location, a.metrics
	return fault.Hit("iceberg.commit.after-send")
}
