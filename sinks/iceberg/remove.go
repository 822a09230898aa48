package iceberg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/filter"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// parallelReads is how many manifests of the head are read at a time.
const parallelReads = 8

// removal is what a commit takes away from the head, and the manifests that are left.
type removal struct {
	a     *attempt
	base  *meta.Metadata
	snap  *meta.Snapshot // that removes
	specs map[int32][]*planv1.PartitionField
	// filter is the condition of the write, and bounds what it is for each spec.
	filter *filter.Filter
	bounds map[int32]*filter.Bound

	mu      sync.Mutex
	found   map[string]*removed // data files that go, by path
	targets map[string]*target  // data files of which the commit deletes rows, by path
	gone    counts
	tuples  map[string]bool // partitions touched
	rewrite int             // names the manifests that were written
}

// removed is one data file that goes.
type removed struct{ place string } // its spec and partition

func newRemoval(a *attempt, base *meta.Metadata, snap *meta.Snapshot) *removal {
	return &removal{a: a, base: base, snap: snap, specs: map[int32][]*planv1.PartitionField{}, bounds: map[int32]*filter.Bound{}, found: map[string]*removed{}, targets: map[string]*target{}, tuples: map[string]bool{}}
}

// remove makes the manifests of the head without what the batch removes.
func (r *removal) remove(ctx context.Context, head *meta.Snapshot, manifests []icefile.Manifest) ([]icefile.Manifest, error) {
	a, snap := r.a, r.snap
	if err := a.batch.readAll(ctx, a.host); err != nil {
		return nil, err
	}
	out := slices.Clone(manifests)
	if err := r.each(ctx, out, icefile.ContentData); err != nil {
		return nil, err
	}
	if err := r.complete(ctx, head); err != nil {
		return nil, err
	}
	if err := r.validate(ctx, head, manifests); err != nil {
		return nil, err
	}
	if err := r.each(ctx, out, icefile.ContentDeletes); err != nil {
		return nil, err
	}
	added, err := r.addDeletes(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(added, out...), func(m icefile.Manifest) bool { // nothing of it is in the table any more, and it is not this commit's
		return m.Files.Known() && m.Files.Live() == 0 && (m.SnapshotID == nil || *m.SnapshotID != snap.ID)
	}), nil
}

