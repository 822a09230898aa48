package icefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/avro"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// ErrRefused is wrapped by every error about a data file that does not fit its table.
var ErrRefused = errors.New("data file refused")

// defaultBlockSize is what format version 1 wants to see in a field that means nothing any more.
const defaultBlockSize = 64 << 20

// Layout is what Iceberg manifests of one stage have in common.
type Layout struct {
	Version    int // table format version
	Schema     *meta.Schema
	Spec       *meta.Spec
	Partition  []*planv1.PartitionField
	Metrics    map[int32]*planv1.MetricsMode // by field id; absent: none
	SnapshotID int64                         // of the entries; only for version 1
	Sequence   *int64                        // data sequence number of the files; nil: that of the commit
}

// encoder checks data files against the layout and writes them as manifest entries.
type encoder struct {
	layout  Layout
	columns map[int32]*column
	dense   []*column // the same, by small field ids
	tuple   []tupleField
	file    int64 // number of the file that is encoded

	sections [sections]section // its metrics
	flat     manifest.Metrics
}

type column struct {
	path     string
	typ      *planv1.Type
	kind     planv1.MetricsKind
	limit    int
	leaf     bool
	repeated bool
	top      bool
	required bool  // never NULL, whatever is above it
	proven   int64 // files that are known to hold no NULL here
	seen     int64 // the last file with metrics of it
}

type tupleField struct {
	*planv1.PartitionField
	required bool // its source column is never NULL
}

// maxDense bounds the field ids that are looked up without a map.
const maxDense = 1 << 10

func newEncoder(l Layout) (*encoder, error) {
	e := &encoder{layout: l, columns: map[int32]*column{}}
	l.Schema.Walk(func(n *meta.Node) {
		c := &column{path: n.Path, typ: n.Field.GetType(), leaf: n.Leaf(), repeated: n.Repeated, top: n.Parent == 0, required: !n.Optional && !n.Repeated}
		if m := l.Metrics[n.Field.GetId()]; m != nil {
			c.kind, c.limit = m.GetKind(), int(m.GetLength())
		}
		e.columns[n.Field.GetId()] = c
	})
	e.dense = make([]*column, maxDense)
	for id, c := range e.columns {
		if id >= 0 && id < maxDense {
			e.dense[id] = c
		}
	}
	for _, p := range l.Partition {
		t := tupleField{PartitionField: p}
		if c := e.columns[p.GetSourceId()]; c != nil && p.GetTransform() != planv1.TransformKind_TRANSFORM_KIND_VOID {
			t.required = c.required
		}
		e.tuple = append(e.tuple, t)
	}
	return e, nil
}

func refuse(f *planv1.DataFile, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %w", ErrRefused, f.GetPath(), fmt.Errorf(format, args...))
}

// entry appends one file as an entry with status ADDED. The tuple it returns is the encoded partition, within the returned bytes. Metrics of its columns are
// in the file, or serialised besides.
func (e *encoder) entry(dst []byte, file *planv1.DataFile, columns [][]byte) (out, tuple []byte, err error) {
	if err := e.check(file); err != nil {
		return nil, nil, err
	}
	if err := e.lean(file, columns); err != nil {
		return nil, nil, err
	}
	for _, m := range file.GetColumns() {
		if err := e.one(file, m); err != nil {
			return nil, nil, err
		}
	}
	dst = avro.AppendLong(dst, 1) // status ADDED
	if e.layout.Version == 1 {
		dst = avro.AppendLong(dst, e.layout.SnapshotID)
	} else {
		dst = appendOptLong(avro.AppendNull(dst), e.layout.Sequence) // the snapshot id is inherited
		dst = avro.AppendNull(dst)                                   // file sequence number
		dst = avro.AppendLong(dst, 0)
	}
	dst = avro.AppendString(dst, file.GetPath())
	dst = avro.AppendString(dst, "PARQUET")
	from := len(dst)
	for i, v := range file.GetPartition() {
		if dst, err = e.tuple[i].append(dst, v); err != nil {
			return nil, nil, refuse(file, "partition field %q: %w", e.tuple[i].GetName(), err)
		}
	}
	to := len(dst)
	dst = avro.AppendLong(dst, file.GetRecordCount())
	dst = avro.AppendLong(dst, file.GetSizeBytes())
	if e.layout.Version == 1 {
		dst = avro.AppendLong(dst, defaultBlockSize)
	}
	dst = e.appendSections(dst)
	dst = avro.AppendNull(dst) // key_metadata
	dst = appendOffsets(dst, file.GetSplitOffsets())
	if e.layout.Version >= 2 {
		dst = avro.AppendNull(dst) // equality_ids
	}
	dst = avro.AppendLong(avro.AppendSome(dst), int64(file.GetSortOrderId()))
	if e.layout.Version >= 3 {
		dst = append(dst, 0, 0, 0, 0) // first_row_id is inherited; the rest belongs to deletes
	}
	return dst, dst[from:to], nil
}

