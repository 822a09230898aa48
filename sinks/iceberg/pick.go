package iceberg

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/evolve"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// picking is what a commit makes once more on top of main (WRITE_MODE_PICK): the files that a staged snapshot has added, and for an overwrite of partitions
// those that it has removed. A snapshot and its manifests never change, so that they are read once for all attempts of a commit.
type picking struct {
	*meta.Snapshot
	overwrites bool // partitions
	parts      []pickedPart
	places     map[string]bool // partitions of the added files

	made    []icefile.Manifest // of the added files, for a table of the version; nil: still to be written
	version int
}

// pickedPart is a manifest of the picked snapshot with the entries that it added.
type pickedPart struct {
	spec  int32
	held  *icemanifest.Manifest
	added []*icemanifest.Entry
}

// pick makes the intent of a write that picks a snapshot.
func (in *intent) pick(m *meta.Metadata, id string) error {
	s, err := pickedSnapshot(m, id)
	if err != nil {
		return err
	}
	in.picked, in.checkPaths = s, true
	if s.ParentID == nil {
		return nil
	}
	parent, err := m.Snapshot(*s.ParentID)
	if parent != nil {
		in.sequence = parent.SequenceNumber
	}
	return err
}

// pickedSnapshot is the snapshot of the id, if its changes can be made once more on top of main as it is.
func pickedSnapshot(m *meta.Metadata, id string) (*meta.Snapshot, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no snapshot's id", id)
	}
	s, err := m.Snapshot(n)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("it has no snapshot %d any more; run the statement that staged it again", n)
	}
	line, err := m.Ancestors(m.HeadID())
	if err != nil {
		return nil, err
	}
	if err := evolve.Published(s, line); err != nil {
		return nil, err
	}
	if err := evolve.Pickable(s, line, m.FormatVersion); err != nil {
		return nil, err
	}
	return s, pickedColumns(m, s)
}

// pickedColumns refuses a snapshot whose files lack values that the table has come to demand.
func pickedColumns(m *meta.Metadata, s *meta.Snapshot) error {
	current, err := m.CurrentSchema()
	if err != nil || s.SchemaID != nil && *s.SchemaID == m.CurrentSchemaID {
		return err
	}
	written := &meta.Schema{}
	if s.SchemaID != nil {
		if written, err = m.Schema(*s.SchemaID); err != nil {
			return err
		}
	}
	if written == nil {
		return fmt.Errorf("the table does not have schema %d any more, under which snapshot %d was written; run its statement again", *s.SchemaID, s.ID)
	}
	unknown := func(*meta.Node) bool { return false } // the statement that staged it may have written NULLs
	return requiredColumns(written, current, unknown, fmt.Sprintf("after snapshot %d was staged", s.ID), "run its statement again")
}

// pickable says why the plan's snapshot cannot be picked on top of the table as it is now.
func (b *batch) pickable(t *table) error {
	if err := writable(t.Metadata); err != nil {
		return err
	}
	_, err := pickedSnapshot(t.Metadata, b.plan.GetPick())
	return err
}

// pick reads what the snapshot did, and answers the manifests of the files that it added as this commit adds them.
func (r *removal) pick(ctx context.Context, head *meta.Snapshot) ([]icefile.Manifest, error) {
	b := r.a.batch
	if b.pick == nil {
		s, err := pickedSnapshot(r.base, b.plan.GetPick())
		if err != nil {
			return nil, r.refuse("%v", err)
		}
		p := &picking{Snapshot: s, overwrites: s.Summary["operation"] != "append", places: map[string]bool{}}
		if err := r.readPicked(ctx, p); err != nil {
			return nil, err
		}
		b.pick = p
	}
	if err := r.stillWanted(ctx, head); err != nil {
		return nil, err
	}
	p := b.pick
	if p.made == nil || p.version != r.base.FormatVersion || p.version == 1 { // entries of version 1 name the commit's snapshot
		p.made, p.version = make([]icefile.Manifest, 0, len(p.parts)), r.base.FormatVersion
		for i, part := range p.parts {
			m, err := r.writePicked(ctx, part, i)
			if err != nil {
				p.made = nil
				return nil, err
			}
			p.made = append(p.made, m)
		}
	}
	out := slices.Clone(p.made)
	for i := range out {
		out[i].SnapshotID, out[i].SequenceNumber, out[i].MinSequenceNumber = &r.snap.ID, r.snap.SequenceNumber, r.snap.SequenceNumber
	}
	return out, nil
}

