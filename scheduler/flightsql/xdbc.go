package flightsql

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
)

// xdbcType describes a column type in the terms of ODBC and JDBC.
type xdbcType struct {
	name           string
	id             int32 // XdbcDataType
	size           int32 // 0: none
	prefix, suffix string
	params         []string
	sensitive      bool // to case
	searchable     int32
	scale          int32 // the largest; -1: none
	radix          int32 // 0: none
	subcode        int32 // of dates and times; 0: none
}

// Values of the protocol's enumerations.
const (
	searchAll, searchNone      = 3, 0
	xdbcDateTime               = 9
	subDate, subTime, subStamp = 1, 2, 3
	nullableYes                = 1
)

var xdbcTypes = []xdbcType{
	{name: "BIGINT", id: -5, size: 19, searchable: searchAll, scale: 0, radix: 10},
	{name: "BLOB", id: -3, prefix: "'", suffix: "'", searchable: searchNone, scale: -1},
	{name: "BOOLEAN", id: -7, size: 1, searchable: searchAll, scale: -1},
	{name: "DATE", id: 91, size: 10, prefix: "DATE '", suffix: "'", searchable: searchAll, scale: -1, subcode: subDate},
	{name: "DECIMAL", id: 3, size: 38, params: []string{"precision", "scale"}, searchable: searchAll, scale: 38, radix: 10},
	{name: "DOUBLE", id: 8, size: 53, searchable: searchAll, scale: -1, radix: 2},
	{name: "FLOAT", id: 7, size: 24, searchable: searchAll, scale: -1, radix: 2},
	{name: "INTEGER", id: 4, size: 10, searchable: searchAll, scale: 0, radix: 10},
	{name: "SMALLINT", id: 5, size: 5, searchable: searchAll, scale: 0, radix: 10},
	{name: "TIME", id: 92, size: 15, prefix: "TIME '", suffix: "'", searchable: searchAll, scale: 6, subcode: subTime},
	{name: "TIMESTAMP", id: 93, size: 26, prefix: "TIMESTAMP '", suffix: "'", searchable: searchAll, scale: 6, subcode: subStamp},
	{name: "TIMESTAMPTZ", id: 93, size: 32, prefix: "TIMESTAMPTZ '", suffix: "'", searchable: searchAll, scale: 6, subcode: subStamp},
	{name: "TINYINT", id: -6, size: 3, searchable: searchAll, scale: 0, radix: 10},
	{name: "UUID", id: 12, size: 36, prefix: "UUID '", suffix: "'", searchable: searchAll, scale: -1},
	{name: "VARCHAR", id: 12, prefix: "'", suffix: "'", sensitive: true, searchable: searchAll, scale: -1},
}

// GetFlightInfoXdbcTypeInfo implements Flight SQL.
func (s *server) GetFlightInfoXdbcTypeInfo(_ context.Context, _ fsql.GetXdbcTypeInfo, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.listing(desc, schema_ref.XdbcTypeInfo)
}

// DoGetXdbcTypeInfo implements Flight SQL.
func (s *server) DoGetXdbcTypeInfo(_ context.Context, cmd fsql.GetXdbcTypeInfo) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.batch(schema_ref.XdbcTypeInfo, func(b *array.RecordBuilder) {
		for _, t := range xdbcTypes {
			if want := cmd.GetDataType(); want == nil || *want == t.id {
				t.appendTo(b)
			}
		}
	})
}

func (t xdbcType) appendTo(b *array.RecordBuilder) {
	sqlType := t.id
	if t.subcode > 0 {
		sqlType = xdbcDateTime
	}
	values := []any{
		t.name, t.id, orNull(t.size, 0), orNull(t.prefix, ""), orNull(t.suffix, ""), orNone(t.params), int32(nullableYes), t.sensitive, t.searchable,
		orNull(t.radix > 0, false), false, orNull(t.radix > 0, false), t.name, orNull(min(t.scale, 0), -1), orNull(t.scale, -1), sqlType,
		orNull(t.subcode, 0), orNull(t.radix, 0), nil,
	}
	if t.radix > 0 { // signed, and not counting by itself
		values[9], values[11] = false, false
	}
	for i, v := range values {
		appendAny(b.Field(i), v)
	}
}

func orNull[T comparable](v, none T) any {
	if v == none {
		return nil
	}
	return v
}

func orNone(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// appendAny appends a value of the column's own type; everything else is NULL.
func appendAny(b array.Builder, v any) {
	switch v := v.(type) {
	case string:
		if b, ok := b.(*array.StringBuilder); ok {
			b.Append(v)
			return
		}
	case int32:
		if b, ok := b.(*array.Int32Builder); ok {
			b.Append(v)
			return
		}
	case bool:
		if b, ok := b.(*array.BooleanBuilder); ok {
			b.Append(v)
			return
		}
	case []string:
		if b, ok := b.(*array.ListBuilder); ok {
			b.Append(true)
			for _, s := range v {
				appendAny(b.ValueBuilder(), s)
			}
			return
		}
	}
	b.AppendNull()
}
