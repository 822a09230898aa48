package e2e_test

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// A DELETE whose condition holds for all rows of a file removes it by metadata alone: nothing reads it, as files show that cannot be read any more.
func TestDelete_WholeFilesAreNotRead(t *testing.T) {
	t.Parallel()
	c := newDated(t)
	c.SQL("INSERT INTO lake.d.t VALUES (100, NULL, 1), (101, NULL, NULL)")
	text := oneOf(c, "EXPLAIN DELETE FROM lake.d.t WHERE day >= '2026-01-05'")
	for _, want := range []string{"by metadata alone: 2 files with 20 rows", "no file is read or written", "writes: no rows", "removes: 2 whole files\n"} {
		require.Contains(t, text, want)
	}
	summary := func() []string {
		s := c.Table("d", "t").Metadata.CurrentSnapshot().Summary
		return []string{string(s.Operation), s.Properties["deleted-data-files"], s.Properties["deleted-records"], s.Properties["added-data-files"], s.Properties["total-records"]}
	}
	gone := func(condition string) {
		t.Helper()
		for i, f := range c.Table("d", "t").Files {
			if p := fmt.Sprint(c.Table("d", "t").Partitions[i]); strings.Contains(p, condition) {
				spoil(t, f)
			}
		}
	}
	gone("20458") // days since 1970
	gone("20459")
	require.Equal(t, "20", answerOf(t, c, "DELETE FROM lake.d.t WHERE day >= '2026-01-05'")["deleted_rows"])
	require.Equal(t, []string{"delete", "2", "20", "0", "42"}, summary())
	require.Equal(t, "42", oneOf(c, "SELECT count(*) FROM lake.d.t"))

	// Some whole, one in part, in one snapshot.
	gone("20456")
	before := c.Table("d", "t").Snapshots
	text = oneOf(c, "EXPLAIN DELETE FROM lake.d.t WHERE id BETWEEN 15 AND 29")
	require.Contains(t, text, "by metadata alone: 1 file with 10 rows")
	require.Contains(t, text, "1 of 5 files")
	require.Equal(t, "15", answerOf(t, c, "DELETE FROM lake.d.t WHERE id BETWEEN 15 AND 29")["deleted_rows"])
	require.Equal(t, []string{"overwrite", "2", "20", "1", "27"}, summary())
	require.Equal(t, before+1, c.Table("d", "t").Snapshots)

	// NULL is no value: a condition on it holds for no row, but IS NULL does.
	require.Equal(t, "0", answerOf(t, c, "DELETE FROM lake.d.t WHERE day <> '2026-01-04' AND day > '2026-01-20'")["deleted_rows"])
	require.Equal(t, "2", answerOf(t, c, "DELETE FROM lake.d.t WHERE day IS NULL")["deleted_rows"])
	require.Equal(t, []string{"delete", "1", "2", "0", "25"}, summary())

	// No condition.
	for _, f := range c.Table("d", "t").Files {
		spoil(t, f)
	}
	require.Equal(t, "25", answerOf(t, c, "DELETE FROM lake.d.t")["deleted_rows"])
	require.Equal(t, []string{"delete", "3", "25", "0", "0"}, summary())
	require.Equal(t, "0", oneOf(c, "SELECT count(*) FROM lake.d.t"))
	require.Equal(t, "0", answerOf(t, c, "DELETE FROM lake.d.t")["deleted_rows"])
}

// spoil makes a file one that nobody can read, of the same size.
func spoil(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, make([]byte, info.Size()), 0o600))
}

// A whole file that somebody else removes meanwhile, or a row that is added where the condition holds, is a conflict as for every DELETE.
func TestDelete_WholeFilesAndConflicts(t *testing.T) {
	t.Parallel()
	h := newOvertaken(t)
	const statement = "DELETE FROM lake.d.t WHERE day = '2026-01-03'"
	for name, tc := range map[string]struct{ meanwhile, refused string }{
		"outside":      {"INSERT INTO lake.d.t VALUES (1, '2026-01-04', 0)", ""},
		"inside":       {"INSERT INTO lake.d.t VALUES (1, '2026-01-03', 0)", "whose rows it might have changed"},
		"file is gone": {"DELETE FROM lake.d.t WHERE id = 27", "is not in the table any more"},
	} {
		h.add(name, statement, tc.meanwhile, func(t *testing.T, table string, r harness.Result) {
			if tc.refused == "" {
				require.Equal(t, 0, r.Code, r.Err)
				require.Equal(t, "51", oneOf(h.Cluster, "SELECT count(*) FROM "+table))
				return
			}
			require.Equal(t, 1, r.Code, r.Out)
			require.Contains(t, r.Err, tc.refused)
		}, "")
	}
	h.run()
}

