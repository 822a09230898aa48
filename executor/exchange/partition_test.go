package exchange_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/exchange"
)

// of answers the parts of one partition.
func of(parts []*planv1.ExchangePart, partition int32) []*planv1.ExchangePart {
	var out []*planv1.ExchangePart
	for _, p := range parts {
		if p.GetPartition() == partition {
			out = append(out, p)
		}
	}
	return out
}

// Rows whose keys are equal as GROUP BY sees it are in one partition, whichever task wrote them and whatever else is in the row.
func TestHash_EqualKeysMeet(t *testing.T) {
	const partitions = 7
	for name, keys := range map[string]struct{ sql, group string }{
		"zeros, NaNs and NULLs": {"SELECT unnest([0.0, '-0.0'::DOUBLE, 'NaN'::DOUBLE, '-NaN'::DOUBLE, 'inf'::DOUBLE, NULL, 1]) AS k", "k"},
		"floats":                {"SELECT unnest([0.0::FLOAT, '-0.0'::FLOAT, 'NaN'::FLOAT, NULL, 1]) AS k", "k"},
		"intervals":             {"SELECT unnest([INTERVAL '1 month', INTERVAL '30 days', INTERVAL '720 hours', NULL]) AS k", "k"},
		"text and numbers":      {"SELECT i % 50 AS k, CASE WHEN i % 3 > 0 THEN 'x' || (i % 20) END AS l FROM range(3000) t(i)", "k, l"},
		"nested":                {"SELECT unnest([{'a': 0.0, 'l': [NULL, '-0.0'::DOUBLE]}, {'a': '-0.0'::DOUBLE, 'l': [NULL, 0.0]}, {'a': NULL, 'l': NULL}, NULL]) AS k", "k"},
		"maps":                  {"SELECT unnest([MAP {0.0: 'NaN'::DOUBLE}, MAP {'-0.0'::DOUBLE: '-NaN'::DOUBLE}, NULL]) AS k", "k"},
		"huge":                  {"SELECT unnest(['170141183460469231731687303715884105727'::HUGEINT, 0, -1, NULL]) AS k", "k"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			ex := hashed(partitions)
			for k := range strings.Split(keys.group, ",") {
				ex.Keys = append(ex.Keys, int32(k))
			}
			cols, first := n.produce(ex, 0, keys.sql)
			_, second := n.produce(ex, 1, "SELECT * FROM ("+keys.sql+") ORDER BY 1 DESC")
			var sources []*planv1.Source
			union := []string{}
			for p := range int32(partitions) {
				view := fmt.Sprintf("p%d", p)
				sources = append(sources, input(view, cols, append(of(first, p), of(second, p)...)))
				union = append(union, fmt.Sprintf("SELECT *, %d AS p FROM %s", p, view))
			}
			inst := n.consume(sources...)
			all := "(" + strings.Join(union, " UNION ALL ") + ")"
			require.Empty(t, rows(t, inst, "SELECT "+keys.group+" FROM "+all+" GROUP BY "+keys.group+" HAVING count(DISTINCT p) > 1"))
			require.Equal(t, one(t, inst, "2 * count(*) FROM ("+keys.sql+")"), one(t, inst, "count(*) FROM "+all))
		})
	}
}

// The partitions are about equal, and within one the hash that DuckDB's own joins and groups use is spread as ever.
func TestHash_SpreadsRows(t *testing.T) {
	n := newNode(t)
	cols, parts := n.produce(hashed(16, 0), 0, "SELECT i FROM range(100000) t(i)")
	require.Len(t, parts, 16)
	for _, p := range parts {
		require.InDelta(t, 100000/16, p.GetRows(), 600)
	}
	inst := n.consume(input("v", cols, parts[:1]))
	require.Equal(t, "(64)", one(t, inst, "count(DISTINCT hash(i) % 64) FROM v"))
}

func TestZeroRows_HaveColumnsAndTypes(t *testing.T) {
	const sql = "SELECT i AS a, 'x' AS \"B c\", {'d': i::HUGEINT, 'e': [INTERVAL 1 DAY]} AS s FROM range(10) t(i) WHERE i < 0"
	n := newNode(t)
	for _, ex := range []*planv1.ExchangeTask{gathered(), hashed(5, 0), hashed(500, 0)} {
		cols, parts := n.produce(ex, 0, sql)
		require.Empty(t, parts)
		inst := n.consume(input("v", cols, parts))
		after, err := inst.Describe(t.Context(), "SELECT * FROM v")
		require.NoError(t, err)
		require.Len(t, after, 3)
		for i := range after {
			require.Equal(t, cols[i].GetName(), after[i].GetName())
			require.Equal(t, cols[i].GetEngineType(), after[i].GetEngineType())
		}
		require.Empty(t, rows(t, inst, "SELECT * FROM v"))
	}
}

