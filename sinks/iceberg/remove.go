package iceberg

import (
	"context"
	"fmt"
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
	gone    counts
	tuples  map[string]bool // partitions touched
	rewrite int             // names the manifests that were written
}

// removed is one data file that goes.
type removed struct{ place string } // its spec and partition

// remove makes the manifests of the head without what the batch removes.
func (a *attempt) remove(ctx context.Context, base *meta.Metadata, head, snap *meta.Snapshot, manifests []icefile.Manifest) ([]icefile.Manifest, *removal, error) {
	r := &removal{a: a, base: base, snap: snap, specs: map[int32][]*planv1.PartitionField{}, bounds: map[int32]*filter.Bound{}, found: map[string]*removed{}, tuples: map[string]bool{}}
	if err := a.batch.readAll(ctx, a.host); err != nil {
		return nil, nil, err
	}
	out := slices.Clone(manifests)
	if err := r.each(ctx, out, icefile.ContentData); err != nil {
		return nil, nil, err
	}
	if err := r.complete(); err != nil {
		return nil, nil, err
	}
	if err := r.validate(ctx, head, manifests); err != nil {
		return nil, nil, err
	}
	if err := r.each(ctx, out, icefile.ContentDeletes); err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(out, func(m icefile.Manifest) bool { // nothing of it is in the table any more, and it is not this commit's
		return m.Files.Known() && m.Files.Live() == 0 && (m.SnapshotID == nil || *m.SnapshotID != snap.ID)
	}), r, nil
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
		if content == icefile.ContentData && r.a.batch.byPath() && len(r.found) == len(r.a.batch.replaced) {
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
	held, err := r.a.read(ctx, m)
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

// choose says which entries go.
func (r *removal) choose(held *icemanifest.Manifest, m *icefile.Manifest, oldest int64) ([]bool, error) {
	goes := make([]bool, len(held.Entries))
	for i, e := range held.Entries {
		if !e.Live() {
			continue
		}
		key, err := r.partition(e, m.SpecID)
		if err != nil {
			return nil, err
		}
		if e.Content == icemanifest.Data {
			goes[i], err = r.dataFile(e, m.SpecID, key)
		} else {
			goes[i] = r.deleteFile(e, m.SpecID, key, oldest)
		}
		if err != nil {
			return nil, err
		}
		if goes[i] {
			r.took(e, m.SpecID, key)
		}
	}
	return goes, nil
}

// dataFile decides about a data file.
func (r *removal) dataFile(e *icemanifest.Entry, spec int32, key string) (bool, error) {
	b := r.a.batch
	if b.byPath() {
		_, ok := b.replaced[e.Path]
		return ok, nil
	}
	switch scope := b.plan.GetScope().GetKind().(type) {
	case *planv1.Scope_All:
		return true, nil
	case *planv1.Scope_Partitions:
		if len(b.plan.GetPartition()) == 0 { // the table is one partition
			return b.files > 0, nil
		}
		if spec != b.plan.GetSpecId() && b.files > 0 {
			return false, r.refuse("data file %s is of partition spec %d, and the rows were written for spec %d: which of its rows the overwrite covers cannot be told; "+
				"rewrite the table's data files, or overwrite with REPLACE WHERE", e.Path, spec, b.plan.GetSpecId())
		}
		return b.written[key], nil
	case *planv1.Scope_Filter:
		bound, err := r.bound(spec)
		if err != nil {
			return false, err
		}
		switch o := bound.Outcomes(entryFile{e}); {
		case e.Records == 0 || o == filter.True:
			return true, nil
		case o&filter.True == 0:
			return false, nil
		}
		return false, r.refuse("data file %s: the condition may hold for some of its rows only, and an overwrite removes whole files; use a condition on partition columns, or DELETE and INSERT", e.Path)
	default:
		return false, r.refuse("an overwrite of scope %T", scope)
	}
}

// bound is the condition of the write for files of a partition spec.
func (r *removal) bound(specID int32) (*filter.Bound, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.bounds[specID]; b != nil {
		return b, nil
	}
	spec, err := r.base.Spec(specID)
	if err == nil && spec == nil {
		err = fmt.Errorf("a manifest names partition spec %d, which the table does not have", specID)
	}
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	if r.filter == nil { // by the columns as they were when the statement was planned: ids stay what they are
		if r.filter, err = filter.New(r.a.batch.plan.schema, r.a.batch.plan.GetScope().GetFilter()); err != nil {
			return nil, r.refuse("%v", err)
		}
	}
	b := r.filter.Bind(spec)
	r.bounds[specID] = b
	return b, nil
}

// covered reports whether a manifest may have a file that the condition covers.
func (r *removal) covered(m *icefile.Manifest) (bool, error) {
	if r.a.batch.plan.GetScope().GetFilter() == nil {
		return true, nil
	}
	b, err := r.bound(m.SpecID)
	if err != nil {
		return false, err
	}
	return b.Manifest(m), nil
}

// deleteFile decides about a delete file: it goes when all that it is about goes.
func (r *removal) deleteFile(e *icemanifest.Entry, spec int32, key string, oldest int64) bool {
	b := r.a.batch
	switch {
	case e.Referenced != "":
		if r.found[e.Referenced] != nil {
			return true
		}
	case b.byPath():
	case b.plan.GetScope().GetAll():
		return true
	case b.plan.GetScope().GetPartitions() && len(b.plan.GetPartition()) == 0:
		return b.files > 0
	case b.plan.GetScope().GetPartitions():
		if spec == b.plan.GetSpecId() && b.written[key] {
			return true
		}
	case b.plan.GetScope().GetFilter() != nil && e.Content == icemanifest.PositionDeletes:
		// A delete file has no bounds of the table's columns: only its partition counts.
		if bound, err := r.bound(spec); err == nil && bound.Outcomes(partitionOnly{entryFile{e}}) == filter.True {
			return true
		}
	}
	return e.Sequence < oldest && e.Sequence > 0
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
func (r *removal) complete() error {
	b := r.a.batch
	if !b.byPath() || len(r.found) == len(b.replaced) {
		return nil
	}
	for path := range b.replaced {
		if r.found[path] == nil {
			return r.refuse("data file %s, which the %s replaces, is not in the table any more: another writer has removed it since snapshot %s; run the statement again",
				path, b.what(), orNone(b.plan.GetBaseVersion()))
		}
	}
	return nil
}

// place names a partition of a spec.
func place(spec int32, key string) string { return fmt.Sprintf("%d/%s", spec, key) }

// partition is the key of an entry's partition; see tupleKey.
func (r *removal) partition(e *icemanifest.Entry, specID int32) (string, error) {
	fields, err := r.spec(specID)
	if err != nil {
		return "", err
	}
	values := make([]*planv1.Value, len(fields))
	for i, f := range fields {
		if values[i], err = icefile.PartitionValue(e.Partition, f.GetFieldId(), f.GetResultType()); err != nil {
			return "", r.refuse("file %s: partition field %q: %v", e.Path, f.GetName(), err)
		}
	}
	return tupleKey(fields, values), nil
}

// spec gives the fields of a partition spec with the types that their values have by the current schema. Fields whose column is gone have none: their
// values are not told apart.
func (r *removal) spec(id int32) ([]*planv1.PartitionField, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.specs[id]; ok {
		return f, nil
	}
	spec, err := r.base.Spec(id)
	if err == nil && spec == nil {
		err = fmt.Errorf("a manifest names partition spec %d, which the table does not have", id)
	}
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	schema, err := r.base.CurrentSchema()
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	fields := slices.DeleteFunc(spec.Describe(schema), func(f *planv1.PartitionField) bool { return f.GetResultType() == nil })
	r.specs[id] = fields
	return fields, nil
}

// byPath reports whether the files that go are named one by one.
func (b *batch) byPath() bool {
	m := b.req.GetMode()
	return m == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL || m == sinkv1.WriteMode_WRITE_MODE_REWRITE
}

func orNone(version string) string {
	if version == "" {
		return "(none)"
	}
	return version
}
