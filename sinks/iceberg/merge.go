package iceberg

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

const (
	propMerge         = "commit.manifest-merge.enabled"
	propMergeCount    = "commit.manifest.min-count-to-merge"
	defaultMergeCount = 100
)

// merging is how a table wants its Iceberg manifests merged.
type merging struct {
	count int   // from how many on
	size  int64 // of a merged one, in bytes
}

// mergingOf reads the table's properties; ok is false where it wants none.
func mergingOf(m *meta.Metadata) (merging, bool) {
	p := &properties{all: m.Properties}
	out := merging{count: int(p.positive(propMergeCount, defaultMergeCount)), size: p.positive(propManifestSize, defaultManifestSize)}
	return out, !strings.EqualFold(strings.TrimSpace(m.Properties[propMerge]), "false") && out.count > 1
}

// merge puts small manifests of the head together, once there are enough of them, so that the list does not grow with the number of commits. One commit
// writes one manifest of the target's size for each kind: that bounds its work. Manifests above half of that size are left alone, so that no entry is
// written anew more often than the logarithm of the table's size.
func (r *removal) merge(ctx context.Context, manifests []icefile.Manifest, added int) ([]icefile.Manifest, error) {
	how, ok := mergingOf(r.base)
	if !ok {
		return manifests, nil
	}
	type kind struct{ spec, content int32 }
	small := map[kind][]int{}
	for i, m := range manifests {
		if m.Length <= how.size/2 && m.Key == nil && m.Files.Known() && *m.SnapshotID != r.snap.ID {
			k := kind{m.SpecID, m.Content}
			small[k] = append(small[k], i)
		}
	}
	gone := map[int]bool{}
	for k, places := range small {
		if len(places)+added < how.count || len(places) < 2 {
			continue
		}
		var total int64
		for n, i := range places {
			if total += manifests[i].Length; total > how.size {
				places = places[:n]
				break
			}
		}
		merged, taken, err := r.mergeInto(ctx, manifests, places, fmt.Sprintf("%d-%d", k.spec, k.content))
		if err != nil {
			return nil, err
		}
		for n, i := range taken {
			if n == 0 {
				manifests[i] = *merged
			} else {
				gone[i] = true
			}
		}
	}
	out := manifests[:0:0]
	for i, m := range manifests {
		if !gone[i] {
			out = append(out, m)
		}
	}
	return out, nil
}

// mergeInto makes one manifest of those at these places that have one layout. taken are the places whose files it has.
func (r *removal) mergeInto(ctx context.Context, manifests []icefile.Manifest, places []int, name string) (m *icefile.Manifest, taken []int, err error) {
	held := make([]*icemanifest.Manifest, len(places))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for n, i := range places {
		g.Go(func() (err error) {
			held[n], err = r.read(gctx, &manifests[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	first := manifests[places[0]]
	w, err := icefile.NewRewriter(r.base.FormatVersion, first.Content, held[0])
	if err != nil {
		return nil, nil, r.refuse("Iceberg manifest %s: %v", first.Path, err)
	}
	var summaries [][]icefile.FieldSummary
	for n, i := range places {
		if !icefile.SameLayout(held[0], held[n]) { // a column's type was widened in between
			continue
		}
		for _, e := range held[n].Entries {
			if !e.Live() {
				continue
			}
			if err := w.Keep(e); err != nil {
				return nil, nil, r.refuse("Iceberg manifest %s: %v", manifests[i].Path, err)
			}
		}
		taken, summaries = append(taken, i), append(summaries, manifests[i].Partitions)
		if first.FirstRowID == nil {
			first.FirstRowID = manifests[i].FirstRowID
		}
	}
	if len(taken) < 2 {
		return nil, nil, nil
	}
	done, err := w.Finish()
	if err != nil {
		return nil, nil, r.refuse("merged Iceberg manifest: %v", err)
	}
	path := metadataPath(r.a.batch.plan.Location, "%s-%s-%d-g%s.avro", r.a.batch.units[0].GetJobId(), r.a.nonce, r.a.n, name)
	if err := putManifest(ctx, r.a.host, path, done.Data); err != nil {
		return nil, nil, err
	}
	out := rewrittenAs(first, path, done, r.snap)
	fields, err := r.spec(first.SpecID)
	if err != nil {
		return nil, nil, err
	}
	out.Partitions = icefile.MergeSummaries(fields, summaries)
	return &out, taken, nil
}
