package exchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/exchange"
)

// values of every type, extremes and NULL included. The round trip must keep both the value and its text.
var values = []struct{ typ, list string }{
	{"BOOLEAN", "true, false"},
	{"TINYINT", "-128, 127"},
	{"SMALLINT", "-32768, 32767"},
	{"INTEGER", "-2147483648, 2147483647, 0"},
	{"BIGINT", "-9223372036854775808, 9223372036854775807, 0, -1"},
	{"HUGEINT", "'-170141183460469231731687303715884105728'::HUGEINT, 170141183460469231731687303715884105727, 9007199254740993"},
	{"UHUGEINT", "'340282366920938463463374607431768211455'::UHUGEINT, '0'::UHUGEINT"},
	{"UTINYINT", "0, 255"},
	{"USMALLINT", "0, 65535"},
	{"UINTEGER", "0, 4294967295"},
	{"UBIGINT", "0, 18446744073709551615"},
	{"BIGNUM", "repeat('9', 400)::BIGNUM, ('-' || repeat('8', 77))::BIGNUM, '0'::BIGNUM"},
	{"FLOAT", "'NaN'::FLOAT, 'Infinity'::FLOAT, '-Infinity'::FLOAT, '-0.0'::FLOAT, 3.4028235e38::FLOAT, 1e-45::FLOAT, 0.1::FLOAT"},
	{"DOUBLE", "'NaN'::DOUBLE, 'Infinity'::DOUBLE, '-Infinity'::DOUBLE, '-0.0'::DOUBLE, 1.7976931348623157e308, 5e-324, 0.1"},
	{"DECIMAL(4,1)", "-999.9, 999.9"},
	{"DECIMAL(9,4)", "-99999.9999, 0.0001"},
	{"DECIMAL(18,6)", "-999999999999.999999, 0.000001"},
	{"DECIMAL(38,10)", "'-9999999999999999999999999999.9999999999'::DECIMAL(38,10), 0.0000000001"},
	{"DECIMAL(38,0)", "'99999999999999999999999999999999999999'::DECIMAL(38,0), -1"},
	{"DATE", "'infinity'::DATE, '-infinity'::DATE, '5877642-06-25 (BC)'::DATE, '5881580-07-10'::DATE, '1970-01-01'::DATE, '0001-01-01 (BC)'::DATE"},
	{"TIME", "'00:00:00'::TIME, '24:00:00'::TIME, '23:59:59.999999'::TIME"},
	{"TIME_NS", "'24:00:00'::TIME_NS, '23:59:59.999999999'::TIME_NS, '00:00:00.000000001'::TIME_NS"},
	{"TIME WITH TIME ZONE", "'24:00:00-15:59:59'::TIMETZ, '00:00:00+15:59:59'::TIMETZ, '23:59:59.999999-00:00:01'::TIMETZ, '12:00:00-00:00:30'::TIMETZ, '12:34:56.000001+05:30'::TIMETZ, '11:00:00+00'::TIMETZ"},
	{"TIMESTAMP", "'infinity'::TIMESTAMP, '-infinity'::TIMESTAMP, '290309-12-22 (BC) 00:00:00'::TIMESTAMP, '294247-01-10 04:00:54.775806'::TIMESTAMP, '1969-12-31 23:59:59.999999'::TIMESTAMP"},
	{"TIMESTAMP_S", "'infinity'::TIMESTAMP_S, '-infinity'::TIMESTAMP_S, '1969-12-31 23:59:59'::TIMESTAMP_S, '290307-12-21 (BC) 19:59:59'::TIMESTAMP_S, '294246-12-21 19:59:59'::TIMESTAMP_S"},
	{"TIMESTAMP_MS", "'infinity'::TIMESTAMP_MS, '-infinity'::TIMESTAMP_MS, '1969-12-31 23:59:59.999'::TIMESTAMP_MS, '290307-12-21 (BC) 19:59:59.001'::TIMESTAMP_MS"},
	{"TIMESTAMP_NS", "'infinity'::TIMESTAMP_NS, '-infinity'::TIMESTAMP_NS, '1677-09-22 00:00:00'::TIMESTAMP_NS, '2262-04-11 23:47:16.854775806'::TIMESTAMP_NS, '1969-12-31 23:59:59.999999999'::TIMESTAMP_NS"},
	{"TIMESTAMP WITH TIME ZONE", "'infinity'::TIMESTAMPTZ, '-infinity'::TIMESTAMPTZ, '290309-12-22 (BC) 00:00:00+00'::TIMESTAMPTZ, '2020-02-29 12:00:00.000001+05:30'::TIMESTAMPTZ"},
	{"VARCHAR", "'', 'ä€😀', E'a\\nb', chr(0) || 'x', repeat('long ', 20000), 'NULL'"},
	{"JSON", `'{"a": [1, null, "x"]}'::JSON, 'null'::JSON, '1.10'::JSON`},
	{"BLOB", "''::BLOB, '\\x00\\xFF\\x27'::BLOB"},
	{"UUID", "'00000000-0000-0000-0000-000000000000'::UUID, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID, '80000000-0000-0000-0000-000000000001'::UUID"},
	{"BIT", "'0'::BIT, '1'::BIT, '00000000'::BIT, '101010101010101010'::BIT"},
	{"INTERVAL", "to_microseconds(9223372036854775807), to_microseconds(-9223372036854775807 - 1), to_microseconds(-1), to_months(2147483647), to_months(-2147483647 - 1), to_days(-2147483647 - 1), " +
		"to_months(-13) + to_days(5) + to_microseconds(-3600000001), to_months(1), to_days(30), to_months(-2147483647 - 1) + to_days(2147483647) + to_microseconds(-9223372036854775807 - 1)"},
	{"ENUM('b', 'a', 'it''s, (odd)')", "'a'::ENUM('b', 'a', 'it''s, (odd)'), 'it''s, (odd)'::ENUM('b', 'a', 'it''s, (odd)')"},
	{"INTEGER[3]", "[1, NULL, 3]::INTEGER[3], [4, 5, 6]::INTEGER[3]"},
	{`UNION("num" INTEGER, "other" INTEGER, "s" VARCHAR)`, "union_value(num := 1), union_value(other := 1), union_value(s := 'x'), union_value(other := NULL::INTEGER)"},
	{`UNION("h" HUGEINT, "e" ENUM('x', 'y'))`, "union_value(h := 170141183460469231731687303715884105727), union_value(e := 'y'::ENUM('x', 'y'))"},
}

