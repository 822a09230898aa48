package duckdb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
)

// S70: a locked instance reads its inputs, writes below its directories, and does nothing else.
func TestLocked_RoutesOut(t *testing.T) {
	dir, allowed, scratch, out := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	mustWriteFile(t, dir+"/secret.txt", "canary")
	mustWriteFile(t, dir+"/secret.csv", "a,b\n1,canary\n")
	mustWriteFile(t, dir+"/secret.json", `{"a":"canary"}`)
	write(t, dir, "COPY (SELECT 'canary' AS c) TO '$DIR/secret.parquet'", "ATTACH '$DIR/secret.db' AS s", "CREATE TABLE s.t AS SELECT 'canary' c", "DETACH s")
	write(t, allowed, "COPY (SELECT 42 AS i) TO '$DIR/in.parquet'")
	require.NoError(t, os.Symlink(dir+"/secret.txt", allowed+"/link.txt"))
	require.NoError(t, os.Symlink(dir, out+"/sub"))
	t.Setenv("CANARY", "canary")

	inst, err := open(context.Background(), Options{})
	require.NoError(t, err)
	defer inst.Close()
	require.NoError(t, inst.lock(context.Background(), Access{ReadFiles: []string{allowed + "/in.parquet"}, WriteDirs: []string{out}, TempDir: scratch, Threads: 1}))

	for _, q := range []string{
		"SELECT content FROM read_text('$DIR/secret.txt')",
		"SELECT content FROM read_blob('$DIR/secret.txt')",
		"SELECT * FROM read_csv('$DIR/secret.csv')",
		"SELECT * FROM sniff_csv('$DIR/secret.csv')",
		"SELECT * FROM '$DIR/secret.csv'",
		"SELECT * FROM read_json('$DIR/secret.json')",
		"SELECT * FROM read_json_objects('$DIR/secret.json')",
		"SELECT * FROM read_ndjson_objects('$DIR/secret.json')",
		"SELECT * FROM read_parquet('$DIR/secret.parquet')",
		"SELECT * FROM read_parquet(['$ALLOWED/in.parquet', '$DIR/secret.parquet'])",
		"SELECT * FROM read_parquet('$DIR/*.parquet')",
		"SELECT * FROM parquet_metadata('$DIR/secret.parquet')",
		"SELECT * FROM parquet_kv_metadata('$DIR/secret.parquet')",
		"SELECT * FROM parquet_schema('$DIR/secret.parquet')",
		"SELECT * FROM glob('$DIR/*')",
		"SELECT * FROM glob('/etc/*')",
		"SELECT * FROM read_duckdb('$DIR/secret.db', table_name='t')",
		"SELECT * FROM query('SELECT content FROM read_text(''$DIR/secret.txt'')')",
		"SELECT * FROM query_table('$DIR/secret.csv')",
		"SELECT * FROM read_text('$ALLOWED/../" + filepath.Base(dir) + "/secret.txt')",
		"SELECT * FROM read_text('$OUT/../" + filepath.Base(dir) + "/secret.txt')",
		"SELECT * FROM read_text('$ALLOWED/link.txt')",
		"SELECT * FROM read_text('/proc/self/environ')",
		"SELECT * FROM read_text('/proc/self/cmdline')",
		"SELECT * FROM read_text('file://$DIR/secret.txt')",
		"SELECT getenv('CANARY')",
		"FROM json_execute_serialized_sql(json_serialize_sql('SELECT content FROM read_text(''$DIR/secret.txt'')'))",
		"COPY (SELECT 1) TO '$DIR/out.csv'",
		"COPY (SELECT 1) TO '$OUT/../evil.csv'",
		"COPY (SELECT 1) TO '$ALLOWED/other.parquet'",
		"COPY (SELECT 1) TO '/dev/stdout' (FORMAT csv)",
		"ATTACH '$DIR/secret.db'",
		"ATTACH '$DIR/new.db'",
		"ATTACH '$DIR/secret.db' AS s (READ_ONLY)",
		"INSTALL httpfs", "LOAD httpfs", "INSTALL httpfs FROM '$DIR'", "LOAD '$DIR/x.duckdb_extension'",
		"SET enable_external_access=true", "RESET enable_external_access",
		"SET allowed_directories=['/']", "SET allowed_paths=['$DIR/secret.txt']", "RESET allowed_paths",
		"SET lock_configuration=false", "SET temp_directory='$DIR'", "SET threads=8", "SET memory_limit='100GB'", "SET TimeZone='Asia/Tokyo'",
		"SET file_search_path='$DIR'", "SET home_directory='$DIR'", "SET secret_directory='$DIR'", "SET extension_directory='$DIR'",
		"SET log_query_path='$DIR/log'", "SET profile_output='$DIR/prof'", "SET custom_extension_repository='http://x'",
		"PRAGMA enable_profiling='json'", "PRAGMA profile_output='$DIR/prof'", "PRAGMA memory_limit='100GB'", "PRAGMA database_list('x')",
		"CREATE PERSISTENT SECRET s (TYPE s3)",
		"EXPORT DATABASE '$DIR/exp'", "IMPORT DATABASE '$DIR'",
		"CREATE TABLE t AS SELECT * FROM read_text('$DIR/secret.txt')",
		"COPY (SELECT 1) TO 'relative.csv'", "SELECT * FROM read_text('go.mod')", "SELECT * FROM read_text('doc.go')",
	} {
		q = strings.NewReplacer("$DIR", dir, "$ALLOWED", allowed, "$OUT", out).Replace(q)
		err := drain(inst, q)
		require.Error(t, err, q)
		require.NotContains(t, err.Error(), "canary", q)
	}
	require.NoFileExists(t, dir+"/out.csv")
	require.NoFileExists(t, "relative.csv")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 5, "nothing was added beside the secrets")

	var n int
	require.NoError(t, inst.Conn().QueryRowContext(context.Background(), "SELECT i FROM read_parquet('"+allowed+"/in.parquet')").Scan(&n))
	require.Equal(t, 42, n, "the input is still readable")
	_, err = inst.Conn().ExecContext(context.Background(), "COPY (SELECT 1 AS i, 'x' AS p) TO '"+out+"/parts' (FORMAT parquet, PARTITION_BY (p))")
	require.NoError(t, err, "the output directory is still writable")
}