// rowCondition writes conditions over the columns of TestDelete_AsDuckDB.
func rowCondition(r *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	if depth > 0 && r.IntN(2) == 0 {
		switch r.IntN(3) {
		case 0:
			return "(" + rowCondition(r, depth-1) + " AND " + rowCondition(r, depth-1) + ")"
		case 1:
			return "(" + rowCondition(r, depth-1) + " OR " + rowCondition(r, depth-1) + ")"
		}
		return "NOT (" + rowCondition(r, depth-1) + ")"
	}
	op := pick("=", "<>", "<", "<=", ">", ">=")
	day := fmt.Sprintf("'%s-%02d'", pick("1969-12", "1970-01", "2026-01", "2026-02"), 1+r.IntN(28))
	return pick(
		fmt.Sprintf("id %s %d", op, r.IntN(130)), fmt.Sprintf("id IN (%d, %d, %d)", r.IntN(120), r.IntN(120), r.IntN(120)), fmt.Sprintf("id BETWEEN %d AND %d", r.IntN(60), 50+r.IntN(70)),
		fmt.Sprintf("s %s '%s'", op, pick("", "a", "ab", "abc", "b", "bcd", "ä", "zz")), fmt.Sprintf("s LIKE '%s%%'", pick("", "a", "ab", "bc", "z")), "s NOT LIKE 'ab%'", "s NOT IN ('a', '')",
		"d "+op+" "+day, "d "+op+" "+day, fmt.Sprintf("ts %s %s", op, day), fmt.Sprintf("ts %s '2026-01-%02d 12:00:00'", op, 1+r.IntN(28)),
		fmt.Sprintf("f %s %s", op, pick("'nan'", "0", "-1.5", "CAST(3 AS DOUBLE)")), fmt.Sprintf("n %s %s", op, pick("0", "-1.25", "10.5", "99")),
		"b", "NOT b", "b = false", pick("id", "s", "d", "ts", "f", "n", "b")+pick(" IS NULL", " IS NOT NULL"), pick("true", "false", "NULL"),
	)
}

// TestDelete_AsDuckDB deletes by random conditions from tables of all kinds of partitions, and compares with what DuckDB keeps of all rows.
func TestDelete_AsDuckDB(t *testing.T) {
	t.Parallel()
	seed := seed(t)
	t.Logf("SIGNET_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // choices, not secrets
	rounds := 12
	if nightly() {
		rounds = 200
	}
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w")
	for i, partitions := range []string{
		"", " PARTITIONED BY (s, b)", " PARTITIONED BY (d)", " PARTITIONED BY (month(ts))", " PARTITIONED BY (bucket(3, id), year(d))", " PARTITIONED BY (truncate(2, s), f)", " PARTITIONED BY (truncate(10, id), n)",
	} {
		table := fmt.Sprintf("lake.w.t%d", i)
		c.SQL("CREATE TABLE " + table + " (id INTEGER NOT NULL, s VARCHAR, d DATE, ts TIMESTAMP, f DOUBLE, n DECIMAL(9,2), b BOOLEAN)" + partitions)
		var rows []string
		for id := range 120 {
			of := func(list ...string) string { return list[r.IntN(len(list))] }
			day := of("1969-12-31", "1970-01-01", "1969-12-02", "2026-01-05", "2026-01-06", "2026-02-01")
			rows = append(rows, fmt.Sprintf("(%d, %s, %s, %s, %s, %s, %s)", id, of("NULL", "''", "'a'", "'abc'", "'abd'", "'b'", "'äö'", "'zzz'"), of("NULL", "DATE '"+day+"'", "DATE '"+day+"'"),
				of("NULL", "TIMESTAMP '"+day+" 00:00:00'", "TIMESTAMP '"+day+" 23:59:59.999999'"), of("NULL", "CAST('nan' AS DOUBLE)", "-0.0", "0.0", "3.0", "-1.5"), of("NULL", "0", "-1.25", "10.5"), of("NULL", "true", "false")))
		}
		for part := range 3 {
			c.SQL("INSERT INTO " + table + " VALUES " + strings.Join(rows[part*40:part*40+40], ", "))
		}
		c.SQL("ALTER TABLE " + table + " CREATE BRANCH b")
		var script strings.Builder
		var conditions []string
		for range rounds {
			cond := rowCondition(r, 2)
			conditions = append(conditions, cond)
			// Nothing can be said of files by the condition of the second list, so that DuckDB looks at all rows of the main branch.
			list := "SELECT coalesce(string_agg(CAST(id AS VARCHAR), ' ' ORDER BY id), '') FROM " + table
			fmt.Fprintf(&script, "DELETE FROM %s.branch_b WHERE %s; SELECT (%s.branch_b) AS is_there, (%s WHERE coalesce(%s, false) = false) AS stays; ALTER TABLE %s REPLACE BRANCH b;", table, cond, list, list, cond, table)
		}
		res := c.Run("sql", "--quiet", "--output", "csv", script.String())
		require.Equal(t, 0, res.Code, "%s\n%s", script.String(), res.Err)
		csvs := csv.NewReader(strings.NewReader(res.Out))
		csvs.FieldsPerRecord = -1
		answers, err := csvs.ReadAll()
		require.NoError(t, err)
		n, deleted := 0, ""
		for at, row := range answers {
			if i := slices.Index(row, "deleted_rows"); i >= 0 {
				deleted = answers[at+1][i]
			}
			if row[0] != "is_there" {
				continue
			}
			left, cond := answers[at+1], conditions[n]
			require.Equal(t, left[1], left[0], "%s%s: %s", table, partitions, cond)
			require.Equal(t, fmt.Sprint(120-len(strings.Fields(left[1]))), deleted, cond)
			n++
		}
		require.Equal(t, rounds, n)
	}
}
