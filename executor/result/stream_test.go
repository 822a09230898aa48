package result

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

func open(t testing.TB) *duckdb.Instance {
	t.Helper()
	pool := duckdb.NewPool(duckdb.Options{Ready: -1})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	inst, err := pool.Open(context.Background(), duckdb.Access{TempDir: t.TempDir(), MemoryBytes: 1 << 30, Threads: 2, KeepOrder: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inst.Close()) })
	return inst
}

// collect runs a query and decodes the stream: its schema and its rows as JSON.
func collect(t testing.TB, sql string) (*arrow.Schema, []string, int64) {
	t.Helper()
	var buf bytes.Buffer
	rows, err := Stream(context.Background(), open(t), sql, 0, func(p []byte) error {
		require.LessOrEqual(t, len(p), MaxChunk)
		buf.Write(p)
		return nil
	})
	require.NoError(t, err)
	r, err := ipc.NewReader(&buf)
	require.NoError(t, err)
	defer r.Release()
	var out []string
	for r.Next() {
		b, err := r.RecordBatch().MarshalJSON()
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	require.NoError(t, r.Err())
	return r.Schema(), out, rows
}

func TestStream_ZeroRowsKeepTheSchema(t *testing.T) { // S30
	schema, _, rows := collect(t, "SELECT 1::BIGINT AS a, 'x' AS b WHERE false")
	require.Zero(t, rows)
	require.Equal(t, "a", schema.Field(0).Name)
	require.Equal(t, arrow.PrimitiveTypes.Int64, schema.Field(0).Type)
	require.Equal(t, 2, schema.NumFields())
}

func TestStream_Types(t *testing.T) {
	for expr, want := range map[string]string{
		"true": "bool", "1::TINYINT": "int8", "1::SMALLINT": "int16", "1::INTEGER": "int32", "1::BIGINT": "int64",
		"1::UTINYINT": "uint8", "1::UBIGINT": "uint64", "170141183460469231731687303715884105727::HUGEINT": "",
		"1.5::FLOAT": "float32", "1.5::DOUBLE": "float64", "1.25::DECIMAL(4,2)": "decimal", "1.25::DECIMAL(38,2)": "decimal",
		"DATE '2024-02-29'": "date32", "TIME '10:11:12.5'": "time64[us]", "TIMESTAMP '1969-12-31 23:59:59.5'": "timestamp[us]",
		"TIMESTAMP_S '2024-01-01'": "timestamp[s]", "TIMESTAMP_MS '2024-01-01'": "timestamp[ms]", "TIMESTAMP_NS '2024-01-01'": "timestamp[ns]",
		"TIMESTAMPTZ '2024-01-01'": "timestamp[us, tz=UTC]", "'ü'": "utf8", "'\\xAA'::BLOB": "binary",
		"'6f9619ff-8b86-d011-b42d-00c04fc964ff'::UUID": "", "'a'::ENUM('a','b')": "", "INTERVAL 3 DAY": "", "'101'::BIT": "",
		"[1,NULL]": "list", "{'a': 1, 'b': [{'c': 'x'}]}": "struct", "MAP {'k': 1}": "map", "[1,2]::INT[2]": "",
		"'{\"a\":1}'::JSON": "", "union_value(a := 1)": "", "'10:00:00+02'::TIMETZ": "", "NULL": "",
	} {
		t.Run(expr, func(t *testing.T) {
			schema, out, rows := collect(t, "SELECT "+expr+" AS c UNION ALL SELECT NULL")
			require.EqualValues(t, 2, rows)
			require.Contains(t, schema.Field(0).Type.String(), want)
			t.Log(schema.Field(0).Type, out)
		})
	}
}

// What Arrow has no form for comes as text, in order and under its name.
func TestStream_TextColumns(t *testing.T) {
	schema, out, _ := collect(t, `SELECT '10:00:00+02'::TIMETZ AS t, '101'::BIT AS b, [union_value(a := i)] AS u, i, 'x' AS i FROM range(3) r(i) ORDER BY r.i DESC -- end`)
	require.Equal(t, []string{"utf8", "utf8", "utf8", "int64", "utf8"}, func() (kinds []string) {
		for _, f := range schema.Fields() {
			kinds = append(kinds, f.Type.Name())
		}
		return kinds
	}())
	require.Equal(t, "i", schema.Field(4).Name)
	require.Contains(t, out[0], `"b":"101"`)
	require.Contains(t, out[0], `10:00:00+02`)
	require.Less(t, strings.Index(strings.Join(out, ""), "[2]"), strings.Index(strings.Join(out, ""), "[0]"), "ORDER BY holds")
}

func TestStream_ErrorIsNeverMasked(t *testing.T) {
	for range 60 {
		_, err := Stream(context.Background(), open(t), "SELECT CAST(CASE WHEN range = 300000 THEN 'x' ELSE '1' END AS INT) FROM range(400000)", 0,
			func([]byte) error { return nil })
		require.ErrorContains(t, err, "Could not convert string 'x' to INT32")
	}
}

func TestStream_SplitsLargeRows(t *testing.T) { // X18
	var calls int
	rows, err := Stream(context.Background(), open(t), "SELECT repeat('x', 8 << 20) s", 0, func(p []byte) error {
		calls++
		require.LessOrEqual(t, len(p), MaxChunk)
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, rows)
	require.Equal(t, 9, calls)
}

func TestStream_Cap(t *testing.T) { // S36, S37, S39
	const q = "SELECT range i FROM range(100000)"
	var size int64
	_, err := Stream(context.Background(), open(t), q, 0, func(p []byte) error { size += int64(len(p)); return nil })
	require.NoError(t, err)
	_, err = Stream(context.Background(), open(t), q, size, func([]byte) error { return nil })
	require.NoError(t, err, "exactly at the cap")
	_, err = Stream(context.Background(), open(t), q, size-1, func([]byte) error { return nil })
	var ue *duckdb.UserError
	require.ErrorAs(t, err, &ue)
	require.Contains(t, ue.Message, fmt.Sprint(size-1))
	require.Contains(t, ue.Hint, "max_result_bytes")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_LIMIT, duckdb.PlanError(err).Class)
}

func TestStream_ErrorInTheMiddle(t *testing.T) {
	_, err := Stream(context.Background(), open(t), "SELECT CAST(CASE WHEN range = 300000 THEN 'x' ELSE '1' END AS INT) FROM range(400000)", 0,
		func([]byte) error { return nil })
	require.ErrorContains(t, err, "Could not convert string 'x' to INT32")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, duckdb.PlanError(err).Class)
}

func TestStream_SendFails(t *testing.T) {
	boom := errors.New("boom")
	calls := 0
	_, err := Stream(context.Background(), open(t), "SELECT repeat('x', 100) FROM range(1000000)", 0, func([]byte) error { calls++; return boom })
	require.ErrorIs(t, err, boom)
	require.Equal(t, 1, calls)
}

func TestStream_Cancel(t *testing.T) { // X21
	for _, q := range []string{
		"SELECT count(*) FROM range(10000000000) a, range(10000000000) b", // nothing comes before the end
		"SELECT a.range FROM range(10000000000) a",                        // rows come all the time
	} {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		_, err := Stream(ctx, open(t), q, 0, func([]byte) error { return nil })
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, time.Since(start), 2*time.Second)
	}
}

func TestStream_OnlyOneSelect(t *testing.T) { // S70
	for _, q := range []string{"SELECT 1; SELECT 2", "CREATE TABLE t (i INT)", "SET threads=4", "COPY (SELECT 1) TO '/tmp/x'", "", "EXPLAIN SELECT 1"} {
		_, err := Stream(context.Background(), open(t), q, 0, func([]byte) error { return nil })
		require.Error(t, err, q)
	}
}
