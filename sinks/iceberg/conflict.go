package iceberg

import (
	"context"
	"strconv"

	"golang.org/x/sync/errgroup"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/filter"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// Isolation of writes that depend on what they have read.
const (
	serializable = "serializable"
	snapshotOnly = "snapshot"
)

// validate refuses a commit whose outcome would differ had it begun after what others have committed since the statement was planned. New files are
// told by their data sequence numbers, which no rewrite of manifests changes, so that expired snapshots hide nothing.
func (r *removal) validate(ctx context.Context, head *meta.Snapshot, manifests []icefile.Manifest) error {
	b := r.a.batch
	if head == nil || versionOf(head.ID) == b.plan.GetBaseVersion() {
		return nil
	}
	if err := r.sameLine(head); err != nil {
		return err
	}
	var newer []icefile.Manifest
	for _, m := range manifests {
		if m.SequenceNumber > b.plan.BaseSequence && (!m.Files.Known() || m.Files.Live() > 0) && (m.Content == icefile.ContentDeletes || r.dataMatters()) {
			newer = append(newer, m)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for _, m := range newer {
		g.Go(func() error { return r.newFiles(ctx, m) })
	}
	return g.Wait()
}

// sameLine refuses a branch that has been set to another history: what is new to it cannot be told by sequence numbers.
func (r *removal) sameLine(head *meta.Snapshot) error {
	b := r.a.batch
	id, err := strconv.ParseInt(b.plan.GetBaseVersion(), 10, 64)
	if err != nil { // there was no snapshot
		return nil //nolint:nilerr // everything is new then
	}
	base, err := r.base.Snapshot(id)
	if err != nil || base == nil { // expired, which only happens to what the branch has left behind
		return err
	}
	seen := 0
	for s := head; s != nil; seen++ {
		if s.ID == id {
			return nil
		}
		if s.ParentID == nil || s.SequenceNumber <= base.SequenceNumber {
			break
		}
		if s, err = r.base.Snapshot(*s.ParentID); err != nil {
			return err
		}
	}
	return r.refuse("%s was at snapshot %d when the %s was planned, and has been set to snapshot %d, which does not descend from it; run the statement again",
		orMain(b.plan.GetBranch()), id, b.what(), head.ID)
}

// dataMatters reports whether rows that others have added since can make the outcome another one.
func (r *removal) dataMatters() bool {
	b := r.a.batch
	switch {
	case b.pick != nil:
		return len(b.pick.places) > 0
	case b.overwrites():
		// What writes nothing only deletes, and does it to the rows that are there when it commits.
		return b.files > 0
	case b.req.GetMode() == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		return b.plan.Isolation != snapshotOnly
	}
	return false
}

// newFiles looks for conflicts among the files that a manifest has and that came since.
func (r *removal) newFiles(ctx context.Context, m icefile.Manifest) error {
	b := r.a.batch
	held, err := r.a.read(ctx, &m)
	if err != nil {
		return err
	}
	fields, err := r.spec(m.SpecID)
	if err != nil {
		return err
	}
	for _, e := range held.Entries {
		if !e.Live() || e.Sequence <= b.plan.BaseSequence {
			continue
		}
		key, err := r.partition(e, m.SpecID)
		if err != nil {
			return err
		}
		if e.Content == icemanifest.Data {
			err = r.newData(e, m.SpecID, key)
		} else {
			err = r.newDeletes(e, place(m.SpecID, key), len(fields) == 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newData refuses rows that the statement has not seen and that it would have changed or removed.
func (r *removal) newData(e *icemanifest.Entry, spec int32, key string) error {
	b := r.a.batch
	if b.pick != nil {
		if !b.pick.places[place(spec, key)] {
			return nil
		}
		return r.refuse("snapshot %d has added data file %s to a partition that snapshot %d overwrites, after that one was staged; run the statement of snapshot %d again",
			e.SnapshotID, e.Path, b.pick.ID, b.pick.ID)
	}
	if b.overwrites() {
		if goes, err := r.dataFile(e, spec, key); err != nil || !goes {
			return err
		}
		return r.refuse("snapshot %d, which another writer has committed since the %s was planned, added data file %s, whose rows it would remove; run the statement again",
			e.SnapshotID, b.what(), e.Path)
	}
	if b.plan.GetScope().GetFilter() != nil {
		bound, err := r.bound(spec)
		if err != nil {
			return err
		}
		if !bound.Inclusive(filter.Held(e)) {
			return nil
		}
	}
	return r.refuse("snapshot %d, which another writer has committed since the %s was planned, added data file %s, whose rows it might have changed; run the statement again, "+
		"or set the table property write.%s.isolation-level=snapshot", e.SnapshotID, b.what(), e.Path, b.operation())
}

// newDeletes refuses deletes of rows that the commit writes anew: they would come back.
func (r *removal) newDeletes(e *icemanifest.Entry, where string, global bool) error {
	b := r.a.batch
	equality := e.Content == icemanifest.EqualityDeletes
	victim := ""
	switch {
	case b.overwrites() || b.pick != nil: // the rows go anyway
		return nil
	case equality && b.req.GetMode() == sinkv1.WriteMode_WRITE_MODE_REWRITE: // the new files keep their sequence number, so that they delete from these too
		return nil
	case e.Referenced != "" && r.targets[e.Referenced] != nil && (r.base.FormatVersion >= 3 || b.operation() != "delete"):
		victim = e.Referenced // its rows are deleted by both, or changed by this one
	case e.Referenced != "":
		if r.found[e.Referenced] != nil {
			victim = e.Referenced
		}
	case equality && global:
		victim = r.anyOf(func(*removed) bool { return true })
	default:
		victim = r.anyOf(func(f *removed) bool { return f.place == where })
	}
	// Deletes by value, or of several files: a deletion vector hides those by position.
	if victim == "" && e.Referenced == "" && (b.operation() != "delete" || !equality && r.base.FormatVersion >= 3) {
		for path, t := range r.targets {
			if (equality && global || t.place == where) && (victim == "" || path < victim) {
				victim = path
			}
		}
	}
	if victim == "" {
		return nil
	}
	return r.refuse("snapshot %d, which another writer has committed since the %s was planned, deleted rows of data file %s, of which the %s changes rows (delete file %s); run the statement again",
		e.SnapshotID, b.what(), victim, b.what(), e.Path)
}

// anyOf names a removed file of which f holds; the first by name, so that the message is the same every time.
func (r *removal) anyOf(f func(*removed) bool) string {
	first := ""
	for path, file := range r.found {
		if f(file) && (first == "" || path < first) {
			first = path
		}
	}
	return first
}

func orMain(branch string) string {
	if branch == "" {
		branch = meta.MainBranch
	}
	return "branch " + branch
}

// remover is the snapshot that has removed a data file since the statement was planned; 0: it cannot be told any more.
func (r *removal) remover(ctx context.Context, head *meta.Snapshot, path string) (int64, error) {
	for s := head; s != nil && versionOf(s.ID) != r.a.batch.plan.GetBaseVersion(); {
		if s.Summary["operation"] != "append" && s.ManifestList != "" {
			list, err := r.a.sink.manifests(ctx, r.a.host, s)
			if err != nil {
				return 0, err
			}
			for _, m := range list {
				if m.Content != icefile.ContentData || m.SnapshotID == nil || *m.SnapshotID != s.ID || m.Files.Deleted != nil && *m.Files.Deleted == 0 {
					continue
				}
				held, err := r.a.read(ctx, &m)
				if err != nil {
					return 0, err
				}
				for _, e := range held.Entries {
					if !e.Live() && e.Path == path {
						return s.ID, nil
					}
				}
			}
		}
		if s.ParentID == nil {
			break
		}
		var err error
		if s, err = r.base.Snapshot(*s.ParentID); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