// readPicked reads the manifests that the snapshot wrote.
func (r *removal) readPicked(ctx context.Context, p *picking) error {
	b := r.a.batch
	list, err := r.a.sink.manifests(ctx, r.a.host, p.Snapshot)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(m icefile.Manifest) bool { return m.SnapshotID != nil && *m.SnapshotID != p.ID })
	held := make([]*icemanifest.Manifest, len(list))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i := range list {
		g.Go(func() (err error) {
			held[i], err = r.read(gctx, &list[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var added counts
	paths, replaced := map[string]bool{}, map[string]*change{}
	for i, h := range held {
		part := pickedPart{spec: list[i].SpecID, held: h}
		for _, e := range h.Entries {
			switch {
			case e.SnapshotID != p.ID || e.Status == icemanifest.Existing, e.Status == icemanifest.Deleted && e.Content != icemanifest.Data:
				continue
			case e.Content != icemanifest.Data:
				return r.refuse("snapshot %d adds the delete file %s, and only data files can be put on top of another snapshot; run its statement again", p.ID, e.Path)
			case e.Status == icemanifest.Deleted && !p.overwrites:
				return r.refuse("snapshot %d calls itself an append and removes data file %s", p.ID, e.Path)
			case e.Status == icemanifest.Deleted:
				replaced[e.Path] = &change{kind: changeReplaced, path: e.Path, records: e.Records}
				continue
			case paths[pathKey(e.Path)]:
				return r.refuse("snapshot %d has the data file %s twice", p.ID, e.Path)
			}
			key, err := r.partition(e, part.spec)
			if err != nil {
				return err
			}
			p.places[place(part.spec, key)], paths[pathKey(e.Path)] = true, true
			added.add(e)
			part.added = append(part.added, e)
		}
		if len(part.added) > 0 {
			p.parts = append(p.parts, part)
		}
	}
	b.added, b.paths, b.looked, b.replaced = added, paths, map[string]bool{}, replaced
	return nil
}

// writePicked writes a manifest of a part's files, as new ones. Files keep the partition spec and the partitions that they were written for.
func (r *removal) writePicked(ctx context.Context, part pickedPart, n int) (m icefile.Manifest, err error) {
	fields, err := r.spec(part.spec)
	if err != nil {
		return m, err
	}
	w, err := icefile.NewRewriter(r.base.FormatVersion, icefile.ContentData, part.held)
	if err != nil {
		return m, r.refuse("Iceberg manifest: %v", err)
	}
	tuples := make([][]*planv1.Value, len(part.added))
	for i, e := range part.added {
		if err := w.Add(e, r.snap.ID); err != nil {
			return m, r.refuse("Iceberg manifest: %v", err)
		}
		if tuples[i], err = r.values(e, part.spec); err != nil {
			return m, err
		}
	}
	done, err := w.Finish()
	if err != nil {
		return m, r.refuse("Iceberg manifest: %v", err)
	}
	m = icefile.Manifest{
		Path:   metadataPath(r.a.batch.plan.Location, "%s-%s-%d-p%d.avro", r.a.batch.units[0].GetJobId(), r.a.nonce, r.a.n, n),
		Length: int64(len(done.Data)), SpecID: part.spec, Content: icefile.ContentData, Files: done.Files, Rows: done.Rows,
	}
	if spec, err := r.base.Spec(part.spec); err == nil && spec != nil && len(spec.Fields) == len(fields) { // otherwise some types are not known any more
		m.Partitions = icefile.Summarize(fields, tuples)
	}
	return m, putManifest(ctx, r.a.host, m.Path, done.Data)
}

// stillWanted refuses files that were on main after they were staged, and that somebody has removed from it: their rows are not to come back. Snapshots that
// have expired cannot tell any more.
func (r *removal) stillWanted(ctx context.Context, head *meta.Snapshot) error {
	b := r.a.batch
	line, err := r.base.Ancestors(idOf(head))
	if err != nil {
		return r.refuse("%v", err)
	}
	for _, s := range line {
		if s.SequenceNumber < b.pick.SequenceNumber || s.SequenceNumber == 0 && s.TimestampMS < b.pick.TimestampMS {
			return nil
		}
		if s.Summary["operation"] == "append" || s.ManifestList == "" {
			continue
		}
		list, err := r.a.sink.manifests(ctx, r.a.host, s)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Content != icefile.ContentData || m.SnapshotID == nil || *m.SnapshotID != s.ID || m.Files.Deleted != nil && *m.Files.Deleted == 0 {
				continue
			}
			held, err := r.a.read(ctx, &m)
			if err != nil {
				return err
			}
			for _, e := range held.Entries {
				if !e.Live() && b.paths[pathKey(e.Path)] {
					return sdk.Refuse(sdk.Permanent, "table %s: data file %s of snapshot %d was on the main branch before, and snapshot %d has removed it: its rows are not brought back; run the statement of snapshot %d again",
						tableName(b.req.GetTable()), e.Path, b.pick.ID, s.ID, b.pick.ID)
				}
			}
		}
	}
	return nil
}

// summary says which snapshot was published, as the reference implementation does.
func (p *picking) summary(out map[string]string) {
	out[evolve.SummarySourceID] = versionOf(p.ID)
	if id := p.Summary[evolve.SummaryWapID]; id != "" {
		out[evolve.SummaryPublished] = id
	}
}
