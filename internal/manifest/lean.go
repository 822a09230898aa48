package manifest

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// LeanFile is a data file whose column metrics are left as they came: for who writes them in another encoding, message for message, and needs no objects
// between the two.
type LeanFile struct {
	*planv1.DataFile          // without its columns
	Columns          [][]byte // serialised planv1.ColumnMetrics, in their order; not looked at yet
}

// lean are the columns of the files of a chunk, and where those of each file end.
type lean struct {
	on      bool
	columns [][]byte
	ends    []int
	files   []LeanFile
}

// DecodeLean is Decode without the column metrics. What it answers is valid until the next call, as there; the columns are parts of b.
func (d *Decoder) DecodeLean(b []byte) (files []LeanFile, replaced []*planv1.ReplacedFile, err error) {
	l := &d.lean
	l.on, l.columns, l.ends, l.files = true, l.columns[:0], l.ends[:0], l.files[:0]
	d.reset()
	ok := d.files(b, &d.out)
	l.on = false
	if !ok {
		return leanOf(b)
	}
	from := 0
	for i, f := range d.out.GetFiles() {
		l.files = append(l.files, LeanFile{f, l.columns[from:l.ends[i]:l.ends[i]]})
		from = l.ends[i]
	}
	return l.files, d.out.GetReplaced(), nil
}

// leanOf leaves unusual bytes to proto.Unmarshal.
func leanOf(b []byte) (files []LeanFile, replaced []*planv1.ReplacedFile, err error) {
	all := &planv1.DataFiles{}
	if err := proto.Unmarshal(b, all); err != nil {
		return nil, nil, err
	}
	for _, f := range all.GetFiles() {
		out := LeanFile{DataFile: f}
		for _, m := range f.GetColumns() {
			c, err := proto.Marshal(m)
			if err != nil {
				return nil, nil, err
			}
			out.Columns = append(out.Columns, c)
		}
		f.Columns = nil
		files = append(files, out)
	}
	return files, all.GetReplaced(), nil
}

// Metrics of one column, out of the bytes of a planv1.ColumnMetrics.
type Metrics struct {
	FieldID                    int32
	Size, Values, Nulls, NaNs  int64
	HasSize, HasValues         bool
	HasNulls, HasNaNs          bool
	Lower, Upper               Scalar
	hasLowerBound, hasUpperBnd bool // the messages, which may be empty
}

// ScalarKind says what a bound is.
type ScalarKind uint8

// Kinds of bounds that are read here.
const (
	NoScalar ScalarKind = iota
	IntegerScalar
	FloatScalar // float64
	StringScalar
)

// Scalar is a bound.
type Scalar struct {
	Kind    ScalarKind
	Integer int64
	Float   float64
	Text    []byte // valid UTF-8; part of the decoded bytes
}

// Tags of the fields, with their wire types; lean_test.go compares them with what proto decodes.
const (
	tagFieldID    = 1<<3 | byte(protowire.VarintType)
	tagSize       = 2<<3 | byte(protowire.VarintType)
	tagValues     = 3<<3 | byte(protowire.VarintType)
	tagNulls      = 4<<3 | byte(protowire.VarintType)
	tagNaNs       = 5<<3 | byte(protowire.VarintType)
	tagLower      = 6<<3 | byte(protowire.BytesType)
	tagUpper      = 7<<3 | byte(protowire.BytesType)
	tagBoundValue = 1<<3 | byte(protowire.BytesType)
	tagBoundExact = 2<<3 | byte(protowire.VarintType)
	tagInteger    = 2<<3 | byte(protowire.VarintType)
	tagFloat64    = 4<<3 | byte(protowire.Fixed64Type)
	tagString     = 5<<3 | byte(protowire.BytesType)
)

// Decode reads what most columns have: integers, float64 and strings as bounds. False: the bytes are anything else, and proto.Unmarshal is to say what.
func (m *Metrics) Decode(b []byte) bool {
	*m = Metrics{}
	for i := 0; i < len(b); {
		tag := b[i]
		v, next := uvarint(b, i+1)
		if next < 0 {
			return false
		}
		i = next
		switch tag {
		case tagFieldID:
			m.FieldID = int32(v) //nolint:gosec // as a decoder does
		case tagSize:
			m.Size, m.HasSize = int64(v), true //nolint:gosec // the same bits
		case tagValues:
			m.Values, m.HasValues = int64(v), true //nolint:gosec // the same bits
		case tagNulls:
			m.Nulls, m.HasNulls = int64(v), true //nolint:gosec // the same bits
		case tagNaNs:
			m.NaNs, m.HasNaNs = int64(v), true //nolint:gosec // the same bits
		case tagLower, tagUpper:
			if v > uint64(len(b)-i) {
				return false
			}
			end := i + int(v) //nolint:gosec // it is within b
			to, seen := &m.Lower, &m.hasLowerBound
			if tag == tagUpper {
				to, seen = &m.Upper, &m.hasUpperBnd
			}
			if *seen || !to.bound(b[i:end]) { // two are to be merged
				return false
			}
			*seen, i = true, end
		default:
			return false
		}
	}
	return true
}

// bound reads a planv1.Bound.
func (s *Scalar) bound(b []byte) bool {
	seen := false
	for i := 0; i < len(b); {
		tag := b[i]
		v, next := uvarint(b, i+1)
		if next < 0 {
			return false
		}
		i = next
		switch tag {
		case tagBoundValue:
			if seen || v > uint64(len(b)-i) {
				return false
			}
			end := i + int(v) //nolint:gosec // it is within b
			if !s.value(b[i:end]) {
				return false
			}
			seen, i = true, end
		case tagBoundExact:
		default:
			return false
		}
	}
	return true
}

// value reads a planv1.Value that is empty or has one field.
func (s *Scalar) value(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] == tagFloat64 {
		bits, n := protowire.ConsumeFixed64(b[1:])
		s.Kind, s.Float = FloatScalar, math.Float64frombits(bits)
		return n == len(b)-1
	}
	v, next := uvarint(b, 1)
	switch {
	case next < 0:
		return false
	case b[0] == tagInteger:
		s.Kind, s.Integer = IntegerScalar, protowire.DecodeZigZag(v)
		return next == len(b)
	case b[0] == tagString:
		s.Kind, s.Text = StringScalar, b[next:]
		return v == uint64(len(s.Text)) && utf8.Valid(s.Text)
	}
	return false
}

// uvarint reads a varint at i, and answers where it ends; less than 0: it is none.
func uvarint(b []byte, i int) (v uint64, next int) {
	if i < len(b) && b[i] < 0x80 {
		return uint64(b[i]), i + 1
	}
	return longVarint(b, i)
}

func longVarint(b []byte, i int) (v uint64, next int) {
	if i > len(b) {
		return 0, -1
	}
	v, n := protowire.ConsumeVarint(b[i:])
	if n < 0 {
		return 0, -1
	}
	return v, i + n
}
