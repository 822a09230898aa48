package iceberg

import (
	"context"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// target is a data file of which the commit deletes rows.
type target struct {
	entry *icemanifest.Entry
	held  *icemanifest.Manifest
	spec  int32
	place string
}

// aim notes a data file of which rows are deleted.
func (r *removal) aim(e *icemanifest.Entry, held *icemanifest.Manifest, spec int32, key string) {
	if len(r.a.batch.deletes[e.Path]) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	where := place(spec, key)
	r.targets[e.Path] = &target{entry: e, held: held, spec: spec, place: where}
	r.tuples[where] = true
}

// deleteManifest is a manifest of delete files that is being made.
type deleteManifest struct {
	spec   int32
	like   *icemanifest.Manifest
	w      *icefile.DeleteWriter
	tuples [][]*planv1.Value
}

// addDeletes writes the manifests of the commit's delete files: each file stands in the partition, by the spec, of the data file that it is about.
func (r *removal) addDeletes(ctx context.Context) ([]icefile.Manifest, error) {
	var all []*deleteManifest
	paths := make([]string, 0, len(r.targets))
	for path := range r.targets {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		t := r.targets[path]
		d, err := r.manifestFor(&all, t)
		if err != nil {
			return nil, err
		}
		for _, c := range r.a.batch.deletes[path] {
			f := icefile.DeleteFile{Path: c.path, Records: c.records, Size: c.size, Offset: c.offset, Length: c.length}
			f.Vector = c.content == int64(planv1.FileContent_FILE_CONTENT_DELETION_VECTOR)
			if err := d.w.Add(f, t.entry); err != nil {
				return nil, r.refuse("delete file %s: %v", c.path, err)
			}
		}
		values, err := r.values(t.entry, t.spec)
		if err != nil {
			return nil, err
		}
		d.tuples = append(d.tuples, values)
	}
	out := make([]icefile.Manifest, 0, len(all))
	for i, d := range all {
		m, err := r.putDeletes(ctx, d, i)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// manifestFor finds the manifest that a delete file of the target may stand in, or begins one.
func (r *removal) manifestFor(all *[]*deleteManifest, t *target) (*deleteManifest, error) {
	for _, d := range *all {
		if d.spec == t.spec && icefile.SameLayout(d.like, t.held) {
			return d, nil
		}
	}
	w, err := icefile.NewDeleteWriter(r.base.FormatVersion, t.held)
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	d := &deleteManifest{spec: t.spec, like: t.held, w: w}
	*all = append(*all, d)
	return d, nil
}

func (r *removal) putDeletes(ctx context.Context, d *deleteManifest, n int) (icefile.Manifest, error) {
	done, err := d.w.Finish()
	if err != nil {
		return icefile.Manifest{}, r.refuse("manifest of delete files: %v", err)
	}
	fields, err := r.spec(d.spec)
	if err != nil {
		return icefile.Manifest{}, err
	}
	m := icefile.Manifest{
		Path:   metadataPath(r.a.batch.plan.Location, "%s-%s-%d-d%d.avro", r.a.batch.units[0].GetJobId(), r.a.nonce, r.a.n, n),
		Length: int64(len(done.Data)), SpecID: d.spec, Content: icefile.ContentDeletes, SequenceNumber: r.snap.SequenceNumber, MinSequenceNumber: r.snap.SequenceNumber,
		SnapshotID: &r.snap.ID, Files: done.Files, Rows: done.Rows,
	}
	if spec, err := r.base.Spec(d.spec); err == nil && spec != nil && len(spec.Fields) == len(fields) { // otherwise some types are not known any more
		m.Partitions = icefile.Summarize(fields, d.tuples)
	}
	return m, putManifest(ctx, r.a.host, m.Path, done.Data)
}
