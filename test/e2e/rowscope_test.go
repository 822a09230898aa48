package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// newDated is a cluster with lake.d.t of six files, one a day with ids 10*day to 10*day+9, and lake.d.s.
func newDated(t *testing.T) *harness.Cluster {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (id BIGINT, day DATE, v BIGINT) PARTITIONED BY (day)")
	c.SQL("INSERT INTO lake.d.t SELECT i, DATE '2026-01-01' + CAST(i // 10 AS INTEGER), i FROM range(60) r(i)")
	c.SQL("CREATE TABLE lake.d.s AS SELECT i * 7 AS id, DATE '2026-01-01' + CAST(i * 7 // 10 AS INTEGER) AS day, -i AS v FROM range(12) r(i)")
	return c
}

// Row-level statements read the files that can have rows which they are about, and say how many that are.
func TestRowLevel_ReadsFilesThatMayMatch(t *testing.T) {
	t.Parallel()
	c := newDated(t)
	for statement, want := range map[string]string{
		"DELETE FROM lake.d.t WHERE id BETWEEN 13 AND 15":                                                                                         "1 of 6 files",
		"DELETE FROM lake.d.t WHERE id % 2 = 0":                                                                                                   "6 files",
		"UPDATE lake.d.t SET v = 0 WHERE day = '2026-01-02' AND v % 2 = 0":                                                                        "1 of 6 files",
		"UPDATE lake.d.t SET v = 0 WHERE day >= '2026-01-05' OR id < 3":                                                                           "3 of 6 files",
		"UPDATE lake.d.t SET v = s.v FROM lake.d.s AS s WHERE s.id = t.id AND t.id > 48":                                                          "2 of 6 files",
		"MERGE INTO lake.d.t USING lake.d.s AS s ON t.id = s.id AND t.day > '2026-01-04' WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *": "2 of 6 files",
		"MERGE INTO lake.d.t USING lake.d.s AS s ON t.id = s.id AND t.day > '2026-01-04' WHEN NOT MATCHED BY SOURCE THEN DELETE":                  "6 files",
		"DELETE FROM lake.d.t WHERE id = 1000":                                                                                                    "0 of 6 files",
	} {
		require.Contains(t, oneOf(c, "EXPLAIN "+statement), want, statement)
	}
	require.Equal(t, "3", answerOf(t, c, "DELETE FROM lake.d.t WHERE id BETWEEN 13 AND 15")["deleted_rows"])
	require.Equal(t, "57", oneOf(c, "SELECT count(*) FROM lake.d.t"))
	// The source is the whole table, although one file of it may change.
	require.Equal(t, "1", answerOf(t, c, "UPDATE lake.d.t SET v = (SELECT max(u.v) FROM lake.d.t AS u) + 1 WHERE id = 20")["updated_rows"])
	require.Equal(t, "60", oneOf(c, "SELECT v FROM lake.d.t WHERE id = 20"))
	// Rows without a match are those that match in no file, read or not.
	got := answerOf(t, c, "MERGE INTO lake.d.t USING lake.d.s AS s ON t.id = s.id AND t.day > '2026-01-04' WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *")
	require.Equal(t, "3", got["updated_rows"])
	require.Equal(t, "66", oneOf(c, "SELECT count(*) FROM lake.d.t"))
	c.NoOrphans("d", "t")
}