// column is the SQL of a list with all values of a type, and NULL.
func column(typ, list string) string {
	return "unnest([" + cast(list, typ) + ", NULL::" + typ + "]::" + typ + "[])"
}

func cast(list, typ string) string {
	if strings.HasPrefix(typ, "UNION") {
		parts := strings.Split(list, ", union_value")
		for n, p := range parts {
			if n > 0 {
				p = "union_value" + p
			}
			parts[n] = p + "::" + typ
		}
		return strings.Join(parts, ", ")
	}
	return list
}

// roundTrip compares a column before and after: values, and texts, which tell 0.0 from -0.0 and offsets of one instant.
func (n *node) roundTrip(t *testing.T, typ, sql string, exchanges ...*planv1.ExchangeTask) {
	t.Helper()
	for _, task := range exchanges {
		cols, parts := n.produce(task, 0, "SELECT x, i FROM (SELECT x, row_number() OVER () AS i FROM ("+sql+") t(x)) s")
		require.True(t, exchange.Carriable(cols[0].GetEngineType()), "%s", cols[0].GetEngineType())
		require.Equal(t, typ, cols[0].GetEngineType())
		inst := n.consume(input("v", cols, parts))
		after, err := inst.Describe(t.Context(), "SELECT * FROM v")
		require.NoError(t, err)
		require.Equal(t, typ, after[0].GetEngineType())
		joined := " FROM (SELECT x, row_number() OVER () AS i FROM (" + sql + ") t(x)) a FULL JOIN v b ON a.i = b.i"
		bad := rows(t, inst, "SELECT a.x AS before, b.x AS after"+joined+" WHERE a.i IS NULL OR b.i IS NULL OR a.x IS DISTINCT FROM b.x OR CAST(a.x AS VARCHAR) IS DISTINCT FROM CAST(b.x AS VARCHAR)")
		require.Empty(t, bad, "%s by %s", typ, task.GetKind())
	}
}

func TestRoundTrip_EveryType(t *testing.T) {
	n := newNode(t)
	for _, v := range values {
		t.Run(v.typ, func(t *testing.T) { n.roundTrip(t, v.typ, "SELECT "+column(v.typ, v.list), gathered(), hashed(3, 0)) })
	}
}

