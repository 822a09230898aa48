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

// Secrets that the operator gives the scheduler reach neither the executors that it starts itself nor its plugins, nor any file (S54, T7).
// Only the join token is the executors', and no one else's.
func TestSecrets_ReachNoChild(t *testing.T) {
	t.Parallel()
	const inEnv, inFile, joinToken = "cAnArY-env-5b0c11fa", "cAnArY-file-93d27e40", "cAnArY-join-20cb8d75"
	dir := t.TempDir()
	for name, secret := range map[string]string{"secret": inFile, "join": joinToken} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600))
	}
	c := harness.New(t, harness.Options{
		SchedulerEnv: []string{"CANARY_ENV=" + inEnv, "SIGNET_EXECUTORS_LOCAL=1", "SIGNET_EXECUTORS_MEMORY_LIMIT=1GiB"},
		Config:       fmt.Sprintf("plugins:\n  secrets:\n    iceberg: {one: {env: CANARY_ENV}, two: {file: %[1]s/secret}}\nauth:\n  join_token: {file: %[1]s/join}\n", dir),
	})
	harness.Eventually(t, "an executor has joined", func() bool { return strings.Contains(c.Run("info").Out, "\nexecutor ") })
	c.SQL("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t AS SELECT i FROM range(10) r(i); INSERT INTO lake.s.t SELECT i FROM range(5) r(i)")
	require.Equal(t, "15", c.Value("SELECT count(*) FROM lake.s.t"))
	c.Fail(1, "INSERT INTO lake.s.t SELECT 'x'")

	children := harness.Below(c.Scheduler.PID())
	kinds := map[string]int{}
	for _, p := range children {
		isExecutor := strings.Contains(p.Cmdline, "signet-executor")
		if isExecutor {
			kinds[executor]++
		} else {
			kinds[plugin]++
		}
		for _, secret := range []string{inEnv, inFile, joinToken} {
			for _, f := range []string{"environ", "cmdline"} {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.PID, f))
				require.NoError(t, err)
				require.NotContains(t, string(b), secret, "%s of %+v", f, p)
			}
			if secret != joinToken || !isExecutor {
				require.False(t, harness.MemoryHolds(t, p.PID, []byte(secret)), "%s in the memory of %+v", secret, p)
			}
		}
	}
	require.Equal(t, map[string]int{executor: 1, plugin: 1}, kinds, "%+v", children)
	var outputs []string
	for _, j := range c.Jobs() {
		outputs = append(outputs, c.Run("job", j.ID).Out, c.Run("job", j.ID, "-o", "json").Out)
	}
	outputs = append(outputs, c.Run("info", "-o", "json").Out)
	c.Stop()
	require.NoError(t, filepath.WalkDir(c.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, readErr := os.ReadFile(path)
			require.NoError(t, readErr)
			outputs = append(outputs, path+string(b))
		}
		return err
	}))
	for _, o := range outputs {
		for _, secret := range []string{inEnv, inFile, joinToken} {
			require.NotContains(t, o, secret)
		}
	}
}

