package write

import (
	"encoding/binary"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/compress"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
	"github.com/signet-io/signet/internal/valueslist"
)

// plainType is how values of a type are stored.
type plainType struct {
	kind     valueslist.Kind
	castType string // DuckDB's name
	element  footer.Element
}

var plainTypes = map[planv1.TypeKind]plainType{
	planv1.TypeKind_TYPE_KIND_BOOLEAN: {valueslist.Boolean, "BOOLEAN", footer.Element{Physical: footer.Boolean, Converted: footer.NoConverted}},
	planv1.TypeKind_TYPE_KIND_INT32:   {valueslist.Integer, "INTEGER", footer.Element{Physical: footer.Int32, Converted: footer.NoConverted}},
	planv1.TypeKind_TYPE_KIND_INT64:   {valueslist.Integer, "BIGINT", footer.Element{Physical: footer.Int64, Converted: footer.NoConverted}},
	planv1.TypeKind_TYPE_KIND_STRING: {
		valueslist.String, "VARCHAR", footer.Element{Physical: footer.ByteArray, Converted: footer.UTF8},
	},
}

// codec of pages.
type codec struct {
	id     footer.Codec
	encode func([]byte) []byte
}

// plainCodec is the codec that a table's files have; nil: one that is DuckDB's. A level other than the default is DuckDB's, too.
func plainCodec(r *planv1.FileRules) *codec {
	with := func(id footer.Codec, c compress.Compression) *codec {
		impl, err := compress.GetCodec(c)
		if err != nil {
			return nil
		}
		return &codec{id, func(b []byte) []byte { return impl.Encode(make([]byte, impl.CompressBound(int64(len(b)))), b) }}
	}
	switch name := strings.ToLower(r.GetCodec()); {
	case r.GetCodecLevel() != 0:
		return nil
	case name == "" || name == defaultCodec:
		return with(6, compress.Codecs.Zstd)
	case name == "snappy":
		return with(1, compress.Codecs.Snappy)
	case name == "uncompressed":
		return &codec{0, func(b []byte) []byte { return b }}
	}
	return nil
}

// createdPlain names the writer in the footer.
const createdPlain = "signet version 1.0.0 (build values)"

// plainFile is a whole Parquet file, of plain values that may be NULL. It fills in the statistics of f.
func (p *plan) plainFile(f *written, columns [][]valueslist.Value) ([]byte, error) {
	codec := plainCodec(p.spec.GetFiles())
	out := []byte(footer.Magic)
	meta := footer.File{Version: 1, Rows: f.rows, CreatedBy: createdPlain, Schema: []footer.Element{{
		Physical: footer.Group, Repetition: footer.Unrepeated, Name: "table", Children: int32(len(columns)), Converted: footer.NoConverted, //nolint:gosec // few
	}}}
	group := footer.RowGroup{Rows: f.rows}
	for n, c := range p.columns {
		e := plainTypes[c.field.GetType().GetKind()].element
		e.Repetition, e.Name, e.FieldID, e.HasID = footer.Optional, c.alias, c.field.GetId(), p.fieldIDs() != ""
		meta.Schema, meta.Ordered = append(meta.Schema, e), append(meta.Ordered, true)
		body := plainPage(e.Physical, columns[n])
		packed := codec.encode(body)
		head := (&footer.Page{Type: footer.DataPage, Compressed: int64(len(packed)), Values: f.rows, Encoding: footer.Plain}).Bytes(len(body))
		stats := constantStats(columns[n])
		stats.size = int64(len(head) + len(packed))
		f.stats[p.leaves[n].key] = stats
		group.Chunks = append(group.Chunks, footer.Chunk{
			Physical: e.Physical, Encodings: []footer.Encoding{footer.Plain, footer.RLE}, Path: []string{c.alias}, Codec: codec.id, Values: f.rows,
			Uncompressed: int64(len(head) + len(body)), Compressed: stats.size, DataOffset: int64(len(out)), Stats: plainStats(e.Physical, columns[n], stats.nulls),
			Pages: []footer.EncodingStats{{Page: footer.DataPage, Encoding: footer.Plain, Count: 1}},
		})
		group.Bytes += int64(len(head) + len(body))
		if n == 0 {
			f.offsets = []int64{int64(len(out))}
		}
		out = append(append(out, head...), packed...)
	}
	meta.Groups = []footer.RowGroup{group}
	return append(out, meta.End()...), nil
}

// plainPage is the body of a data page: definition levels, then the values that are there.
func plainPage(t footer.Physical, values []valueslist.Value) []byte {
	out := make([]byte, 4) // the length of the levels
	for i := 0; i < len(values); {
		n := i
		for n < len(values) && (values[n].Kind == valueslist.Null) == (values[i].Kind == valueslist.Null) {
			n++
		}
		level := byte(1)
		if values[i].Kind == valueslist.Null {
			level = 0
		}
		out = append(binary.AppendUvarint(out, uint64(n-i)<<1), level) //nolint:gosec // not negative
		i = n
	}
	binary.LittleEndian.PutUint32(out, uint32(len(out)-4)) //nolint:gosec // short
	bits := 0
	for _, v := range values {
		if v.Kind == valueslist.Null {
			continue
		}
		if t == footer.Boolean {
			if bits%8 == 0 {
				out = append(out, 0)
			}
			out[len(out)-1] |= byte(v.Integer) << (bits % 8)
			bits++
			continue
		}
		if t == footer.ByteArray {
			out = binary.LittleEndian.AppendUint32(out, uint32(len(v.Text))) //nolint:gosec // short
		}
		out = append(out, plainValue(t, &v)...)
	}
	return out
}

// plainValue is a value without its length, as pages and statistics have it.
func plainValue(t footer.Physical, v *valueslist.Value) []byte {
	switch t {
	case footer.Boolean:
		return []byte{byte(v.Integer)}
	case footer.Int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v.Integer)) //nolint:gosec // it was checked to fit
	case footer.Int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(v.Integer)) //nolint:gosec // the same bits
	}
	return []byte(v.Text)
}

func plainStats(t footer.Physical, values []valueslist.Value, nulls int64) *footer.Statistics {
	s := &footer.Statistics{Nulls: nulls, Distinct: -1}
	low, high := extremes(values)
	if low != nil {
		s.Min, s.Max, s.HasMin, s.HasMax, s.MinExact, s.MaxExact = plainValue(t, low), plainValue(t, high), true, true, footer.Yes, footer.Yes
	}
	return s
}