func TestLocked_NoAccessAtAll(t *testing.T) {
	p := NewPool(Options{Ready: -1})
	defer p.Close()
	inst, giveBack, err := p.Bare(context.Background())
	require.NoError(t, err)
	for _, q := range []string{"SELECT * FROM read_text('/etc/passwd')", "COPY (SELECT 1) TO '" + t.TempDir() + "/x.csv'", "SET temp_directory='/tmp'"} {
		_, err := inst.Conn().ExecContext(context.Background(), q)
		require.Error(t, err, q)
	}
	giveBack(true)
	again, giveBack, err := p.Bare(context.Background())
	require.NoError(t, err)
	require.Same(t, inst, again)
	giveBack(false)
	other, giveBack, err := p.Bare(context.Background())
	require.NoError(t, err)
	require.NotSame(t, inst, other)
	giveBack(true)
}

func TestWithSelect_OnlyOneSelect(t *testing.T) {
	inst := locked(t)
	for _, q := range []string{
		"SELECT 1; SELECT 2", "INSERT INTO t VALUES (1)", "CREATE TABLE t (i INT)", "CREATE TEMP MACRO f() AS 1", "SET threads=1", "COPY (SELECT 1) TO 'x'",
		"ATTACH ':memory:' AS m", "BEGIN", "CALL pragma_version()", "EXPLAIN SELECT 1", "PREPARE p AS SELECT 1", "", ";", "-- nothing", "EXPORT DATABASE 'x'",
		"CHECKPOINT", "VACUUM", "DROP TABLE t", "USE memory",
	} {
		_, err := inst.Describe(context.Background(), q)
		require.Error(t, err, q)
	}
	_, err := inst.Describe(context.Background(), "SELECT ?")
	var de *duckdb.Error
	require.ErrorAs(t, err, &de)
	for _, q := range []string{"SELECT 1", "VALUES (1)", "WITH c AS (SELECT 1) FROM c", "SELECT 1;", "FROM range(3)"} {
		_, err := inst.Describe(context.Background(), q)
		require.NoError(t, err, q)
	}
}

// drain runs a statement to its last row.
func drain(inst *Instance, q string) error {
	rows, err := inst.Conn().QueryContext(context.Background(), q)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
