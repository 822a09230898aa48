package iceberg

import (
	"errors"
	"fmt"

	"github.com/signet-io/signet/internal/avro"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// join makes one manifest of those that came within the references of several jobs: a group of small appends writes one object instead of one for each,
// and the manifest list grows with the commits and not with the jobs. Manifests that the joined one has no place for stay as they are.
func (b *batch) join() error {
	var files [][]byte
	var summaries [][]icefile.FieldSummary
	var sum *ref
	rest := b.refs[:0:0]
	total := int64(0)
	for _, r := range b.refs {
		if len(r.Inline) == 0 || r.SnapshotID != 0 || r.Sequence != nil || total+r.Length > b.plan.ManifestSize {
			rest = append(rest, r)
			continue
		}
		if sum == nil {
			first := *r
			first.Files, first.Rows, first.Bytes = 0, 0, 0
			sum = &first
		}
		total += r.Length
		sum.Files, sum.Rows, sum.Bytes = sum.Files+r.Files, sum.Rows+r.Rows, sum.Bytes+r.Bytes
		files, summaries = append(files, r.Inline), append(summaries, r.Partitions)
	}
	if len(files) < 2 {
		return nil
	}
	if sum.Partitions = icefile.MergeSummaries(b.plan.GetPartition(), summaries); sum.Partitions == nil {
		return nil // it would say less than they do
	}
	data, rows, err := avro.Join(files)
	if errors.Is(err, avro.ErrLayout) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRef, err)
	}
	if rows != sum.Files {
		return fmt.Errorf("%w: the manifests of %d jobs have %d entries for %d files", errRef, len(files), rows, sum.Files)
	}
	sum.JobID, sum.Inline, sum.Length = b.jobs[0], data, int64(len(data))
	b.refs = append(rest, sum)
	return nil
}