func TestThousandsOfPartitions(t *testing.T) {
	n := newNode(t)
	n.access.MemoryBytes = 256 << 20
	cols, parts := n.produce(hashed(2000, 0), 0, "SELECT i, 'value ' || i AS s FROM range(60000) t(i)")
	require.Len(t, parts, 2000)
	inst := n.consume(input("v", cols, parts))
	require.Equal(t, "(60000, 60000, 1799970000)", one(t, inst, "count(*), count(DISTINCT s), sum(i)::BIGINT FROM v WHERE s = 'value ' || i"))
}

// DuckDB closes files when it has too many open, and goes on in new ones: they come back as one.
func TestFewOpenFiles_StillOneFilePerPartition(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	ex := hashed(50, 0)
	inst, err := n.pool.Open(t.Context(), duckdb.Access{WriteDirs: []string{dir}, TempDir: dir + "/spill", MemoryBytes: 1 << 30, Threads: 2, OpenFiles: 2})
	require.NoError(t, err)
	defer inst.Close()
	task := &planv1.Task{AttemptId: "a", Sql: "SELECT i FROM range(400000) t(i)", Work: &planv1.Task_Exchange{Exchange: ex}}
	made, out, err := exchange.Run(t.Context(), inst, task, exchange.Options{Scratch: dir})
	require.NoError(t, err)
	require.Len(t, out.GetPartitions(), 50)
	entries, err := os.ReadDir(made)
	require.NoError(t, err)
	require.Len(t, entries, 50)
	var total int64
	for _, p := range out.GetPartitions() {
		st, err := os.Stat(filepath.Join(made, fmt.Sprintf("%d.parquet", p.GetPartition())))
		require.NoError(t, err)
		require.Equal(t, st.Size(), p.GetBytes())
		total += p.GetRows()
	}
	require.Equal(t, int64(400000), total)
}

// Rows that are gathered come in the order of the tasks, and within a task in that of its query.
func TestGather_KeepsOrder(t *testing.T) {
	n := newNode(t)
	n.access.Threads = 4
	cols, second := n.produce(gathered(), 1, "SELECT i FROM range(300000) t(i) ORDER BY (i * 7919) % 300007")
	_, first := n.produce(gathered(), 0, "SELECT -i FROM range(300000) t(i) ORDER BY (i * 104729) % 300007")
	inst := n.consume(input("v", cols, append(second, first...)))
	got := rows(t, inst, "SELECT i FROM v")
	want := append(rows(t, inst, "SELECT -i FROM range(300000) t(i) ORDER BY (i * 104729) % 300007"), rows(t, inst, "SELECT i FROM range(300000) t(i) ORDER BY (i * 7919) % 300007")...)
	require.True(t, strings.Join(got, "\n") == strings.Join(want, "\n"), "the order has changed") // not Equal: nobody reads that difference
}

// Rows so wide that neither a sort nor a buffer per partition fits into the memory limit.
func TestWideRows_FitIntoLittleMemory(t *testing.T) {
	n := newNode(t)
	n.access.MemoryBytes = 96 << 20
	for _, ex := range []*planv1.ExchangeTask{gathered(), hashed(100, 0)} {
		cols, parts := n.produce(ex, 0, "SELECT i, repeat(chr(65 + (i % 26)::INTEGER), 4000) || i AS s FROM range(12000) t(i)")
		inst := n.consume(input("v", cols, parts[:1]), input("w", cols, parts))
		require.Equal(t, "(12000)", one(t, inst, "count(*) FROM w"), "%s %d", ex.GetKind(), ex.GetPartitions())
		require.Equal(t, "(true)", one(t, inst, "bool_and(s = repeat(chr(65 + (i % 26)::INTEGER), 4000) || i) FROM v"))
	}
}

// S10, S73, T1
func TestBind_RefusesMixedAndRepeatedParts(t *testing.T) {
	n := newNode(t)
	cols, a := n.produce(gathered(), 0, "SELECT 1 AS a")
	_, b := n.produce(gathered(), 0, "SELECT 1 AS a")
	_, err := n.tryConsume(input("v", cols, append(a, b...)))
	require.ErrorContains(t, err, "two attempts")
	_, err = n.tryConsume(input("v", cols, append(a, a...)))
	require.ErrorContains(t, err, "twice")
}