func (e *encoder) check(file *planv1.DataFile) error {
	switch {
	case file.GetPath() == "":
		return fmt.Errorf("%w: it has no path", ErrRefused)
	case file.GetFormat() != planv1.FileFormat_FILE_FORMAT_PARQUET:
		return refuse(file, "its format is %s, and only Parquet is written", file.GetFormat())
	case file.GetRecordCount() < 0 || file.GetSizeBytes() <= 0:
		return refuse(file, "%d rows in %d bytes", file.GetRecordCount(), file.GetSizeBytes())
	case len(file.GetPartition()) != len(e.tuple):
		return refuse(file, "%d partition values where the spec has %d fields", len(file.GetPartition()), len(e.tuple))
	case file.GetSortOrderId() < 0:
		return refuse(file, "sort order %d", file.GetSortOrderId())
	}
	for i, o := range file.GetSplitOffsets() {
		if o < 0 || o >= file.GetSizeBytes() || i > 0 && o <= file.GetSplitOffsets()[i-1] {
			return refuse(file, "split offset %d of a file of %d bytes", o, file.GetSizeBytes())
		}
	}
	return nil
}

// one checks the metrics of a column, and collects what its mode lets through.
func (e *encoder) one(file *planv1.DataFile, m *planv1.ColumnMetrics) error {
	c := e.columnOf(m.GetFieldId())
	switch {
	case c == nil:
		return refuse(file, "metrics of field id %d, which the table does not have", m.GetFieldId())
	case c.seen == e.file:
		return refuse(file, "column %s: metrics given twice", c.path)
	}
	c.seen = e.file
	if !c.leaf {
		return nil // of structs, lists and maps Iceberg keeps none
	}
	if err := c.check(file, m); err != nil {
		return refuse(file, "column %s: %w", c.path, err)
	}
	if m.NullCount != nil && m.GetNullCount() == 0 {
		c.proven++
	}
	if c.kind != planv1.MetricsKind_METRICS_KIND_UNSPECIFIED && c.kind != planv1.MetricsKind_METRICS_KIND_NONE {
		e.collect(c, m)
	}
	return nil
}

func (c *column) check(file *planv1.DataFile, m *planv1.ColumnMetrics) error {
	for _, n := range []*int64{m.SizeBytes, m.ValueCount, m.NullCount, m.NanCount} {
		if n != nil && *n < 0 {
			return fmt.Errorf("a count of %d", *n)
		}
	}
	switch {
	case m.ValueCount != nil && m.GetNullCount()+m.GetNanCount() > m.GetValueCount():
		return fmt.Errorf("%d NULL and %d NaN among %d values", m.GetNullCount(), m.GetNanCount(), m.GetValueCount())
	case c.top && m.ValueCount != nil && m.GetValueCount() != file.GetRecordCount():
		return fmt.Errorf("%d values in %d rows", m.GetValueCount(), file.GetRecordCount())
	case c.required && m.GetNullCount() > 0:
		return fmt.Errorf("%d NULL values in a required column", m.GetNullCount())
	}
	lower, upper := m.GetLower().GetValue(), m.GetUpper().GetValue()
	for _, v := range []*planv1.Value{lower, upper} {
		if v != nil && !value.IsNull(v) {
			if err := value.Check(c.typ, v); err != nil {
				return fmt.Errorf("bound: %w", err)
			}
		}
	}
	if usable(lower) && usable(upper) && value.Compare(value.PlusZero(lower), value.PlusZero(upper)) > 0 {
		return errors.New("its lower bound is above its upper bound")
	}
	return nil
}

func usable(v *planv1.Value) bool { return v != nil && !value.IsNull(v) && !value.IsNaN(v) }