// S70: more ways in which SQL might reach what is not its input, or leave something behind.
func TestHostileSQL_OtherWays(t *testing.T) {
	t.Parallel()
	const canary = "cAnArY-9d1c44b6"
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.csv")
	require.NoError(t, os.WriteFile(secret, []byte("a\n"+canary+"\n"), 0o600))
	c := harness.New(t, harness.Options{Executors: 1, Config: "plugins:\n  secrets:\n    minimal: {token: {file: " + secret + "}}\n"})
	c.SQL("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t (s VARCHAR)")
	open := filepath.Join(dir, "open.csv")
	require.NoError(t, os.WriteFile(open, []byte("a\nfree\n"), 0o600))
	require.Equal(t, "free", c.Value("SELECT a FROM '"+open+"'"), "other files may be read")
	link, dirLink := filepath.Join(t.TempDir(), "x.csv"), filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Symlink(secret, link))
	require.NoError(t, os.Symlink(c.Dir, dirLink))
	before := c.Table("s", "t").MetadataLocation
	for _, q := range []string{
		"SELECT * FROM read_csv('" + secret + "')",
		"SELECT * FROM read_csv(['" + open + "', '" + secret + "'])",
		"SELECT * FROM read_csv('" + link + "')",
		"SELECT * FROM read_csv('" + filepath.Join(dir, "..", filepath.Base(dir), "secret.csv") + "')",
		"SELECT * FROM read_text('" + dirLink + "/signet.yaml')",
		"SELECT * FROM read_text('" + c.Dir + "//signet.yaml')",
		"SELECT * FROM read_text('file://" + c.Dir + "/signet.yaml')",
		"SELECT * FROM read_blob('" + c.Dir + "/data/*')",
		"SELECT * FROM read_parquet('" + c.Dir + "/data/journal.db')",
		"SELECT * FROM '" + c.Dir + "/data/journal.db'",
		fmt.Sprintf("SELECT * FROM read_text('/proc/%d/environ')", c.Scheduler.PID()),
		fmt.Sprintf("SELECT * FROM read_blob('/proc/%d/cmdline')", c.Executors[0].PID()),
		"SELECT * FROM read_text('/proc/self/../self/environ')",
		"SELECT (SELECT content FROM read_text(p)) FROM (VALUES ('" + secret + "')) v(p)",
		"SELECT * FROM read_csv((SELECT '" + secret + "'))",
		"SELECT * FROM read_csv('" + dir + "/se' || 'cret.csv')",
		"WITH x AS (SELECT * FROM read_csv('" + secret + "')) SELECT * FROM x",
		"SELECT * FROM (SELECT 1) a, LATERAL (SELECT * FROM read_text('" + secret + "')) b",
		"SELECT 1 WHERE EXISTS (SELECT 1 FROM read_text('" + secret + "'))",
		"SELECT * FROM sniff_csv('" + secret + "')",
		"SELECT * FROM parquet_metadata('" + c.Dir + "/data/journal.db')",
		"SELECT * FROM read_json('" + c.Dir + "/data/plugins.json')",
		"SELECT * FROM sqlite_scan('" + c.Dir + "/catalog.db', 'iceberg_tables')",
		"SELECT * FROM iceberg_scan('" + c.Dir + "/warehouse/s/t')",
		"SELECT * FROM 'https://127.0.0.1:1/x.parquet'",
		"SELECT * FROM 's3://bucket/x.parquet'",
		"SELECT * FROM query('COPY (SELECT 1) TO ''" + dir + "/out.csv''')",
		"SELECT getenv('HOME')",
		"SELECT * FROM duckdb_secrets()",
		"SELECT current_setting('secret_directory')",
		"EXPORT DATABASE '" + dir + "/dump'",
		"IMPORT DATABASE '" + dir + "'",
		"CREATE SECRET x (TYPE s3)",
		"CREATE MACRO m() AS 1",
		"CREATE VIEW v AS SELECT 1",
		"CALL pragma_version()",
		"DETACH memory",
		"CHECKPOINT",
		"UPDATE lake.s.t SET s = (SELECT content FROM read_text('" + secret + "'))",
		"DELETE FROM lake.s.t WHERE s = (SELECT content FROM read_text('" + secret + "'))",
		"MERGE INTO lake.s.t USING read_text('" + secret + "') r ON true WHEN MATCHED THEN UPDATE SET s = r.content",
		"SELECT 1; SELECT content FROM read_text('" + secret + "')",
		"INSERT INTO lake.s.t SELECT content FROM read_text('" + c.Dir + "/signet.yaml')",
		"CREATE TABLE lake.s.u AS SELECT * FROM read_csv('" + secret + "')",
	} {
		r := c.Run("sql", "-q", q)
		require.NotContains(t, r.Out+r.Err, canary, q)
		require.Equal(t, 1, r.Code, "%s\n%s%s", q, r.Out, r.Err)
	}
	require.Equal(t, before, c.Table("s", "t").MetadataLocation)
	require.False(t, c.Table("s", "u").Exists)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing was written")
	require.False(t, c.Executors[0].Ended())
}
