package icefile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/signet-io/signet/internal/avro"
	"github.com/signet-io/signet/internal/icemanifest"
)

// Rewriter makes one Iceberg manifest of entries of others: files that stay, and files that the commit removes. The partition values keep the types that the
// manifest had from which they come, so that neither the spec's source columns nor their types need to be known.
type Rewriter struct {
	version int
	content int32
	fields  []fileField
	out     *avro.Writer
	files   [3]int64 // by status
	rows    [3]int64
	minSeq  *int64
	rowIDs  bool // every live file has a first row id
}

// Rewritten is a finished manifest.
type Rewritten struct {
	Data        []byte // owned by the caller
	Files, Rows Counts
	MinSequence *int64 // of the live files; nil: there are none
	RowIDs      bool   // every live file has a first row id of its own
}

// NewRewriter begins a manifest of a table version. Everything else is as in the manifest from.
func NewRewriter(version int, content int32, from *icemanifest.Manifest) (*Rewriter, error) {
	schema := entrySchemaOf(version, content, string(from.Tuple))
	kind := "data"
	if content == ContentDeletes {
		kind = "deletes"
	}
	header := []avro.KV{}
	for _, key := range []string{"schema", "schema-id", "partition-spec", "partition-spec-id"} {
		if v, ok := from.Meta[key]; ok {
			header = append(header, avro.KV{Key: key, Value: v})
		}
	}
	header = append(header, avro.KV{Key: "format-version", Value: strconv.Itoa(version)}, avro.KV{Key: "content", Value: kind})
	out, err := avro.NewWriter(schema, header)
	if err != nil {
		return nil, err
	}
	return &Rewriter{version: version, content: content, fields: fileFields(version, content), out: out, rowIDs: true}, nil
}

// SameLayout reports whether entries of both manifests can stand in one.
func SameLayout(a, b *icemanifest.Manifest) bool {
	return string(a.Tuple) == string(b.Tuple) && a.Meta["partition-spec-id"] == b.Meta["partition-spec-id"] && json.Valid(a.Tuple)
}

// Keep appends a live file as it is.
func (w *Rewriter) Keep(e *icemanifest.Entry) error {
	if err := w.append(e, icemanifest.Existing, e.SnapshotID); err != nil {
		return err
	}
	if w.minSeq == nil || e.Sequence < *w.minSeq {
		w.minSeq = &e.Sequence
	}
	w.rowIDs = w.rowIDs && e.FirstRowID != nil
	return nil
}

// Delete appends a file that the snapshot removes.
func (w *Rewriter) Delete(e *icemanifest.Entry, snapshotID int64) error {
	return w.append(e, icemanifest.Deleted, snapshotID)
}

// Add appends a file as one that the snapshot adds: its sequence numbers and row ids are those that the list will give it. snapshotID is only written in
// format version 1; later ones inherit that, too.
func (w *Rewriter) Add(e *icemanifest.Entry, snapshotID int64) error {
	fresh := *e
	fresh.FirstRowID = nil
	w.rowIDs = false
	return w.append(&fresh, icemanifest.Added, snapshotID)
}

func (w *Rewriter) append(e *icemanifest.Entry, status, snapshotID int64) error {
	dst := avro.AppendLong(w.out.Row(), status)
	switch {
	case w.version == 1:
		dst = avro.AppendLong(dst, snapshotID)
	case status == icemanifest.Added:
		dst = avro.AppendNull(avro.AppendNull(avro.AppendNull(dst)))
	default:
		dst = avro.AppendLong(avro.AppendSome(dst), snapshotID)
		dst = avro.AppendLong(avro.AppendSome(dst), e.Sequence)
		dst = avro.AppendLong(avro.AppendSome(dst), e.FileSequence)
	}
	for _, f := range w.fields {
		var err error
		if dst, err = f.append(dst, e); err != nil {
			return err
		}
	}
	w.files[status]++
	w.rows[status] += e.Records
	return w.out.Done(dst)
}

// Size is the size of the manifest so far, in bytes.
func (w *Rewriter) Size() int { return w.out.Size() }

// Finish ends the manifest. The Rewriter is of no use afterwards.
func (w *Rewriter) Finish() (*Rewritten, error) {
	data, err := w.out.Bytes()
	if err != nil {
		return nil, err
	}
	counts := func(n [3]int64) Counts {
		return Counts{Added: &n[icemanifest.Added], Existing: &n[icemanifest.Existing], Deleted: &n[icemanifest.Deleted]}
	}
	return &Rewritten{Data: slices.Clone(data), Files: counts(w.files), Rows: counts(w.rows), MinSequence: w.minSeq, RowIDs: w.rowIDs}, nil
}

// fileField is a member of data_file as it is written again.
type fileField struct {
	id       int
	name     string
	optional bool
	missing  []byte // of a required member: what stands where the writer had none; nil: it must be there
}

// fileFields follow the order of entrySchemaOf.
func fileFields(version int, content int32) []fileField {
	var out []fileField
	must := func(id int, name string, missing []byte) {
		out = append(out, fileField{id: id, name: name, missing: missing})
	}
	may := func(id int, name string) { out = append(out, fileField{id: id, name: name, optional: true}) }
	if version >= 2 {
		must(134, "content", avro.AppendLong(nil, 0))
	}
	must(100, "file_path", nil)
	must(101, "file_format", nil)
	must(102, "partition", nil)
	must(103, "record_count", nil)
	must(104, "file_size_in_bytes", nil)
	if version == 1 {
		must(105, "block_size_in_bytes", avro.AppendLong(nil, defaultBlockSize))
	}
	may(108, "column_sizes")
	may(109, "value_counts")
	may(110, "null_value_counts")
	may(137, "nan_value_counts")
	may(125, "lower_bounds")
	may(128, "upper_bounds")
	may(131, "key_metadata")
	may(132, "split_offsets")
	if version >= 2 {
		may(135, "equality_ids")
	}
	may(140, "sort_order_id")
	if version >= 3 {
		may(firstRowID, "first_row_id")
	}
	if version >= 3 || version == 2 && content == ContentDeletes {
		may(143, "referenced_data_file")
	}
	if version >= 3 {
		may(144, "content_offset")
		may(145, "content_size_in_bytes")
	}
	return out
}

const firstRowID = 142

func (f fileField) append(dst []byte, e *icemanifest.Entry) ([]byte, error) {
	if f.id == firstRowID {
		return appendOptLong(dst, e.FirstRowID), nil
	}
	b, null, err := e.Encoded(f.id, f.name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("file %s: %w", e.Path, err)
	case f.optional && null:
		return avro.AppendNull(dst), nil
	case f.optional:
		return append(avro.AppendSome(dst), b...), nil
	case null && f.missing == nil:
		return nil, fmt.Errorf("%w: file %s has no %s", icemanifest.ErrManifest, e.Path, f.name)
	case null:
		return append(dst, f.missing...), nil
	}
	return append(dst, b...), nil
}
