package iceberg

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// operationManifests is the rewrite that puts the files of a table into other manifests, and touches none of them.
const operationManifests = "manifests"

// errNothing: the table is as the commit would leave it.
var errNothing = errors.New("nothing to do")

// reclustering puts the files of a snapshot into manifests of the target size, those of one partition beside each other, so that scans skip most of them.
type reclustering struct {
	*removal
	target                   int64 // bytes of a manifest
	created, replaced, files int
	kept                     int
}

// manifestGroup are manifests whose files can stand in one.
type manifestGroup struct {
	content int32
	spec    int32
	at      []int // places in the list
	bytes   int64
	largest int64
}

// clusteredFile is a file with what it is ordered by.
type clusteredFile struct {
	*icemanifest.Entry
	values []*planv1.Value
}

// recluster answers the list with the new manifests in place of those whose files they hold; errNothing if that would gain nothing.
func (r *removal) recluster(ctx context.Context, manifests []icefile.Manifest) ([]icefile.Manifest, *reclustering, error) {
	c := &reclustering{removal: r, target: max(r.a.batch.plan.ManifestSize, 1)}
	taken := map[int]bool{}
	var out []icefile.Manifest
	for _, g := range groupManifests(manifests) {
		if g.parts(c.target) >= len(g.at) && g.largest <= c.target*9/5 && !c.mixed(g, manifests) {
			continue // neither fewer nor smaller manifests, nor less of them for a partition
		}
		made, err := c.group(ctx, g, manifests, taken)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, made...)
	}
	if len(taken) == 0 {
		return nil, nil, errNothing
	}
	for i, m := range manifests {
		if !taken[i] {
			out = append(out, m)
			c.kept++
		}
	}
	c.replaced = len(taken)
	return out, c, nil
}

func groupManifests(manifests []icefile.Manifest) []*manifestGroup {
	var out []*manifestGroup
	for i, m := range manifests {
		at := slices.IndexFunc(out, func(g *manifestGroup) bool { return g.content == m.Content && g.spec == m.SpecID })
		if at < 0 {
			at = len(out)
			out = append(out, &manifestGroup{content: m.Content, spec: m.SpecID})
		}
		g := out[at]
		g.at, g.bytes, g.largest = append(g.at, i), g.bytes+m.Length, max(g.largest, m.Length)
	}
	return out
}

// parts is how many manifests of the target size the group makes.
func (g *manifestGroup) parts(target int64) int {
	return int(max(1, (g.bytes+target-1)/target))
}

// mixed tells whether manifests of the group may hold files of the same partitions: then a scan of one partition reads several.
func (r *reclustering) mixed(g *manifestGroup, manifests []icefile.Manifest) bool {
	if len(g.at) < 2 {
		return false
	}
	fields, err := r.spec(g.spec)
	if err != nil || len(fields) == 0 {
		return false
	}
	for i, a := range g.at {
		for _, b := range g.at[:i] {
			if overlap(fields, manifests[a].Partitions, manifests[b].Partitions) {
				return true
			}
		}
	}
	return false
}

// overlap tells whether two manifests may hold files of one partition.
func overlap(fields []*planv1.PartitionField, a, b []icefile.FieldSummary) bool {
	if len(a) < len(fields) || len(b) < len(fields) {
		return true
	}
	for i, f := range fields {
		lowA, upA, okA := span(f.GetResultType(), a[i])
		lowB, upB, okB := span(f.GetResultType(), b[i])
		if !okA || !okB {
			continue
		}
		if value.Compare(lowA, upB) > 0 || value.Compare(lowB, upA) > 0 {
			return false
		}
	}
	return true
}

// span reads the bounds of a summary; false: it has none, or NULLs that are apart from them.
func span(t *planv1.Type, s icefile.FieldSummary) (lower, upper *planv1.Value, ok bool) {
	if s.Lower == nil || s.Upper == nil || s.ContainsNull {
		return nil, nil, false
	}
	lower, okL := value.Parse(t, s.Lower)
	upper, okU := value.Parse(t, s.Upper)
	return lower, upper, okL && okU
}