// each visits the manifests of one content, in waves, and puts the rewritten ones in their places.
func (r *removal) each(ctx context.Context, manifests []icefile.Manifest, content int32) error {
	var todo []int
	oldest := oldestData(manifests, r.snap.SequenceNumber)
	for i, m := range manifests {
		if m.Content != content || m.Files.Known() && m.Files.Live() == 0 {
			continue
		}
		if content == icefile.ContentData && !r.a.batch.byPath() {
			if ok, err := r.covered(&m); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		todo = append(todo, i)
	}
	for wave := range slices.Chunk(todo, parallelReads) {
		if content == icefile.ContentData && r.a.batch.byPath() && len(r.found) == len(r.a.batch.replaced) && len(r.targets) == len(r.a.batch.deletes) {
			return nil
		}
		g, ctx := errgroup.WithContext(ctx)
		for _, i := range wave {
			r.rewrite++
			n := r.rewrite
			g.Go(func() error { return r.manifest(ctx, &manifests[i], n, oldest) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// oldestData is the smallest data sequence number of a live data file: delete files below it delete nothing.
func oldestData(manifests []icefile.Manifest, now int64) int64 {
	oldest := now
	for _, m := range manifests {
		if m.Content == icefile.ContentData && (!m.Files.Known() || m.Files.Live() > 0) {
			oldest = min(oldest, m.MinSequenceNumber)
		}
	}
	return oldest
}

// manifest rewrites one manifest if the commit removes something of it.
func (r *removal) manifest(ctx context.Context, m *icefile.Manifest, n int, oldest int64) error {
	held, err := r.read(ctx, m)
	if err != nil {
		return err
	}
	goes, err := r.choose(held, m, oldest)
	if err != nil || !slices.Contains(goes, true) {
		return err
	}
	w, err := icefile.NewRewriter(r.base.FormatVersion, m.Content, held)
	if err != nil {
		return r.refuse("Iceberg manifest %s: %v", m.Path, err)
	}
	for i, e := range held.Entries {
		switch {
		case !e.Live():
		case goes[i]:
			err = w.Delete(e, r.snap.ID)
		default:
			err = w.Keep(e)
		}
		if err != nil {
			return r.refuse("Iceberg manifest %s: %v", m.Path, err)
		}
	}
	done, err := w.Finish()
	if err != nil {
		return r.refuse("Iceberg manifest %s: %v", m.Path, err)
	}
	path := metadataPath(r.a.batch.plan.Location, "%s-%s-%d-r%d.avro", r.a.batch.units[0].GetJobId(), r.a.nonce, r.a.n, n)
	if err := putManifest(ctx, r.a.host, path, done.Data); err != nil {
		return err
	}
	*m = rewrittenAs(*m, path, done, r.snap)
	return nil
}

// rewrittenAs is the list's record of a manifest that stands in another one's place.
func rewrittenAs(m icefile.Manifest, path string, done *icefile.Rewritten, snap *meta.Snapshot) icefile.Manifest {
	m.Path, m.Length, m.SnapshotID, m.Files, m.Rows = path, int64(len(done.Data)), &snap.ID, done.Files, done.Rows
	m.SequenceNumber, m.MinSequenceNumber = snap.SequenceNumber, snap.SequenceNumber
	if done.MinSequence != nil {
		m.MinSequenceNumber = *done.MinSequence
	}
	if !done.RowIDs {
		m.FirstRowID = nil // the list gives those that have none
	}
	return m
}

// read reads a manifest of the head.
func (a *attempt) read(ctx context.Context, m *icefile.Manifest) (*icemanifest.Manifest, error) {
	if m.Key != nil {
		return nil, sdk.Refuse(sdk.Permanent, "table %s: Iceberg manifest %s is encrypted, which is not supported", tableName(a.batch.req.GetTable()), m.Path)
	}
	raw, err := a.host.Get(ctx, m.Path)
	if err != nil {
		return nil, fmt.Errorf("read Iceberg manifest %s: %w", m.Path, err)
	}
	list := icemanifest.Record{Content: m.Content, SequenceNumber: m.SequenceNumber, FirstRowID: m.FirstRowID}
	if m.SnapshotID != nil {
		list.SnapshotID = *m.SnapshotID
	}
	held, err := icemanifest.Read(raw, list)
	if err != nil {
		return nil, sdk.Refuse(sdk.Permanent, "table %s: Iceberg manifest %s: %v", tableName(a.batch.req.GetTable()), m.Path, err)
	}
	return held, nil
}

func (r *removal) refuse(format string, args ...any) error {
	return sdk.Refuse(sdk.Permanent, "table %s: %s", tableName(r.a.batch.req.GetTable()), fmt.Sprintf(format, args...))
}

// took counts a file that goes.
func (r *removal) took(e *icemanifest.Entry, spec int32, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone.add(e)
	where := place(spec, key)
	r.tuples[where] = true
	if e.Content == icemanifest.Data {
		r.found[e.Path] = &removed{place: where}
	}
}

// complete refuses a commit that is to replace a file that is not there any more.
func (r *removal) complete(ctx context.Context, head *meta.Snapshot) error {
	b := r.a.batch
	if !b.byPath() {
		return nil
	}
	missing := func(path string) error {
		by := "another writer"
		if id, err := r.remover(ctx, head, path); err != nil {
			return err
		} else if id != 0 {
			by = fmt.Sprintf("snapshot %d, which another writer has committed,", id)
		}
		if b.pick != nil {
			return r.refuse("data file %s, which snapshot %d replaces, is not in the table any more: %s has removed it since; run the statement of snapshot %d again", path, b.pick.ID, by, b.pick.ID)
		}
		return r.refuse("data file %s, of which the %s changes rows, is not in the table any more: %s has removed it since snapshot %s; run the statement again",
			path, b.what(), by, orNone(b.plan.GetBaseVersion()))
	}
	for _, path := range slices.Sorted(maps.Keys(b.replaced)) {
		if r.found[path] == nil {
			return missing(path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.deletes)) {
		if r.targets[path] == nil {
			return missing(path)
		}
		if r.found[path] != nil {
			return r.refuse("data file %s is replaced and has rows deleted by the same commit", path)
		}
	}
	return nil
}

// byPath reports whether the files that go are named one by one.
func (b *batch) byPath() bool {
	m := b.req.GetMode()
	return m == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL || m == sinkv1.WriteMode_WRITE_MODE_REWRITE || m == sinkv1.WriteMode_WRITE_MODE_PICK
}

func orNone(version string) string {
	if version == "" {
		return "(none)"
	}
	return version
}