// The same part may be an input of two sources: it is fetched once.
func TestBind_OnePartForTwoSources(t *testing.T) {
	n := newNode(t)
	cols, parts := n.produce(gathered(), 0, "SELECT 1 AS a")
	inst := n.consume(input("v", cols, parts), input("w", cols, parts))
	require.Equal(t, "(1, 1)", one(t, inst, "v.a, w.a FROM v, w"))
}

func TestBind_RefusesOtherColumns(t *testing.T) {
	n := newNode(t)
	_, parts := n.produce(gathered(), 0, "SELECT 1::BIGINT AS a, 'x' AS b")
	col := func(name, typ string) *planv1.Column { return &planv1.Column{Name: name, EngineType: typ} }
	for want, cols := range map[string][]*planv1.Column{
		"its parts have 2 columns; 1 are expected":                                      {col("a", "BIGINT")},
		`column "a" should be INTEGER, which travels as INTEGER, and its parts have BI`: {col("a", "INTEGER"), col("b", "VARCHAR")},
		`column "a" should be HUGEINT, which travels as VARCHAR`:                        {col("a", "HUGEINT"), col("b", "VARCHAR")},
		`two of its columns are named "A"`:                                              {col("a", "BIGINT"), col("A", "VARCHAR")},
		"VARIANT cannot be carried":                                                     {col("a", "BIGINT"), col("b", "VARIANT")},
	} {
		_, err := n.tryConsume(input("v", cols, parts))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "output of stage 1")
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, duckdb.PlanError(err).GetClass())
	}
}

func TestRun_RefusesBadTasks(t *testing.T) {
	n := newNode(t)
	for want, ex := range map[string]*planv1.ExchangeTask{
		"does not know":       {Ticket: "t"},
		"without a ticket":    {Kind: planv1.ExchangeKind_EXCHANGE_KIND_GATHER},
		"with 0 partitions":   hashed(0, 0),
		"with -1 partitions":  hashed(-1, 0),
		"with 65537":          hashed(65537, 0),
		"without keys":        hashed(2),
		"by column 1 of 1":    hashed(2, 1),
		"by column -1 of 1":   hashed(2, -1),
		"BROADCAST with 2":    {Kind: planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST, Partitions: 2, Ticket: "t"},
		"want exactly one SE": gathered(),
	} {
		sql := "SELECT 1 AS a"
		if strings.HasPrefix(want, "want") {
			sql = "CREATE TABLE x(i INTEGER)"
		}
		_, _, err := n.tryProduce(ex, 0, sql)
		require.ErrorContains(t, err, want)
	}
}

// The columns of a query may have any names, the same ones too, and may be called as the parts' own columns are.
func TestRun_AnyColumnNames(t *testing.T) {
	n := newNode(t)
	cols, parts := n.produce(hashed(3, 1), 0, `SELECT 1 AS p, 2 AS i0, 3 AS c0, 4 AS " ", 5 AS "x""y", 6 AS p -- a comment`)
	for i, c := range cols {
		c.Name = fmt.Sprintf("%d:%s", i, c.GetName())
	}
	inst := n.consume(input("v", cols, parts))
	require.Equal(t, []string{"(1, 2, 3, 4, 5, 6)"}, rows(t, inst, "SELECT * FROM v"))
}

// S73
func TestRun_SourceThatChangedFails(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "in.csv")
	require.NoError(t, os.WriteFile(path, []byte("a\n1\n2\n"), 0o600))
	st, err := os.Stat(path)
	require.NoError(t, err)
	src := &planv1.Source{View: "v", Kind: &planv1.Source_File{File: &planv1.FileSource{
		Function: "read_csv", Files: []*planv1.PinnedFile{{Path: path, SizeBytes: st.Size(), MtimeNanos: st.ModTime().UnixNano()}}, Columns: []*planv1.Column{{Name: "a", EngineType: "BIGINT"}},
	}}}
	inst, err := n.pool.Open(context.Background(), duckdb.Access{ReadFiles: []string{path}, WriteDirs: []string{dir}, MemoryBytes: 1 << 30})
	require.NoError(t, err)
	defer inst.Close()
	require.NoError(t, inst.BindSources(t.Context(), []*planv1.Source{src}))
	require.NoError(t, os.WriteFile(path, []byte("a\n1\n2\n3\n"), 0o600))
	_, _, err = exchange.Run(t.Context(), inst, &planv1.Task{AttemptId: "a", Sql: "SELECT a FROM v", Work: &planv1.Task_Exchange{Exchange: gathered()}}, exchange.Options{Scratch: dir})
	require.ErrorContains(t, err, "in.csv")
	require.ErrorContains(t, err, "changed")
}
