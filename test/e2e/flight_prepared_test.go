package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/test/harness"
)

func prepare(t *testing.T, c *flightsql.Client, statement string) *flightsql.PreparedStatement {
	t.Helper()
	p, err := c.Prepare(harness.Context(t), statement)
	require.NoError(t, err, statement)
	return p
}

// boundValues are Arrow types with values in the JSON form of arrow-go, DuckDB's type of the literal, and the type in which it comes back.
var boundValues = []struct {
	typ    arrow.DataType
	json   string
	engine string
	back   string // JSON; empty: as sent
}{
	{arrow.FixedWidthTypes.Boolean, `true`, "BOOLEAN", ""},
	{arrow.PrimitiveTypes.Int8, `-128`, "TINYINT", ""},
	{arrow.PrimitiveTypes.Int16, `-32768`, "SMALLINT", ""},
	{arrow.PrimitiveTypes.Int32, `-2147483648`, "INTEGER", ""},
	{arrow.PrimitiveTypes.Int64, `-9223372036854775808`, "BIGINT", ""},
	{arrow.PrimitiveTypes.Int64, `9007199254740993`, "BIGINT", ""},
	{arrow.PrimitiveTypes.Uint8, `255`, "UTINYINT", ""},
	{arrow.PrimitiveTypes.Uint16, `65535`, "USMALLINT", ""},
	{arrow.PrimitiveTypes.Uint32, `4294967295`, "UINTEGER", ""},
	{arrow.PrimitiveTypes.Uint64, `18446744073709551615`, "UBIGINT", ""},
	{arrow.FixedWidthTypes.Float16, `0.5`, "FLOAT", ""},
	{arrow.PrimitiveTypes.Float32, `0.1`, "FLOAT", ""},
	{arrow.PrimitiveTypes.Float64, `0.1`, "DOUBLE", ""},
	{arrow.PrimitiveTypes.Float64, `5e-324`, "DOUBLE", ""},
	{arrow.PrimitiveTypes.Float64, `1.7976931348623157e308`, "DOUBLE", "1.7976931348623157e+308"},
	{arrow.PrimitiveTypes.Float64, `"NaN"`, "DOUBLE", ""},
	{arrow.PrimitiveTypes.Float64, `"-Inf"`, "DOUBLE", ""},
	{arrow.PrimitiveTypes.Float64, `-0.0`, "DOUBLE", "-0"},
	{&arrow.Decimal128Type{Precision: 38, Scale: 10}, `"-1234567890123456789012345678.0123456789"`, "DECIMAL(38,10)", ""},
	{&arrow.Decimal128Type{Precision: 4, Scale: 4}, `"0.0001"`, "DECIMAL(4,4)", ""},
	{&arrow.Decimal64Type{Precision: 9, Scale: 2}, `"-1234567.89"`, "DECIMAL(9,2)", ""},
	{&arrow.Decimal256Type{Precision: 20, Scale: 0}, `"12345678901234567890"`, "DECIMAL(20,0)", ""},
	{arrow.PrimitiveTypes.Date32, `"2024-02-29"`, "DATE", ""},
	{arrow.PrimitiveTypes.Date32, `"0001-01-01"`, "DATE", ""},
	{arrow.PrimitiveTypes.Date64, `"1969-12-31"`, "DATE", ""},
	{arrow.FixedWidthTypes.Time32s, `"10:11:12"`, "TIME", `"10:11:12"`},
	{arrow.FixedWidthTypes.Time32ms, `"10:11:12.5"`, "TIME", ""},
	{arrow.FixedWidthTypes.Time64us, `"23:59:59.999999"`, "TIME", ""},
	{arrow.FixedWidthTypes.Time64ns, `"00:00:00.000001"`, "TIME", ""},
	{&arrow.TimestampType{Unit: arrow.Second}, `"1969-12-31 23:59:59"`, "TIMESTAMP_S", ""},
	{&arrow.TimestampType{Unit: arrow.Millisecond}, `"1969-12-31 23:59:59.001"`, "TIMESTAMP_MS", ""},
	{&arrow.TimestampType{Unit: arrow.Microsecond}, `"1969-12-31 23:59:59.000001"`, "TIMESTAMP", ""},
	{&arrow.TimestampType{Unit: arrow.Microsecond}, `"9999-12-31 23:59:59.999999"`, "TIMESTAMP", ""},
	{&arrow.TimestampType{Unit: arrow.Nanosecond}, `"2024-02-29 01:02:03.000000001"`, "TIMESTAMP_NS", ""},
	{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, `"2024-02-29 01:02:03.000001Z"`, "TIMESTAMP WITH TIME ZONE", `"2024-02-29 01:02:03.000001Z"`},
	{&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"}, `"2024-07-01 01:02:03.000001+0200"`, "TIMESTAMP WITH TIME ZONE", `"2024-06-30 23:02:03.000001Z"`},
	{arrow.BinaryTypes.String, `"it's \"ü\" \\ '; DROP TABLE t; --"`, "VARCHAR", ""},
	{arrow.BinaryTypes.String, `""`, "VARCHAR", ""},
	{arrow.BinaryTypes.String, `"a\u0000b"`, "VARCHAR", ""},
	{arrow.BinaryTypes.LargeString, `"large\nlines"`, "VARCHAR", ""},
	{arrow.BinaryTypes.StringView, `"a view, longer than twelve bytes"`, "VARCHAR", ""},
	{arrow.BinaryTypes.Binary, `"AAECJyL/"`, "BLOB", ""},
	{arrow.BinaryTypes.Binary, `""`, "BLOB", ""},
	{arrow.BinaryTypes.LargeBinary, `"/w=="`, "BLOB", ""},
	{&arrow.FixedSizeBinaryType{ByteWidth: 3}, `"AAEn"`, "BLOB", ""},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `"in a dictionary"`, "VARCHAR", ""},
	{extensions.NewUUIDType(), `"6f9619ff-8b86-d011-b42d-00c04fc964ff"`, "UUID", ""},
	{arrow.FixedWidthTypes.Duration_us, `"1500000us"`, "INTERVAL", `{"days":0,"months":0,"nanoseconds":1500000000}`},
	{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[1,null,3]`, "BIGINT[]", ""},
	{arrow.ListOf(arrow.BinaryTypes.String), `[]`, "VARCHAR[]", ""},
	{arrow.StructOf(arrow.Field{Name: "a b", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "it's", Type: arrow.BinaryTypes.String, Nullable: true}), `{"a b":1,"it's":"'"}`, "STRUCT", ""},
	{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64), `[{"key":"k","value":0.5}]`, "MAP(VARCHAR, DOUBLE)", ""},
}

// Values of every type arrive as they were sent, with their type; NULL of every type is NULL of the type.
func TestFlight_BoundValuesKeepTypeAndValue(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	c := flightDial(t, addr)
	ctx := harness.Context(t)
	var fields []arrow.Field
	var values, nulls, items []string
	for i, v := range boundValues {
		name := fmt.Sprintf("p%d", i)
		fields = append(fields, arrow.Field{Name: name, Type: v.typ, Nullable: true})
		values = append(values, fmt.Sprintf("%q:%s", name, v.json))
		nulls = append(nulls, fmt.Sprintf("%q:null", name))
		items = append(items, fmt.Sprintf("$%d AS v%d, typeof($%d) AS t%d", i+1, i, i+1, i))
	}
	p := prepare(t, c, "SELECT "+strings.Join(items, ", "))
	rec := batch(t, arrow.NewSchema(fields, nil), "[{"+strings.Join(values, ",")+"},{"+strings.Join(nulls, ",")+"}]")
	defer rec.Release()
	p.SetParameters(rec)
	info, err := p.Execute(ctx)
	require.NoError(t, err)
	got := readAll(ctx, t, c, info.Endpoint[0].Ticket)
	require.EqualValues(t, 2, got.NumRows())
	for i, v := range boundValues {
		want := v.back
		if want == "" {
			want = v.json
		}
		if v.typ.ID() == arrow.TIMESTAMP {
			want = strings.Replace(want, " ", "T", 1) // as arrow-go writes them
		}
		col := got.Column(2 * i)
		text, err := col.MarshalJSON()
		require.NoError(t, err)
		if b, ok := col.(*array.Binary); ok && v.json == `""` { // arrow-go's JSON has null for it
			require.True(t, b.IsValid(0) && b.ValueLen(0) == 0 && b.IsNull(1))
			continue
		}
		require.JSONEq(t, "["+want+",null]", string(text), "%s: %s", v.typ, text)
		require.True(t, strings.HasPrefix(got.Column(2*i+1).(*array.String).Value(0), v.engine), "%s is %s", v.typ, got.Column(2*i+1).(*array.String).Value(0))
	}
	require.NoError(t, p.Close(ctx))
}

// X20: all rows answer; all rows are one commit; NULL is NULL; none is none; nothing runs twice.
func TestFlight_ManyRowsOfParameters(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT, s VARCHAR)")

	one := arrow.NewSchema([]arrow.Field{{Name: "0", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	p := prepare(t, cl, "SELECT 1 + ? AS n")
	p.SetParameters(batch(t, one, `[{"0":1},{"0":2},{"0":3},{"0":4}]`))
	info, err := p.Execute(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{`{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`}, flightRows(ctx, t, cl, info))
	// No row of values: no row of the result, and its columns.
	rd, err := array.NewRecordReader(one, []arrow.RecordBatch{batch(t, one, `[]`)})
	require.NoError(t, err)
	p.SetRecordReader(rd)
	info, err = p.Execute(ctx)
	require.NoError(t, err)
	require.Empty(t, flightRows(ctx, t, cl, info))
	require.NoError(t, p.Close(ctx))

	two := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	p = prepare(t, cl, "INSERT INTO lake.f.t VALUES (?, ?)")
	isUpdate, known := p.IsUpdate()
	require.True(t, known && isUpdate)
	require.Equal(t, "schema:\n  fields: 2\n    - id: type=int64, nullable\n    - s: type=utf8, nullable", p.ParameterSchema().String())
	var batches []arrow.RecordBatch
	for b := range 3 {
		var rows []string
		for i := b * 334; i < min((b+1)*334, 1000); i++ {
			s := fmt.Sprintf(`"text %d"`, i)
			if i%10 == 0 {
				s = "null"
			}
			rows = append(rows, fmt.Sprintf(`{"a":%d,"b":%s}`, i, s))
		}
		batches = append(batches, batch(t, two, "["+strings.Join(rows, ",")+"]"))
	}
	rd, err = array.NewRecordReader(two, batches)
	require.NoError(t, err)
	p.SetRecordReader(rd)
	n, err := p.ExecuteUpdate(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1000, n)
	require.Equal(t, 1, c.Table("f", "t").Snapshots)
	require.Equal(t, []string{`{"n":1000,"nulls":100,"s":"499500"}`}, flightQuery(t, cl, "SELECT count(*) AS n, count(*) FILTER (s IS NULL) AS nulls, sum(id) AS s FROM lake.f.t"))

	// The rows were used up; there are none to insert again.
	p.SetParameters(nil)
	_, err = p.ExecuteUpdate(ctx)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	rd, err = array.NewRecordReader(two, []arrow.RecordBatch{batch(t, two, `[]`)})
	require.NoError(t, err)
	p.SetRecordReader(rd)
	n, err = p.ExecuteUpdate(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, p.Close(ctx))
	require.Equal(t, 1, c.Table("f", "t").Snapshots)

	// A write as a query: the values count once.
	p = prepare(t, cl, "INSERT INTO lake.f.t SELECT $2 + i, $1 FROM range(3) r(i)")
	p.SetParameters(batch(t, arrow.NewSchema([]arrow.Field{{Name: "1", Type: arrow.BinaryTypes.String}, {Name: "2", Type: arrow.PrimitiveTypes.Int32}}, nil), `[{"1":"x","2":2000},{"1":"y","2":3000}]`))
	info, err = p.Execute(ctx)
	require.NoError(t, err)
	require.Contains(t, flightRows(ctx, t, cl, info)[0], `"rows":6`)
	p.SetParameters(nil)
	_, err = p.Execute(ctx)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Equal(t, 2, c.Table("f", "t").Snapshots)
}

// Text is a value wherever a parameter stands, whatever is in it; and only where a parameter stands.
func TestFlight_ParametersAreNoSQL(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.users (name VARCHAR, secret VARCHAR)")
	flightUpdate(t, cl, "INSERT INTO lake.f.users VALUES ('ann', 'a-secret'), ('bob', 'b-secret')")
	attacks := []string{
		"' OR '1'='1", "' OR 1=1 --", "'; DROP TABLE lake.f.users; --", "') UNION ALL SELECT secret, name FROM lake.f.users --", "'/*", "*/ --", "\\' OR 1=1 --", "$$", "$x$ $x$",
		"' || (SELECT secret FROM lake.f.users LIMIT 1) || '", "\x00' OR 1=1 --", "\u2019 OR 1=1", "\u00a0'\u00a0OR 1=1", "?", "$1", "$name", "E'\\''", "''", "a''b", "\n' OR 1=1 \n--",
	}
	text := arrow.NewSchema([]arrow.Field{{Name: "p", Type: arrow.BinaryTypes.String}}, nil)
	for _, a := range attacks {
		b := array.NewRecordBuilder(memory.DefaultAllocator, text)
		b.Field(0).(*array.StringBuilder).Append(a)
		rec := b.NewRecordBatch()
		for _, statement := range []string{
			"SELECT name FROM lake.f.users WHERE name = ?", "SELECT name FROM lake.f.users WHERE name = $p", "SELECT name /* ? */ FROM lake.f.users -- ?\nWHERE name||'?' = ?||'?'",
			`SELECT name AS "?" FROM lake.f.users WHERE name = ? AND '$1 ?' <> $q$ ? $q$`,
		} {
			p := prepare(t, cl, statement)
			p.SetParameters(rec)
			info, err := p.Execute(ctx)
			require.NoError(t, err, "%s with %q", statement, a)
			require.Empty(t, flightRows(ctx, t, cl, info), "%s with %q", statement, a)
			require.NoError(t, p.Close(ctx))
		}
		p := prepare(t, cl, "SELECT ? AS v")
		p.SetParameters(rec)
		info, err := p.Execute(ctx)
		require.NoError(t, err)
		require.Equal(t, a, readAll(ctx, t, cl, info.Endpoint[0].Ticket).Column(0).(*array.String).Value(0))
		require.NoError(t, p.Close(ctx))
	}
	require.Equal(t, 1, c.Table("f", "users").Snapshots)
	require.EqualValues(t, 2, c.Table("f", "users").Records)
}

func TestFlight_PreparedStatements(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (id INTEGER, d DATE, ts TIMESTAMP, amount DECIMAL(9,2))")

	p := prepare(t, cl, "SELECT id, amount FROM lake.f.t WHERE id > ?")
	require.Equal(t, "schema:\n  fields: 2\n    - id: type=int32, nullable\n    - amount: type=decimal(9, 2), nullable", p.DatasetSchema().String())
	isUpdate, known := p.IsUpdate()
	require.True(t, known && !isUpdate)
	_, err := p.Execute(ctx)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "1 parameters and no values")
	p.SetParameters(batch(t, arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}, {Name: "b", Type: arrow.PrimitiveTypes.Int8}}, nil), `[{"a":1,"b":2}]`))
	_, err = p.Execute(ctx)
	require.ErrorContains(t, err, "1 parameters and 2 columns")
	require.NoError(t, p.Close(ctx))
	require.Error(t, p.Close(ctx))

	// An error of the statement shows when it is prepared.
	for statement, want := range map[string]codes.Code{
		"SELECT * FROM lake.f.none WHERE id = ?": codes.NotFound, "SELEKT ?": codes.InvalidArgument, "SELECT ?, $1": codes.InvalidArgument, "SELECT $2": codes.InvalidArgument,
		"SELECT nope FROM lake.f.t": codes.InvalidArgument, "DROP TABLE ?": codes.InvalidArgument, "CREATE TABLE lake.f.x (a INT DEFAULT ?)": codes.InvalidArgument,
	} {
		_, err := cl.Prepare(ctx, statement)
		require.Equal(t, want, status.Code(err), "%s: %v", statement, err)
	}

	// Text becomes what the column wants, as a literal would; a value out of its range is refused with its column.
	p = prepare(t, cl, "INSERT INTO lake.f.t (d, id, ts, amount) VALUES (?, ?, ?, ?)")
	text := arrow.BinaryTypes.String
	fields := arrow.NewSchema([]arrow.Field{{Name: "0", Type: text}, {Name: "1", Type: arrow.PrimitiveTypes.Int64}, {Name: "2", Type: text}, {Name: "3", Type: arrow.PrimitiveTypes.Int64}}, nil)
	p.SetParameters(batch(t, fields, `[{"0":"2024-02-29","1":7,"2":"2024-02-29 10:00:00","3":5}]`))
	n, err := p.ExecuteUpdate(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	p.SetParameters(batch(t, fields, `[{"0":"2024-02-29","1":2147483648,"2":"2024-02-29 10:00:00","3":5}]`))
	_, err = p.ExecuteUpdate(ctx)
	require.ErrorContains(t, err, "id")
	require.Equal(t, []string{`{"amount":"5","d":"2024-02-29","id":7,"ts":"2024-02-29T10:00:00"}`}, flightQuery(t, cl, "SELECT * FROM lake.f.t"))

	// The handle is the principal's and this process' alone; one that was made up is unknown.
	other := flightsql.NewPreparedStatement(cl, []byte("0123456789abcdef"))
	_, err = other.Execute(ctx)
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = other.ExecuteUpdate(ctx)
	require.Equal(t, codes.NotFound, status.Code(err))
	require.NoError(t, prepare(t, cl, "SHOW CATALOGS").Close(ctx))
}

// What a statement says of its parameters before any are bound: their number always, and their types where DuckDB knows them. Clients of JDBC bind
// nothing else.
func TestFlight_ParameterSchemas(t *testing.T) {
	_, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	flightUpdate(t, cl, "CREATE SCHEMA lake.p")
	flightUpdate(t, cl, "CREATE TABLE lake.p.t (id INTEGER, amount DECIMAL(9,2), s VARCHAR, day DATE, seen TIMESTAMP)")
	for query, want := range map[string][]string{
		"SELECT s FROM lake.p.t WHERE id = ?":                                    {"1: int64"},
		"SELECT s FROM lake.p.t AS x WHERE x.day >= $2 AND amount < $1":          {"1: decimal(9, 2)", "2: date32"},
		"SELECT * FROM lake.p.t WHERE s LIKE $pattern AND seen > $since":         {"pattern: utf8", "since: timestamp[us]"},
		"SELECT ? AS v, CAST(? AS BIGINT) AS n, ?::DOUBLE AS d, ?::BLOB AS b":    {"1: utf8", "2: int64", "3: float64", "4: binary"},
		"INSERT INTO lake.p.t SELECT CAST(? AS INTEGER), 1, ?, NULL, NULL":       {"1: int64", "2: utf8"},
		"INSERT INTO lake.p.t (id, day) VALUES (CAST(? AS INTEGER) + 1, ?)":      {"1: int64", "2: utf8"},
		"INSERT INTO lake.p.t (day, id) VALUES (?, ?)":                           {"day: date32", "id: int64"},
		"SELECT count(*) FROM range(10) r(i) WHERE i BETWEEN ? AND ?":            {"1: int64", "2: int64"},
		"SELECT * FROM lake.p.t ORDER BY id LIMIT ?":                             {"1: int64"},
		"WITH q AS (SELECT ?::INT AS a) SELECT (SELECT max(a) FROM q WHERE a>?)": {"1: int64", "2: int64"},
	} {
		p, err := cl.Prepare(harness.Context(t), query)
		require.NoError(t, err, query)
		require.NotNil(t, p.ParameterSchema(), query)
		var got []string
		for _, f := range p.ParameterSchema().Fields() {
			got = append(got, f.Name+": "+f.Type.String())
		}
		assert.Equal(t, want, got, query)
	}
	p, err := cl.Prepare(harness.Context(t), "SELECT 1")
	require.NoError(t, err)
	require.Nil(t, p.ParameterSchema())
}