// What others add meanwhile is a conflict if the statement's condition may hold for it, and only then, and only if the table asks for serializable isolation.
func TestRowLevel_ConflictsWithinTheCondition(t *testing.T) {
	t.Parallel()
	h := newOvertaken(t)
	const third, fourth = "INSERT INTO lake.d.t VALUES (27, '2026-01-03', -7)", "INSERT INTO lake.d.t VALUES (37, '2026-01-04', -7)"
	for name, tc := range map[string]struct{ statement, meanwhile, isolation, refused string }{
		"delete, outside":                    {"DELETE FROM lake.d.t WHERE day = '2026-01-03' AND id > 25", fourth, "", ""},
		"delete, inside":                     {"DELETE FROM lake.d.t WHERE day = '2026-01-03' AND id > 25", third, "", "whose rows it might have changed"},
		"delete, by bounds":                  {"DELETE FROM lake.d.t WHERE day = '2026-01-03' AND id > 27", third, "", ""},
		"delete, inside, snapshot isolation": {"DELETE FROM lake.d.t WHERE day = '2026-01-03' AND id > 25", third, "snapshot", ""},
		"delete, nothing is known":           {"DELETE FROM lake.d.t WHERE id % 10 = 3", fourth, "", "whose rows it might have changed"},
		"delete, by what the table has elsewhere": {
			"DELETE FROM lake.d.t WHERE day = '2026-01-03' AND v < (SELECT max(u.v) FROM lake.d.t AS u)", fourth, "", "whose rows it might have changed",
		},
		"delete, by what it has in a part": {
			"DELETE FROM lake.d.t WHERE day = '2026-01-03' AND v < (SELECT max(u.v) FROM lake.d.t AS u WHERE u.day = '2026-01-05')", fourth, "", "",
		},
		"update, outside": {"UPDATE lake.d.t SET v = 0 WHERE day = '2026-01-03'", fourth, "", ""},
		"update, inside":  {"UPDATE lake.d.t SET v = 0 WHERE day = '2026-01-03'", third, "", "whose rows it might have changed"},
		"merge, outside":  {"MERGE INTO lake.d.t USING lake.d.s AS s ON t.id = s.id AND t.day = '2026-01-03' WHEN MATCHED THEN DELETE", fourth, "", ""},
		"merge, inside":   {"MERGE INTO lake.d.t USING lake.d.s AS s ON t.id = s.id AND t.day = '2026-01-03' WHEN MATCHED THEN DELETE", third, "", "whose rows it might have changed"},
		"merge, by its source": {
			"MERGE INTO lake.d.t USING lake.d.s AS s ON t.id = s.id AND t.day = '2026-01-03' WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE", fourth, "", "whose rows it might have changed",
		},
	} {
		h.add(name, tc.statement, tc.meanwhile, func(t *testing.T, table string, r harness.Result) {
			if tc.refused == "" {
				require.Equal(t, 0, r.Code, r.Err)
			} else {
				require.Equal(t, 1, r.Code, r.Out)
				require.Contains(t, r.Err, tc.refused)
				require.Contains(t, r.Err, "isolation-level=snapshot")
				require.Equal(t, "61", oneOf(h.Cluster, "SELECT count(*) FROM "+table))
			}
			require.Equal(t, "1", oneOf(h.Cluster, "SELECT count(*) FROM "+table+" WHERE v = -7"), "nobody's rows are lost")
		}, tc.isolation)
	}
	h.run()
}

// overtaken runs statements each of which, planned and with its tasks done, waits to commit while another one commits; each on a table of its own.
type overtaken struct {
	*harness.Cluster
	t     *testing.T
	dir   string
	cases []func()
	terms []string
}

func newOvertaken(t *testing.T) *overtaken {
	return &overtaken{Cluster: newDated(t), t: t, dir: t.TempDir()}
}

// add takes a case. lake.d.t in its statements becomes the case's own table.
func (o *overtaken) add(name, statement, meanwhile string, check func(t *testing.T, table string, r harness.Result), isolation string) {
	n := len(o.cases)
	table, gate := fmt.Sprintf("lake.d.t%d", n), filepath.Join(o.dir, fmt.Sprint(n))
	own := func(text string) string {
		return strings.NewReplacer("lake.d.t", table, " t.", fmt.Sprintf(" t%d.", n)).Replace(text)
	}
	o.SQL("CREATE TABLE " + table + " PARTITIONED BY (day) AS SELECT * FROM lake.d.t")
	if isolation != "" {
		o.SQL("ALTER TABLE " + table + " SET TBLPROPERTIES ('write.delete.isolation-level' = '" + isolation + "')")
	}
	o.terms = append(o.terms, "1*pause("+gate+")->1*off")
	o.cases = append(o.cases, func() {
		o.t.Run(name, func(t *testing.T) { check(t, table, o.hold(t, gate, own(statement), own(meanwhile))) })
	})
}

func (o *overtaken) run() {
	o.Scheduler.Terminate(o.t)
	o.StartScheduler("SIGNET_FAILPOINTS=scheduler.root.before-commit=" + strings.Join(o.terms, "->"))
	o.AwaitExecutors(1)
	for _, c := range o.cases {
		c()
	}
}

