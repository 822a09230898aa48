package icefile

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/avro"
)

// maxTuples bounds how many distinct partitions a Writer remembers.
const maxTuples = 4096

// Writer packs data files into Iceberg manifests, one after another.
type Writer struct {
	enc     *encoder
	out     *avro.Writer
	schema  string
	header  []avro.KV
	paths   map[[16]byte]struct{}
	tuples  map[uint64]struct{}
	total   int64 // files in all manifests
	files   int64
	rows    int64
	bytes   int64
	summary []summarizer
}

// Packed is one finished Iceberg manifest.
type Packed struct {
	Data       []byte // owned by the caller
	Files      int64
	Rows       int64
	Bytes      int64 // of the data files
	Partitions []FieldSummary
}

// NewWriter returns a Writer for files of one layout.
func NewWriter(l Layout) (*Writer, error) {
	fields := make([]partitionField, 0, len(l.Partition))
	for _, p := range l.Partition {
		fields = append(fields, partitionField{p.GetFieldId(), p.GetName(), p.GetResultType()})
	}
	schema, err := entrySchema(l.Version, fields)
	if err != nil {
		return nil, err
	}
	enc, err := newEncoder(l)
	if err != nil {
		return nil, err
	}
	w := &Writer{enc: enc, schema: schema, paths: map[[16]byte]struct{}{}, tuples: map[uint64]struct{}{}, header: []avro.KV{
		{Key: "schema", Value: string(l.Schema.JSON)},
		{Key: "schema-id", Value: strconv.Itoa(int(l.Schema.ID))},
		{Key: "partition-spec", Value: string(l.Spec.JSON)},
		{Key: "partition-spec-id", Value: strconv.Itoa(int(l.Spec.ID))},
		{Key: "format-version", Value: strconv.Itoa(l.Version)},
		{Key: "content", Value: "data"},
	}}
	if w.out, err = avro.NewWriter(schema, w.header); err != nil {
		return nil, err
	}
	w.begin()
	return w, nil
}

func (w *Writer) begin() {
	w.files, w.rows, w.bytes = 0, 0, 0
	w.summary = newSummarizers(w.enc.layout.Partition)
}

// Add checks a file and adds it to the manifest. A path that was added before, to whichever manifest, is refused.
func (w *Writer) Add(file *planv1.DataFile) error { return w.AddLean(file, nil) }

// AddLean is Add for a file whose column metrics are serialised, each as a planv1.ColumnMetrics. It keeps nothing of them.
func (w *Writer) AddLean(file *planv1.DataFile, columns [][]byte) error {
	sum := sha256.Sum256([]byte(file.GetPath()))
	key := [16]byte(sum[:16])
	if _, ok := w.paths[key]; ok {
		return fmt.Errorf("%w: %s: the path comes twice", ErrRefused, file.GetPath())
	}
	row, tuple, err := w.enc.entry(w.out.Row(), file, columns)
	if err != nil {
		return err
	}
	w.paths[key] = struct{}{}
	if len(w.tuples) <= maxTuples {
		h := fnv.New64a()
		_, _ = h.Write(tuple) // a hash never fails
		w.tuples[h.Sum64()] = struct{}{}
	}
	for i, v := range file.GetPartition() {
		w.summary[i].add(v)
	}
	w.files++
	w.total++
	w.rows += file.GetRecordCount()
	w.bytes += file.GetSizeBytes()
	return w.out.Done(row)
}

// Size is the size of the manifest so far, in bytes.
func (w *Writer) Size() int { return w.out.Size() }

// Ready is what is final of the manifest so far: what Finish will answer begins with it. It is valid until the next call.
func (w *Writer) Ready() []byte { return w.out.Ready() }

// Files is the number of files in the manifest so far.
func (w *Writer) Files() int64 { return w.files }

// Finish ends the manifest; the next Add begins another one.
func (w *Writer) Finish() (*Packed, error) {
	data, err := w.out.Bytes()
	if err != nil {
		return nil, err
	}
	p := &Packed{Data: slices.Clone(data), Files: w.files, Rows: w.rows, Bytes: w.bytes, Partitions: []FieldSummary{}}
	for i := range w.summary {
		p.Partitions = append(p.Partitions, w.summary[i].summary())
	}
	w.begin()
	return p, w.out.Reset(w.schema, w.header)
}

// Tuples are hashes of the distinct partitions of all files, or nil if there are more than the Writer remembers.
func (w *Writer) Tuples() []uint64 {
	if len(w.tuples) > maxTuples {
		return nil
	}
	out := make([]uint64, 0, len(w.tuples))
	for t := range w.tuples {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

// MayHaveNulls are the ids of the optional columns of which some file may hold a NULL, sorted.
func (w *Writer) MayHaveNulls() []int32 {
	var out []int32
	for id, c := range w.enc.columns {
		if c.leaf && !c.repeated && !c.required && c.proven < w.total {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}
