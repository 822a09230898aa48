package e2e_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// failing runs a statement that must fail, and returns what the user reads: the message, and the hint below it.
func failing(t *testing.T, c *harness.Cluster, statement string) string {
	t.Helper()
	r, err := c.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: statement})
	if err != nil {
		return fmt.Sprint(status.Convert(err).Message(), status.Convert(err).Details())
	}
	j, err := c.Client().Wait(harness.Context(t), r.GetJobId(), nil)
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, j.GetState(), "%s must fail", statement)
	return j.GetError().GetMessage() + "\n" + j.GetError().GetHint()
}

// filesBelow lists the files of the warehouse, so that nothing can appear unseen.
func filesBelow(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// internals are words that no message to a user has.
var internals = []string{"panic", "runtime error", "nil pointer", "goroutine", "rpc error", "proto:", "parquet_schema", "__", ".go:", "%!", "<nil>"}

// Bad input per statement: the message names what is wrong and where, and nothing has changed: not the tables, not the catalog, no file is left.
func TestBadStatements(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.b; CREATE TABLE lake.b.t (id BIGINT NOT NULL, n INTEGER, s VARCHAR, d DECIMAL(5, 2), ts TIMESTAMP, st STRUCT(a INTEGER, b VARCHAR), l INTEGER[]) PARTITIONED BY (day(ts)); " +
		"INSERT INTO lake.b.t VALUES (1, 1, 'a', 1.25, TIMESTAMP '2026-01-01', {'a': 1, 'b': 'x'}, [1]), (2, 2, 'b', 2.5, TIMESTAMP '2026-01-02', NULL, NULL); CREATE TABLE lake.b.v3 (id BIGINT) WITH ('format-version' = '3')")
	state := func() []any {
		return []any{c.Table("b", "t").MetadataLocation, c.Table("b", "v3").MetadataLocation, c.SQL("SHOW SCHEMAS FROM lake"), c.SQL("SHOW TABLES FROM lake.b")}
	}
	before, files := state(), filesBelow(t, filepath.Join(c.Dir, "warehouse"))
	long := strings.Repeat("x", 300)
	for kind, statements := range map[string][][]string{
		"CREATE SCHEMA": {
			{"CREATE SCHEMA nope.b", "nope"},
			{"CREATE SCHEMA lake.b", "lake.b", "exists"},
			{"CREATE SCHEMA lake.\"\"", "must not be empty"},
			{"CREATE SCHEMA lake.\"a.b\"", "a.b", "dot"},
			{"CREATE SCHEMA lake." + long, "300 bytes"},
			{"CREATE SCHEMA lake.b.c", "at most 2 parts"},
		},
		"CREATE TABLE": {
			{"CREATE TABLE lake.b.u ()", "a column name"},
			{"CREATE TABLE lake.b.u (a BIGINT, a INTEGER)", "two columns a"},
			{"CREATE TABLE lake.b.u (a BIGINT, A INTEGER)", "differ in case only"},
			{"CREATE TABLE lake.b.u (a NOTATYPE)", "NOTATYPE"},
			{"CREATE TABLE lake.b.u (a HUGEINT)", "HUGEINT", "DECIMAL(38, 0)"},
			{"CREATE TABLE lake.b.u (a VARIANT)", "VARIANT", "VARCHAR"},
			{"CREATE TABLE lake.b.u (a GEOMETRY)", "GEOMETRY", "BLOB"},
			{"CREATE TABLE lake.b.u (a GEOGRAPHY)", "GEOGRAPHY", "BLOB"},
			{"CREATE TABLE lake.b.u (a STRUCT(x TIMESTAMPTZ_NS)) WITH ('format-version' = '3')", "column a", "TIMESTAMPTZ_NS", "TIMESTAMPTZ"},
			{"CREATE TABLE lake.b.u (a TIMESTAMP_NS)", "column a", "timestamp_ns", "'format-version'"},
			{"CREATE TABLE lake.b.u (a DECIMAL(39, 2))", "1 to 38"},
			{"CREATE TABLE lake.b.u (a DECIMAL(5, 9))", "0 to 5"},
			{"CREATE TABLE lake.b.u (a FIXED(-1))", "a length from 1"},
			{"CREATE TABLE lake.b.u (a STRUCT(x INT, x INT))", "two fields x"},
			{"CREATE TABLE lake.b.u (a INT) PARTITIONED BY (b)", "column b", "its columns are a"},
			{"CREATE TABLE lake.b.u (a BIGINT) PARTITIONED BY (bucket(0, a))", "1 to 2147483647", "'0'"},
			{"CREATE TABLE lake.b.u (a BIGINT) PARTITIONED BY (bucket(99999999999, a))", "'99999999999'"},
			{"CREATE TABLE lake.b.u (a BIGINT) PARTITIONED BY (day(a))", "day(a)", "BIGINT"},
			{"CREATE TABLE lake.b.u (a BIGINT) PARTITIONED BY (nope(a))", "unknown transform nope"},
			{"CREATE TABLE lake.b.u (a BIGINT) PARTITIONED BY (a, a)", "a twice"},
			{"CREATE TABLE lake.b.u (a DATE) PARTITIONED BY (day(a), month(a))", "redundant"},
			{"CREATE TABLE lake.b.u (a INT) ORDERED BY (b)", "column b"},
			{"CREATE TABLE lake.b.u (a INT) WITH ('format-version' = '4')", "format-version=4", "2 or 3"},
			{"CREATE TABLE lake.b.u (a INT) WITH ('write.target-file-size-bytes' = '-1')", "write.target-file-size-bytes=-1", "positive"},
			{"CREATE TABLE lake.b.u (a INT) WITH ('commit.retry.num-retries' = 'many')", "commit.retry.num-retries=many", "whole number"},
			{"CREATE TABLE lake.b.u (a INT) WITH ('write.delete.mode' = 'fast')", "write.delete.mode=fast", "merge-on-read"},
			{"CREATE TABLE lake.b.u (a INT) WITH ('signet.x' = '1')", "'signet.x' is reserved"},
			{"CREATE TABLE lake.b.u (a INT) WITH ('location' = '/etc')", "/etc", "may create its table at"},
			{"CREATE TABLE lake.b.u (a INT DEFAULT 5)", "column a", "format version 3"},
			{"CREATE TABLE lake.b.u (a INT DEFAULT 'x') WITH ('format-version' = '3')", "column a", "'x' is not a value of type int"},
			{"CREATE TABLE lake.b.u (a INT NOT NULL DEFAULT NULL) WITH ('format-version' = '3')", "cannot be NULL"},
			{"CREATE TABLE lake.b.t (a INT)", "lake.b.t exists already"},
			{"CREATE TABLE lake.nope.t (a INT)", "lake.nope"},
			{"CREATE TABLE lake.b." + long + " (a INT)", "300 bytes"},
			{"CREATE TABLE lake.b.\"" + strings.Repeat("😎", 70) + "\" (a INT)", "280 bytes"},
		},
		"CREATE TABLE AS": {
			{"CREATE TABLE lake.b.u AS SELECT NULL AS a", "column a", "CAST(a AS"},
			{"CREATE TABLE lake.b.u AS SELECT 1 AS a, 2 AS a", "two columns a"},
			{"CREATE TABLE lake.b.u AS SELECT {'a': INTERVAL 1 DAY} AS i", "column i", "INTERVAL", "at a"},
			{"CREATE TABLE lake.b.u AS SELEC 1", "SELEC"},
			{"CREATE TABLE lake.b.u AS SELECT error('boom') AS b", "boom"},
			{"CREATE TABLE lake.b.u AS SELECT * FROM lake.b.nope", "lake.b.nope does not exist"},
			{"CREATE TABLE lake.b.u WITH ('format-version' = '0') AS SELECT 1 AS t", "format-version=0"},
		},
		"INSERT": {
			{"INSERT INTO lake.b.t VALUES (1, 2), (3)", "same length"},
			{"INSERT INTO lake.b.t (id) VALUES (1, 2)", "1 column", "gives 2"},
			{"INSERT INTO lake.b.t (nope) VALUES (1)", "nope", "id, n, s, d, ts, st, l"},
			{"INSERT INTO lake.b.t (id, ID) VALUES (1, 1)", "id twice"},
			{"INSERT INTO lake.b.t (n) VALUES (1)", "column id", "required"},
			{"INSERT INTO lake.b.t (id) VALUES (NULL)", "column id", "NULL"},
			{"INSERT INTO lake.b.t (id, n) VALUES (1, 'abc')", "\"n\"", "abc", "INTEGER"},
			{"INSERT INTO lake.b.t (id, n) VALUES (1, 99999999999)", "\"n\"", "99999999999"},
			{"INSERT INTO lake.b.t (id, d) VALUES (1, 1.255)", "column d", "DECIMAL(4,3)"},
			{"INSERT INTO lake.b.t (id, ts) VALUES (1, '2026-02-30')", "\"ts\"", "2026-02-30"},
			{"INSERT INTO lake.b.t (id, st) VALUES (1, {'a': 1, 'c': 2})", "column st", "no field c"},
			{"INSERT INTO lake.b.t (id, l) VALUES (1, ['x'])", "column l", "VARCHAR[]"},
			{"INSERT INTO lake.b.t (st.a) VALUES (1)", "whole columns"},
			{"INSERT INTO lake.b.t (id, n) VALUES (1, DEFAULT)", "DEFAULT", "leave the column out"},
			{"INSERT INTO lake.b.t BY NAME SELECT 1 AS nope", "nope"},
			{"INSERT INTO lake.b.nope VALUES (1)", "lake.b.nope does not exist"},
			{"INSERT INTO lake.b.\"o'; DROP TABLE lake.b.t; --\" VALUES (1)", "does not exist"},
			{"INSERT INTO lake.b.t.branch_nope VALUES (1)", "nope", "CREATE BRANCH"},
			{"INSERT INTO a.b.c.d.e VALUES (1)", "at most 4 parts"},
			{"INSERT INTO lake.b.t (id) SELECT id + 9223372036854775807 FROM lake.b.t", "Overflow"},
			{"INSERT INTO lake.b.t SELECT * FROM 'nope/*.parquet'", "nope/*.parquet"},
			{"VALIDATE INSERT INTO lake.b.t (id, n) SELECT 1, 9999999990 + i FROM range(9) r(i)", "\"n\"", "9999999990"},
			{"EXPLAIN INSERT INTO lake.b.nope VALUES (1)", "lake.b.nope does not exist"},
		},
		"INSERT OVERWRITE": {
			{"INSERT OVERWRITE lake.b.t PARTITION (nope = 1) SELECT 1", "nope"},
			{"INSERT OVERWRITE lake.b.t PARTITION (ts = '2026-01-01') SELECT 1", "not partitioned by the values of column ts", "REPLACE WHERE"},
			{"INSERT OVERWRITE lake.b.t (id, n) SELECT 1", "2 columns", "gives 1"},
			{"INSERT OVERWRITE lake.b.nope SELECT 1", "lake.b.nope"},
			{"INSERT INTO lake.b.t REPLACE WHERE nope = 1 SELECT 1", "nope"},
			{"INSERT INTO lake.b.t REPLACE WHERE n = 'x' SELECT * FROM lake.b.t", "column n", "'x' is no INTEGER"},
			{"INSERT INTO lake.b.t REPLACE WHERE upper(s) = 'x' SELECT * FROM lake.b.t", "functions"},
		},
		"TRUNCATE and DROP": {
			{"TRUNCATE lake.b.nope", "lake.b.nope"},
			{"TRUNCATE lake.b.t WHERE id = 1", "WHERE"},
			{"DROP TABLE lake.b.T", "lake.b.T does not exist", "there is t"},
			{"DROP TABLE lake.b.t PURGE", "PURGE"},
			{"DROP SCHEMA lake.b", "DROP SCHEMA"},
		},
		"DELETE, UPDATE and MERGE": {
			{"DELETE lake.b.t", "FROM"},
			{"DELETE FROM lake.b.nope", "lake.b.nope"},
			{"DELETE FROM lake.b.t WHERE nope = 1", "nope"},
			{"DELETE FROM lake.b.t WHERE s", "'a'"},
			{"UPDATE lake.b.t SET n = 1, n = 2", "n twice"},
			{"UPDATE lake.b.t SET st.a = 1", "whole columns"},
			{"UPDATE lake.b.t SET n = 'abc'", "abc"},
			{"UPDATE lake.b.t SET d = 12345.678", "column d", "DECIMAL(8,3)"},
			{"UPDATE lake.b.t SET id = NULL", "column id", "NULL"},
			{"MERGE INTO lake.b.t USING lake.b.t s ON true", "WHEN"},
			{"MERGE INTO lake.b.t USING lake.b.t s ON t.id = s.id WHEN MATCHED THEN INSERT *", "WHEN NOT MATCHED"},
			{"MERGE INTO lake.b.t USING lake.b.t s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, nope) VALUES (1, 2)", "nope"},
			{"MERGE INTO lake.b.t USING lake.b.t s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) VALUES (1)", "2 columns", "1 value"},
		},
		"ALTER TABLE": {
			{"ALTER TABLE lake.b.nope ADD COLUMN x INT", "lake.b.nope"},
			{"ALTER TABLE lake.b.t FROB", "FROB"},
			{"ALTER TABLE lake.b.t ADD COLUMN id INT", "id exists already"},
			{"ALTER TABLE lake.b.t ADD COLUMN ID INT", "differs in case only"},
			{"ALTER TABLE lake.b.t ADD COLUMN x VARIANT", "VARIANT"},
			{"ALTER TABLE lake.b.v3 ADD COLUMN x TIMESTAMPTZ_NS", "column x", "TIMESTAMPTZ_NS"},
			{"ALTER TABLE lake.b.t ADD COLUMN x INT NOT NULL", "column x", "NOT NULL"},
			{"ALTER TABLE lake.b.t ADD COLUMN x INT DEFAULT 5", "column x", "format version 3", "SET TBLPROPERTIES"},
			{"ALTER TABLE lake.b.v3 ADD COLUMN x INT DEFAULT 99999999999", "column x", "99999999999"},
			{"ALTER TABLE lake.b.v3 ADD COLUMN x BLOB DEFAULT 'a'", "column x", "X'00ff'"},
			{"ALTER TABLE lake.b.t ADD COLUMN id.x INT", "only a struct"},
			{"ALTER TABLE lake.b.t ADD COLUMN y INT, DROP COLUMN nope", "nope"},
			{"ALTER TABLE lake.b.t DROP COLUMN ts", "column ts", "ts_day"},
			{"ALTER TABLE lake.b.t RENAME COLUMN s TO id", "id already"},
			{"ALTER TABLE lake.b.t ALTER COLUMN s TYPE INT", "string cannot become int"},
			{"ALTER TABLE lake.b.t ALTER COLUMN d TYPE DECIMAL(4, 2)", "decimal(4, 2)"},
			{"ALTER TABLE lake.b.t ADD PARTITION FIELD day(ts)", "ts_day"},
			{"ALTER TABLE lake.b.t DROP PARTITION FIELD nope", "nope"},
			{"ALTER TABLE lake.b.t WRITE ORDERED BY nope", "nope"},
			{"ALTER TABLE lake.b.t SET TBLPROPERTIES ('signet.landed.x' = '1')", "reserved"},
			{"ALTER TABLE lake.b.t SET TBLPROPERTIES ('format-version' = '1')", "no way back"},
			{"ALTER TABLE lake.b.t SET TBLPROPERTIES ('history.expire.min-snapshots-to-keep' = '-1')", "positive"},
			{"ALTER TABLE lake.b.t UNSET TBLPROPERTIES ('nope')", "nope"},
			{"ALTER TABLE lake.b.t CREATE BRANCH main", "main exists"},
			{"ALTER TABLE lake.b.t CREATE BRANCH x AS OF VERSION 12", "snapshot 12"},
			{"ALTER TABLE lake.b.t CREATE TAG x RETAIN -1 DAYS", "'-'"},
			{"ALTER TABLE lake.b.t DROP BRANCH main", "main"},
			{"ALTER TABLE lake.b.t DROP TAG nope", "nope"},
		},
		"CALL": {
			{"CALL lake.system.nope()", "system.nope", "expire_snapshots"},
			{"CALL frob.system.expire_snapshots('b.t')", "frob"},
			{"CALL system.rollback_to_snapshot('b.t')", "snapshot_id is missing"},
			{"CALL system.rollback_to_snapshot('b.t', 'x')", "whole number"},
			{"CALL system.rollback_to_snapshot('b.t', 12)", "snapshot 12"},
			{"CALL system.rollback_to_snapshot(table => 'b.t', frob => 1)", "no argument frob"},
			{"CALL system.rollback_to_snapshot(table => 'b.t', table => 'b.t')", "twice"},
			{"CALL system.rollback_to_timestamp('b.t', 'yesterday')", "yesterday", "2026-01-31"},
			{"CALL system.set_current_snapshot('b.t', ref => 'nope')", "nope"},
			{"CALL system.cherrypick_snapshot('b.t', 5)", "snapshot 5"},
			{"CALL system.cherrypick_snapshot('b.t')", "snapshot_id is missing"},
			{"CALL system.cherrypick_snapshot('b.t', '5')", "whole number"},
			{"CALL system.cherrypick_snapshot('b.nope', 5)", "b.nope", "does not exist"},
			{"CALL system.publish_changes('b.t')", "wap_id is missing"},
			{"CALL system.publish_changes('b.t', '')", `wap.id ""`},
			{"CALL system.publish_changes('b.t', 'nope')", `wap.id "nope"`},
			{"CALL system.rewrite_data_files('b.t', strategy => 'magic')", "magic", "binpack"},
			{"CALL system.rewrite_data_files('b.t', options => map('nope', '1'))", "nope"},
			{"CALL system.rewrite_data_files('b.t', options => map('target-file-size-bytes', '-1'))", "-1"},
			{"CALL system.rewrite_data_files('b.t', where => 'nope = 1')", "nope"},
			{"CALL system.rewrite_data_files('b.t', strategy => 'sort', sort_order => 'nope')", "nope"},
			{"CALL system.expire_snapshots('b.t', retain_last => -3)", "retain_last"},
			{"CALL system.expire_snapshots('b.t', older_than => 'soon')", "soon"},
			{"CALL system.remove_orphan_files('b.t', older_than => TIMESTAMP '2099-01-01')", "older_than", "24 hours"},
			{"CALL system.remove_orphan_files('b.t', location => '/etc')", "/etc"},
			{"CALL system.remove_orphan_files(table => 5)", "5"},
			{"CALL system.expire_snapshots('b.nope')", "lake.b.nope"},
		},
		"reads": {
			{"SELECT * FROM lake.b.t FOR VERSION AS OF 5", "snapshot 5"},
			{"SELECT * FROM lake.b.t FOR VERSION AS OF 'nope'", "nope"},
			{"SELECT * FROM lake.b.t FOR TIMESTAMP AS OF 'nope'", "'nope' is no time"},
			{"SELECT * FROM lake.b.t FOR TIMESTAMP AS OF '1999-01-01'", "1999-01-01"},
			{"SELECT * FROM lake.b.t.branch_nope", "nope"},
			{"SHOW TBLPROPERTIES lake.b.t ('nope')", "nope"},
			{"SHOW TABLES FROM lake.nope", "lake.nope"},
			{"DESCRIBE lake.b.nope", "lake.b.nope"},
			{"CACHE TABLE lake.b.c AS SELECT 1", "one part"},
			{"UNCACHE TABLE nope", "nope"},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c.Use(t)
			for _, s := range statements {
				said := failing(t, c, s[0])
				for _, want := range s[1:] {
					require.Contains(t, said, want, s[0])
				}
				for _, word := range internals {
					require.NotContains(t, said, word, s[0])
				}
				require.Less(t, len(said), 2000, "%s: nobody reads more", s[0])
			}
			require.Equal(t, before, state())
		})
	}
	var after []string
	harness.Eventually(t, "no file is left", func() bool {
		after = filesBelow(t, filepath.Join(c.Dir, "warehouse"))
		return len(after) == len(files)
	})
	require.Equal(t, files, after)
	require.False(t, c.Executors[0].Ended())
	require.Equal(t, "2", c.Value("SELECT count(*) FROM lake.b.t"))
}