// hold runs a statement that waits at its commit until others have run.
func (o *overtaken) hold(t *testing.T, gate, statement string, others ...string) harness.Result {
	t.Helper()
	defer func() { _ = os.WriteFile(gate, nil, 0o600) }()
	done := make(chan harness.Result, 1)
	go func() { done <- o.Run("sql", "--quiet", statement) }()
	harness.Eventually(t, "the statement is about to commit", func() bool {
		j := o.JobsAbout(statement)
		return len(j) == 1 && j[0].GetPhase() == "root"
	})
	for _, q := range others {
		o.SQL(q)
	}
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	return <-done
}

// Row-level statements on a branch read it, change it, and leave the others alone.
func TestRowLevel_OnBranches(t *testing.T) {
	t.Parallel()
	c := newDated(t)
	c.SQL("ALTER TABLE lake.d.t CREATE BRANCH audit; INSERT INTO lake.d.t.branch_audit VALUES (100, '2026-02-01', 100)")
	require.Contains(t, oneOf(c, "EXPLAIN DELETE FROM lake.d.t.branch_audit WHERE t.id = 100"), "to branch audit")
	require.Equal(t, "2", answerOf(t, c, "DELETE FROM lake.d.t.branch_audit WHERE t.id IN (5, 100)")["deleted_rows"])
	require.Equal(t, "1", answerOf(t, c, "UPDATE lake.d.t.branch_audit AS b SET v = -1 WHERE b.id = 6")["updated_rows"])
	got := answerOf(t, c, `MERGE INTO lake.d.t.branch_audit USING (SELECT * FROM lake.d.t.branch_audit WHERE id < 8 UNION ALL SELECT * FROM lake.d.t WHERE id = 5) AS s ON t.id = s.id
		WHEN MATCHED AND s.v = -1 THEN UPDATE SET v = -2 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id + 1000, s.v)`)
	require.Equal(t, "1", got["updated_rows"])
	require.Equal(t, [][]string{{"4", "4"}, {"6", "-2"}, {"7", "7"}, {"1005", "5"}}, c.SQL("SELECT id, v FROM lake.d.t.branch_audit WHERE id IN (4, 5, 6, 7, 100, 1005) ORDER BY id"))
	require.Equal(t, [][]string{{"60", "59", "0"}}, c.SQL("SELECT count(*), max(id), min(v) FROM lake.d.t"))

	// By the setting, every name without a branch means it, also where the statement reads.
	wap := []string{"--set", "signet.wap_branch=audit"}
	c.SQL("DELETE FROM lake.d.t WHERE id = (SELECT max(u.id) FROM lake.d.t AS u)", wap...)
	require.Equal(t, "59", oneOf(c, "SELECT max(id) FROM lake.d.t.branch_audit"))
	require.Equal(t, "60", oneOf(c, "SELECT count(*) FROM lake.d.t"))
	c.Fail(1, "DELETE FROM lake.d.t.branch_nope", "branch \"nope\" does not exist")
	c.SQL("ALTER TABLE lake.d.t CREATE TAG v1")
	c.Fail(1, "UPDATE lake.d.t.tag_v1 SET v = 0", "tags never change")

	// Other branches are no conflict, and the same one is.
	h := &overtaken{Cluster: c, t: t, dir: t.TempDir()}
	gates := []string{filepath.Join(h.dir, "a"), filepath.Join(h.dir, "b")}
	for _, g := range gates {
		h.terms = append(h.terms, "1*pause("+g+")->1*off")
	}
	h.run()
	r := h.hold(t, gates[0], "DELETE FROM lake.d.t.branch_audit WHERE id < 3", "INSERT INTO lake.d.t VALUES (1, '2026-01-01', 0)")
	require.Equal(t, 0, r.Code, r.Err)
	r = h.hold(t, gates[1], "DELETE FROM lake.d.t.branch_audit WHERE id < 13", "INSERT INTO lake.d.t.branch_audit VALUES (1, '2026-01-01', 0)")
	require.Equal(t, 1, r.Code, r.Out)
	require.Contains(t, r.Err, "whose rows it might have changed")
	require.Equal(t, "61", oneOf(c, "SELECT count(*) FROM lake.d.t"))
}