// In lists, arrays, structs, maps (as key and value) and mixtures of them, with NULLs at every level.
func TestRoundTrip_EveryTypeNested(t *testing.T) {
	n := newNode(t)
	for _, v := range values {
		t.Run(v.typ, func(t *testing.T) {
			col := column(v.typ, v.list)
			n.roundTrip(t, v.typ+"[]", fmt.Sprintf("SELECT list(x) FROM (SELECT %s AS x) UNION ALL SELECT NULL UNION ALL SELECT [] UNION ALL SELECT [NULL::%s]", col, v.typ), hashed(2, 1))
			n.roundTrip(t, v.typ+"[2]", fmt.Sprintf("SELECT [x, NULL]::%s[2] FROM (SELECT %s AS x)", v.typ, col), hashed(2, 1))
			n.roundTrip(t, `STRUCT("a" `+v.typ+`, "B ""q""" VARCHAR)`, fmt.Sprintf(`SELECT {'a': x, 'B "q"': 'y'} FROM (SELECT %s AS x) UNION ALL SELECT NULL`, col), hashed(2, 1))
			n.roundTrip(t, "MAP(INTEGER, "+v.typ+")", fmt.Sprintf("SELECT MAP {1: x, 2: NULL} FROM (SELECT %s AS x) UNION ALL SELECT NULL UNION ALL SELECT MAP {}::MAP(INTEGER, %s)", col, v.typ), hashed(2, 1))
			n.roundTrip(t, "MAP("+v.typ+", VARCHAR)", fmt.Sprintf("SELECT MAP {x: 'v'} FROM (SELECT %s AS x) WHERE x IS NOT NULL", col), hashed(2, 1))
			deep := fmt.Sprintf(`STRUCT("l" STRUCT("m" MAP(VARCHAR, %[1]s[]))[], "s" STRUCT("x" %[1]s))`, v.typ)
			n.roundTrip(t, deep, fmt.Sprintf("SELECT CAST({'l': [{'m': MAP {'k': [x, NULL]}}, NULL], 's': {'x': x}} AS %s) FROM (SELECT %s AS x) UNION ALL SELECT {'l': NULL, 's': NULL}", deep, col), hashed(2, 1))
		})
	}
}

// Many rows of every kind of data go through every encoding: dictionaries that overflow, deltas that do, runs, NULLs here and there.
func TestRoundTrip_ManyRows(t *testing.T) {
	const sql = `SELECT i, hash(i)::UBIGINT AS u, (hash(i) >> 1)::BIGINT * CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END AS b, CASE WHEN i % 2 = 0 THEN 9223372036854775807 ELSE -9223372036854775807 END AS swing,
		(hash(i) % 65536)::INTEGER - 32768 AS s, i // 1000 AS runs, CASE WHEN hash(i) % 3 > 0 THEN i END AS nulls, repeat(chr(97 + (i % 26)::INTEGER), (hash(i) % 60)::INTEGER) AS t,
		'value ' || (hash(i) % 1000) AS dict, CASE WHEN i < 22000 THEN 'same' ELSE 'u' || hash(i) END AS overflow, sin(i)::FLOAT AS f, CASE WHEN i % 97 = 0 THEN 'NaN'::DOUBLE ELSE exp(i % 700) END AS d,
		((hash(i) % 10000000000)::BIGINT / 100)::DECIMAL(12,2) AS dec, make_timestamp((hash(i) % 4000000000000000)::BIGINT) AS ts, DATE '0001-01-01' + (hash(i) % 3000000)::INTEGER AS day, i % 5 = 0 AS flag,
		[i, NULL, hash(i) % 7][1:(i % 4)] AS list, {'a': i % 3, 'b': ['x' || i % 10]} AS st, MAP {'k' || i % 3: i} AS m, encode('b' || hash(i)) AS bl, md5(i::VARCHAR)::UUID AS uu, hash(i)::HUGEINT * (hash(i + 1) >> 2) AS h
		FROM range(45000) t(i)`
	n := newNode(t)
	n.access.Threads = 4
	for _, ex := range []*planv1.ExchangeTask{gathered(), hashed(5, 7), hashed(90, 0, 16)} {
		cols, parts := n.produce(ex, 0, sql)
		inst := n.consume(input("v", cols, parts))
		require.Equal(t, []string{"(0)"}, rows(t, inst, "SELECT count(*) FROM (("+sql+" EXCEPT ALL SELECT * FROM v) UNION ALL (SELECT * FROM v EXCEPT ALL "+sql+"))"), "%s", ex)
		require.Equal(t, []string{"(45000)"}, rows(t, inst, "SELECT count(*) FROM v"))
	}
}

func TestCarriable_RefusesWhatWouldChange(t *testing.T) {
	for _, typ := range []string{
		"VARIANT", "GEOMETRY", "TYPE", "type 99", "", "(", "STRUCT(", "STRUCT()", `STRUCT("" INTEGER, "" INTEGER)`, "INTEGER[", "INTEGER[x]", "INTEGER]", "MAP(INTEGER)", "MAP(INTEGER, VARIANT)",
		"GEOMETRY[]", `STRUCT("a" STRUCT("b" VARIANT[]))`, "DECIMAL(4", "ENUM('a", "FOO(1)", "INTEGER, INTEGER", `UNION("i" INTERVAL)`, `UNION("i" STRUCT("t" TIME WITH TIME ZONE))`,
		strings.Repeat("STRUCT(\"a\" ", 1000) + "INTEGER" + strings.Repeat(")", 1000), "INTEGER" + strings.Repeat("[]", 1000),
	} {
		require.False(t, exchange.Carriable(typ), typ)
	}
	n := newNode(t)
	_, _, err := n.tryProduce(gathered(), 0, "SELECT 1 AS a, {'x': 1}::VARIANT AS b")
	require.ErrorContains(t, err, `column "b"`)
	require.ErrorContains(t, err, "VARIANT")
}
