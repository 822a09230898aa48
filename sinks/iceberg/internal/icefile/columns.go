package icefile

import (
	"bytes"
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/avro"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// section collects one of the maps from field id that an entry has, in its Avro encoding.
type section struct {
	n int64
	b []byte
}

// The maps of an entry, in their order.
const (
	sizes = iota
	values
	nulls
	nans
	lowers
	uppers
	sections
)

func (s *section) long(id int32, v int64) {
	s.n++
	s.b = avro.AppendLong(avro.AppendLong(s.b, int64(id)), v)
}

func (s *section) bytes(id int32, v []byte) {
	s.n++
	s.b = avro.AppendBytes(avro.AppendLong(s.b, int64(id)), v)
}

// appendSections writes the maps; an empty one is null.
func (e *encoder) appendSections(dst []byte) []byte {
	for i := range e.sections {
		s := &e.sections[i]
		if s.n == 0 {
			dst = avro.AppendNull(dst)
			continue
		}
		dst = append(avro.AppendLong(avro.AppendSome(dst), s.n), s.b...)
		dst = avro.AppendLong(dst, 0)
	}
	return dst
}

// begin forgets the metrics of the file before.
func (e *encoder) begin() {
	e.file++
	for i := range e.sections {
		e.sections[i].n, e.sections[i].b = 0, e.sections[i].b[:0]
	}
}

// columnOf finds a column by its field id; nil: the table has none.
func (e *encoder) columnOf(id int32) *column {
	if id >= 0 && int(id) < len(e.dense) {
		return e.dense[id]
	}
	return e.columns[id]
}

// lean collects metrics that are still serialised. What is usual goes from the bytes of one encoding into those of the other; all else, and all that is to be
// refused, is decoded and goes the way that metrics does, so that there is one place that says what is wrong.
func (e *encoder) lean(file *planv1.DataFile, columns [][]byte) error {
	e.begin()
	for _, b := range columns {
		if e.flat.Decode(b) && e.plain(file, &e.flat) {
			continue
		}
		m := &planv1.ColumnMetrics{}
		if err := proto.Unmarshal(b, m); err != nil {
			return refuse(file, "metrics of a column: %w", err)
		}
		if err := e.one(file, m); err != nil {
			return err
		}
	}
	return nil
}

// plain checks and collects what one does; false: it is for that to do.
func (e *encoder) plain(file *planv1.DataFile, m *manifest.Metrics) bool {
	c := e.columnOf(m.FieldID)
	switch {
	case c == nil || c.seen == e.file:
		return false
	case !c.leaf:
		c.seen = e.file
		return true
	case min(m.Size, m.Values, m.Nulls, m.NaNs) < 0,
		m.HasValues && m.Nulls+m.NaNs > m.Values,
		c.top && m.HasValues && m.Values != file.GetRecordCount(),
		c.required && m.Nulls > 0,
		m.Lower.Kind != manifest.NoScalar && !c.takes(&m.Lower),
		m.Upper.Kind != manifest.NoScalar && !c.takes(&m.Upper),
		above(&m.Lower, &m.Upper):
		return false
	}
	c.seen = e.file
	if m.HasNulls && m.Nulls == 0 {
		c.proven++
	}
	if c.kind == planv1.MetricsKind_METRICS_KIND_UNSPECIFIED || c.kind == planv1.MetricsKind_METRICS_KIND_NONE {
		return true
	}
	if m.HasSize {
		e.sections[sizes].long(m.FieldID, m.Size)
	}
	if m.HasValues {
		e.sections[values].long(m.FieldID, m.Values)
	}
	if m.HasNulls {
		e.sections[nulls].long(m.FieldID, m.Nulls)
	}
	if m.HasNaNs {
		e.sections[nans].long(m.FieldID, m.NaNs)
	}
	if c.repeated || c.kind == planv1.MetricsKind_METRICS_KIND_COUNTS {
		return true // bounds of elements say nothing about rows
	}
	e.plainBound(c, m.FieldID, lowers, &m.Lower)
	e.plainBound(c, m.FieldID, uppers, &m.Upper)
	return true
}

// takes reports whether a bound is a value of the column's type, as value.Check does, of the types that are known here.
func (c *column) takes(s *manifest.Scalar) bool {
	switch c.typ.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT64, planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS,
		planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return s.Kind == manifest.IntegerScalar
	case planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_DATE:
		return s.Kind == manifest.IntegerScalar && int64(int32(s.Integer)) == s.Integer
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		return s.Kind == manifest.FloatScalar
	case planv1.TypeKind_TYPE_KIND_STRING:
		return s.Kind == manifest.StringScalar
	}
	return false
}

// above reports whether a lower bound is above the upper one. Both are of one kind, or none. A NaN is no bound.
func above(lower, upper *manifest.Scalar) bool {
	if lower.Kind == manifest.NoScalar || upper.Kind == manifest.NoScalar {
		return false
	}
	switch lower.Kind {
	case manifest.IntegerScalar:
		return lower.Integer > upper.Integer
	case manifest.FloatScalar:
		return lower.Float > upper.Float
	}
	return bytes.Compare(lower.Text, upper.Text) > 0
}

// plainBound collects a bound of a column that takes it, as value.Lower and value.Upper give it.
func (e *encoder) plainBound(c *column, id int32, which int, s *manifest.Scalar) {
	to := &e.sections[which]
	switch s.Kind {
	case manifest.IntegerScalar:
		to.n++
		to.b = avro.AppendLong(to.b, int64(id))
		switch c.typ.GetKind() {
		case planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_DATE:
			to.b = binary.LittleEndian.AppendUint32(avro.AppendLong(to.b, 4), uint32(int32(s.Integer))) //nolint:gosec // checked, and the same bits
		default:
			to.b = binary.LittleEndian.AppendUint64(avro.AppendLong(to.b, 8), uint64(s.Integer)) //nolint:gosec // the same bits
		}
	case manifest.FloatScalar:
		f := s.Float
		switch {
		case math.IsNaN(f):
			return
		case f == 0 && which == lowers:
			f = math.Copysign(0, -1)
		case f == 0:
			f = 0
		}
		to.n++
		to.b = avro.AppendLong(avro.AppendLong(to.b, int64(id)), 8)
		to.b = binary.LittleEndian.AppendUint64(to.b, math.Float64bits(f))
	case manifest.StringScalar:
		limit := c.limit
		if c.kind == planv1.MetricsKind_METRICS_KIND_FULL {
			limit = 0
		}
		if which == lowers {
			to.bytes(id, value.LowerString(s.Text, limit))
		} else if b, ok := value.UpperString(s.Text, limit); ok {
			to.bytes(id, b)
		}
	}
}
