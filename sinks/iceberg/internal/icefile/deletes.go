package icefile

import (
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/avro"
	"github.com/signet-io/signet/internal/icemanifest"
)

// pathColumn is the reserved field id of the column file_path in position delete files.
const pathColumn = 2147483546

// DeleteFile is a delete file that a commit adds: about one data file, in whose partition it is.
type DeleteFile struct {
	Path    string
	Records int64 // deleted rows
	Size    int64
	Vector  bool // a deletion vector in a Puffin file, at this place
	Offset  int64
	Length  int64
}

// DeleteWriter makes an Iceberg manifest of delete files.
type DeleteWriter struct {
	w     *Rewriter
	files int64
	rows  int64
}

// NewDeleteWriter begins a manifest of delete files for data files whose manifests look like from.
func NewDeleteWriter(version int, from *icemanifest.Manifest) (*DeleteWriter, error) {
	w, err := NewRewriter(version, ContentDeletes, from)
	return &DeleteWriter{w: w}, err
}

// Add appends a delete file of a data file. Snapshot and sequence numbers are inherited.
func (d *DeleteWriter) Add(f DeleteFile, of *icemanifest.Entry) error {
	tuple, null, err := of.Encoded(102, "partition")
	if err != nil || null {
		return fmt.Errorf("%w: data file %s has no partition", icemanifest.ErrManifest, of.Path)
	}
	format := "PARQUET"
	if f.Vector {
		format = "PUFFIN"
	}
	dst := avro.AppendLong(d.w.out.Row(), icemanifest.Added)
	dst = append(dst, 0, 0, 0) // snapshot id and sequence numbers
	dst = avro.AppendLong(dst, icemanifest.PositionDeletes)
	dst = avro.AppendString(avro.AppendString(dst, f.Path), format)
	dst = append(dst, tuple...)
	dst = avro.AppendLong(avro.AppendLong(dst, f.Records), f.Size)
	dst = append(dst, 0, 0, 0, 0) // sizes and counts of columns
	for range 2 {                 // bounds: by these, readers that know no referenced_data_file tell what the file is about
		if f.Vector {
			dst = avro.AppendNull(dst)
			continue
		}
		dst = avro.AppendLong(avro.AppendSome(dst), 1)
		dst = avro.AppendString(avro.AppendLong(dst, pathColumn), of.Path)
		dst = avro.AppendLong(dst, 0)
	}
	dst = append(dst, 0, 0, 0, 0) // key_metadata, split_offsets, equality_ids, sort_order_id
	if d.w.version >= 3 {
		dst = avro.AppendNull(dst) // first_row_id
	}
	dst = avro.AppendString(avro.AppendSome(dst), of.Path)
	if d.w.version >= 3 {
		var offset, length *int64
		if f.Vector {
			offset, length = &f.Offset, &f.Length
		}
		dst = appendOptLong(appendOptLong(dst, offset), length)
	}
	d.files++
	d.rows += f.Records
	return d.w.out.Done(dst)
}

// Finish ends the manifest.
func (d *DeleteWriter) Finish() (*Rewritten, error) {
	data, err := d.w.out.Bytes()
	if err != nil {
		return nil, err
	}
	zero := int64(0)
	return &Rewritten{
		Data: slices.Clone(data), Files: Counts{Added: &d.files, Existing: &zero, Deleted: &zero}, Rows: Counts{Added: &d.rows, Existing: &zero, Deleted: &zero},
	}, nil
}

// Summarize makes the summaries of a list from partition tuples.
func Summarize(fields []*planv1.PartitionField, tuples [][]*planv1.Value) []FieldSummary {
	sums := newSummarizers(fields)
	for _, t := range tuples {
		for i, v := range t {
			sums[i].add(v)
		}
	}
	out := make([]FieldSummary, 0, len(sums))
	for i := range sums {
		out = append(out, sums[i].summary())
	}
	return out
}