// group writes the manifests of a group anew. Manifests whose partitions are encoded otherwise, from before a column's type was widened, stay.
func (r *reclustering) group(ctx context.Context, g *manifestGroup, manifests []icefile.Manifest, gone map[int]bool) ([]icefile.Manifest, error) {
	held := make([]*icemanifest.Manifest, len(g.at))
	eg, ectx := errgroup.WithContext(ctx)
	eg.SetLimit(parallelReads)
	for n, i := range g.at {
		eg.Go(func() (err error) {
			held[n], err = r.read(ectx, &manifests[i])
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		return nil, err
	}
	newest := 0
	for n, i := range g.at {
		if manifests[i].SequenceNumber >= manifests[g.at[newest]].SequenceNumber {
			newest = n
		}
	}
	fields, err := r.spec(g.spec)
	if err != nil {
		return nil, err
	}
	whole := true // every field of the spec has values that are understood
	if spec, err := r.base.Spec(g.spec); err == nil && spec != nil {
		whole = len(spec.Fields) == len(fields)
	}
	var files []clusteredFile
	taken, bytes := 0, int64(0)
	for n, i := range g.at {
		if !icefile.SameLayout(held[n], held[newest]) {
			continue
		}
		gone[i] = true
		taken, bytes = taken+1, bytes+manifests[i].Length
		for _, e := range held[n].Entries {
			if !e.Live() {
				continue
			}
			f := clusteredFile{Entry: e, values: make([]*planv1.Value, len(fields))}
			for k, p := range fields {
				if f.values[k], err = icefile.PartitionValue(e.Partition, p.GetFieldId(), p.GetResultType()); err != nil {
					return nil, r.refuse("file %s: partition field %q: %v", e.Path, p.GetName(), err)
				}
			}
			files = append(files, f)
		}
	}
	slices.SortStableFunc(files, func(a, b clusteredFile) int { return compareTuples(a.values, b.values) })
	parts := int(max(1, (bytes+r.target-1)/r.target))
	var out []icefile.Manifest
	for part := range slices.Chunk(files, (len(files)+parts-1)/parts) {
		m, err := r.write(ctx, g, held[newest], part, fields, whole)
		if err != nil {
			return nil, err
		}
		out = append(out, *m)
	}
	return out, nil
}

// compareTuples orders partitions field by field, NULL first.
func compareTuples(a, b []*planv1.Value) int {
	for i := range a {
		switch nullA, nullB := value.IsNull(a[i]), value.IsNull(b[i]); {
		case nullA && nullB:
		case nullA:
			return -1
		case nullB:
			return 1
		default:
			if c := compareValues(a[i], b[i]); c != 0 {
				return c
			}
		}
	}
	return 0
}

// compareValues puts NaN last.
func compareValues(a, b *planv1.Value) int {
	switch nanA, nanB := value.IsNaN(a), value.IsNaN(b); {
	case nanA && nanB:
		return 0
	case nanA:
		return 1
	case nanB:
		return -1
	}
	return value.Compare(a, b)
}

func (r *reclustering) write(ctx context.Context, g *manifestGroup, like *icemanifest.Manifest, files []clusteredFile, fields []*planv1.PartitionField, whole bool) (*icefile.Manifest, error) {
	w, err := icefile.NewRewriter(r.base.FormatVersion, g.content, like)
	if err != nil {
		return nil, r.refuse("Iceberg manifest: %v", err)
	}
	summaries := icefile.NewSummaries(fields)
	var first *int64 // the smallest row id
	for _, f := range files {
		if err := w.Keep(f.Entry); err != nil {
			return nil, r.refuse("Iceberg manifest: %v", err)
		}
		summaries.Add(f.values)
		if f.FirstRowID != nil && (first == nil || *f.FirstRowID < *first) {
			first = f.FirstRowID
		}
	}
	done, err := w.Finish()
	if err != nil {
		return nil, r.refuse("Iceberg manifest: %v", err)
	}
	r.created++
	r.files += len(files)
	path := metadataPath(r.a.batch.plan.Location, "%s-%s-%d-c%d.avro", r.a.batch.units[0].GetJobId(), r.a.nonce, r.a.n, r.created)
	if err := putManifest(ctx, r.a.host, path, done.Data); err != nil {
		return nil, err
	}
	m := rewrittenAs(icefile.Manifest{SpecID: g.spec, Content: g.content, FirstRowID: first}, path, done, r.snap)
	if m.Partitions = summaries.Fields(); !whole {
		m.Partitions = nil // a list says something of every field, or of none
	}
	return &m, nil
}

// summary says what was done, as Iceberg's own procedure does.
func (r *reclustering) summary(out map[string]string) {
	for key, n := range map[string]int{"manifests-created": r.created, "manifests-replaced": r.replaced, "manifests-kept": r.kept, "entries-processed": r.files} {
		out[key] = strconv.Itoa(n)
	}
}