func (e *encoder) collect(c *column, m *planv1.ColumnMetrics) {
	id := m.GetFieldId()
	for i, n := range []*int64{sizes: m.SizeBytes, values: m.ValueCount, nulls: m.NullCount, nans: m.NanCount} {
		if n != nil {
			e.sections[i].long(id, *n)
		}
	}
	if c.repeated || c.kind == planv1.MetricsKind_METRICS_KIND_COUNTS {
		return // bounds of elements say nothing about rows
	}
	limit := c.limit
	if c.kind == planv1.MetricsKind_METRICS_KIND_FULL {
		limit = 0
	}
	if v := m.GetLower().GetValue(); usable(v) {
		if b, ok := value.Lower(c.typ, v, limit); ok {
			e.sections[lowers].bytes(id, b)
		}
	}
	if v := m.GetUpper().GetValue(); usable(v) {
		if b, ok := value.Upper(c.typ, v, limit); ok {
			e.sections[uppers].bytes(id, b)
		}
	}
}

func appendOffsets(dst []byte, offsets []int64) []byte {
	if len(offsets) == 0 {
		return avro.AppendNull(dst)
	}
	dst = avro.AppendLong(avro.AppendSome(dst), int64(len(offsets)))
	for _, o := range offsets {
		dst = avro.AppendLong(dst, o)
	}
	return avro.AppendLong(dst, 0)
}

// append checks a partition value and appends it as the union of null and its type.
func (t *tupleField) append(dst []byte, v *planv1.Value) ([]byte, error) {
	if value.IsNull(v) {
		if t.required {
			return nil, errors.New("it is NULL, and its column is required")
		}
		return avro.AppendNull(dst), nil
	}
	if err := t.check(v); err != nil {
		return nil, err
	}
	n := v.GetInteger()
	switch {
	case t.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_VOID:
		return nil, errors.New("a void partition field has no values")
	case t.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_BUCKET && (n < 0 || n >= int64(t.GetParam())):
		return nil, fmt.Errorf("bucket %d of %d", n, t.GetParam())
	}
	return appendPartition(avro.AppendSome(dst), t.GetResultType(), value.PlusZero(v)), nil
}

// check is value.Check, but for truncated decimals: rounding a negative one down may give it a digit more than the column's precision, which the bytes
// of the precision still hold.
func (t *tupleField) check(v *planv1.Value) error {
	d := v.GetDecimal()
	if d == nil || t.GetTransform() != planv1.TransformKind_TRANSFORM_KIND_TRUNCATE || t.GetResultType().GetKind() != planv1.TypeKind_TYPE_KIND_DECIMAL {
		return value.Check(t.GetResultType(), v)
	}
	if d.GetScale() != t.GetResultType().GetScale() || len(d.GetUnscaled()) == 0 || len(value.Shorten(d.GetUnscaled())) > decimalSize(t.GetResultType().GetPrecision()) {
		return fmt.Errorf("%w: decimal of scale %d with %d bytes for %s", value.ErrMismatch, d.GetScale(), len(d.GetUnscaled()), meta.TypeName(t.GetResultType()))
	}
	return nil
}

func appendPartition(dst []byte, t *planv1.Type, v *planv1.Value) []byte {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Boolean:
		if k.Boolean {
			return append(dst, 1)
		}
		return append(dst, 0)
	case *planv1.Value_Integer:
		return avro.AppendLong(dst, k.Integer)
	case *planv1.Value_Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(k.Float32))
	case *planv1.Value_Float64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(k.Float64))
	case *planv1.Value_String_:
		return avro.AppendString(dst, k.String_)
	case *planv1.Value_Binary:
		if t.GetKind() == planv1.TypeKind_TYPE_KIND_BINARY {
			return avro.AppendBytes(dst, k.Binary)
		}
		return append(dst, k.Binary...) // fixed, uuid
	case *planv1.Value_Decimal:
		return appendSigned(dst, value.Shorten(k.Decimal.GetUnscaled()), decimalSize(t.GetPrecision()))
	}
	return dst
}

// appendSigned appends a two's complement at a fixed width.
func appendSigned(dst, b []byte, size int) []byte {
	pad := byte(0)
	if len(b) > 0 && b[0]&0x80 != 0 {
		pad = 0xff
	}
	for range size - len(b) {
		dst = append(dst, pad)
	}
	return append(dst, b...)
}
