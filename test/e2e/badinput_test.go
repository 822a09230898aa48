package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// invalidUTF8 writes a Parquet file whose text column holds bytes that are no UTF-8.
func invalidUTF8(t *testing.T, path string) {
	t.Helper()
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Append("ok")
	b.Append("bad\xff\xfe")
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{b.NewArray()}, 2)
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, nil, pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, buf.Bytes(), 0o600))
}

// Each bad input has its error, its exit code, and leaves the table as it was.
func TestBadInput_IsRefusedAndChangesNothing(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.b; CREATE TABLE lake.b.t (id INTEGER NOT NULL, s VARCHAR, ts TIMESTAMP, d DECIMAL(5, 2)) PARTITIONED BY (year(ts))")
	c.SQL("INSERT INTO lake.b.t VALUES (1, 'a', TIMESTAMP '2026-01-01', 1.25)")

	dir := t.TempDir()
	whole, err := os.ReadFile(flights())
	require.NoError(t, err)
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	half := write("half.parquet", whole[:len(whole)/2])
	empty := write("empty.parquet", nil)
	html := write("page.parquet", []byte("<html>404</html>"))
	latin := write("latin.csv", []byte("s\nok\nbad\xff\xfe\n"))
	badText := filepath.Join(dir, "text.parquet")
	invalidUTF8(t, badText)
	// Of many files one is broken: nothing may be committed.
	parts := filepath.Join(dir, "parts")
	require.NoError(t, os.Mkdir(parts, 0o700))
	for i := range 5 {
		b := whole
		if i == 3 {
			b = append(bytes.Clone(whole[:len(whole)-9]), whole[len(whole)-8:]...)
		}
		write(fmt.Sprintf("parts/part-%d.parquet", i), b)
	}

	before := c.Table("b", "t")
	for name, tc := range map[string]struct {
		statement string
		texts     []string
	}{
		"missing file":            {"INSERT INTO lake.b.t SELECT * FROM 'nothing-here.parquet'", []string{"nothing-here.parquet"}},
		"truncated Parquet":       {"INSERT INTO lake.b.t (id) SELECT delay FROM '" + half + "'", []string{"half.parquet"}},
		"empty file":              {"INSERT INTO lake.b.t (id) SELECT delay FROM '" + empty + "'", []string{"empty.parquet"}},
		"no Parquet at all":       {"INSERT INTO lake.b.t (id) SELECT delay FROM '" + html + "'", []string{"page.parquet"}},
		"one broken file of five": {"INSERT INTO lake.b.t (id) SELECT delay FROM '" + parts + "/*.parquet'", []string{"part-3.parquet"}},
		"unknown table":           {"INSERT INTO lake.b.nope SELECT 1", []string{"lake.b.nope", "does not exist"}},
		"unknown schema":          {"INSERT INTO lake.nope.t SELECT 1", []string{"lake.nope"}},
		"unknown catalog":         {"INSERT INTO nope.b.t SELECT 1", []string{"nope"}},
		"unknown column in list":  {"INSERT INTO lake.b.t (id, nope) SELECT 1, 2", []string{"nope"}},
		"unknown column in query": {"INSERT INTO lake.b.t (id) SELECT nope FROM lake.b.t", []string{"nope"}},
		"duplicate column":        {"INSERT INTO lake.b.t (id, s, id) SELECT 1, 'x', 2", []string{"id"}},
		"too many columns":        {"INSERT INTO lake.b.t SELECT 1, 'a', TIMESTAMP '2026-01-01', 1.5, 9", []string{"5", "4"}},
		"required column missing": {"INSERT INTO lake.b.t (s) SELECT 'x'", []string{"id"}},
		"NULL into required":      {"INSERT INTO lake.b.t (id) SELECT CASE WHEN i = 7 THEN NULL ELSE i END FROM range(10) r(i)", []string{"id", "NULL"}},
		"integer overflow":        {"INSERT INTO lake.b.t (id) SELECT 3000000000 + i FROM range(3) r(i)", []string{"id", "3000000000"}},
		"decimal overflow":        {"INSERT INTO lake.b.t (id, d) SELECT 1, 12345.0 + i FROM range(2) r(i)", []string{`"d"`}},
		"text into integer":       {"INSERT INTO lake.b.t (id) SELECT s FROM lake.b.t", []string{"id"}},
		"infinite time":           {"INSERT INTO lake.b.t (id, ts) SELECT 2, 'infinity'::TIMESTAMP", []string{"ts", "infinity"}},
		"invalid UTF-8 in CSV":    {"INSERT INTO lake.b.t (id, s) SELECT 2, s FROM '" + latin + "'", []string{"latin.csv"}},
		"invalid UTF-8 in a file": {"INSERT INTO lake.b.t (id, s) SELECT 2, s FROM '" + badText + "'", []string{"text.parquet"}},
		"not a statement":         {"INSRT INTO lake.b.t SELECT 1", []string{"INSRT"}},
		"nothing to insert":       {"INSERT INTO lake.b.t", nil},
		"two heads":               {"INSERT INTO lake.b.t INSERT INTO lake.b.t SELECT 1", nil},
		"existing table":          {"CREATE TABLE lake.b.t (i BIGINT)", []string{"exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Use(t)
			c.Fail(1, tc.statement, tc.texts...)
			after := c.Table("b", "t")
			require.Equal(t, before.Metadata.CurrentSnapshot().SnapshotID, after.Metadata.CurrentSnapshot().SnapshotID)
		})
	}
	c.NoOrphans("b", "t")
	require.False(t, c.Executors[0].Ended(), "the executor lives")
	require.Equal(t, "1", c.SQL("INSERT INTO lake.b.t SELECT 2, 'b', TIMESTAMP '9999-12-31 23:59:59', 2.5")[0][0], "and takes the next job")
}

// S70: no SQL reads what is not its input.
func TestHostileSQL_ReadsNothingElse(t *testing.T) {
	const canary = "cAnArY-7f3a91d2"
	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte(canary+"\n"), 0o600))
	c := harness.New(t, harness.Options{Executors: 1, Config: "plugins:\n  secrets:\n    minimal: {token: {file: " + secret + "}}\n"})
	c.SQL("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t (s VARCHAR)")
	config := filepath.Join(c.Dir, "signet.yaml")
	link := filepath.Join(t.TempDir(), "innocent.csv")
	require.NoError(t, os.Symlink(secret, link))
	for _, q := range []string{
		"SELECT content FROM read_text('" + config + "')",
		"SELECT content FROM read_text('" + secret + "')",
		"SELECT content FROM read_blob('" + secret + "')",
		"SELECT * FROM read_csv('" + secret + "', header=false)",
		"SELECT * FROM '" + link + "'",
		"SELECT * FROM read_csv('" + filepath.Dir(link) + "/*.csv', header=false)",
		"SELECT * FROM read_text('" + c.Dir + "/data/../signet.yaml')",
		"SELECT * FROM '" + c.Dir + "/catalog.db'",
		"SELECT * FROM read_blob('" + c.Dir + "/data/journal.db')",
		"SELECT * FROM query('SELECT content FROM read_text(''" + secret + "'')')",
		"SELECT * FROM query_table('" + secret + "')",
		"SELECT * FROM glob('" + c.Dir + "/*')",
		"SELECT getenv('PATH')",
		"SELECT * FROM duckdb_settings()",
		"SELECT * FROM read_text('/proc/self/environ')",
		"COPY (SELECT 1) TO '" + filepath.Join(t.TempDir(), "out.csv") + "'",
		"ATTACH '" + c.Dir + "/catalog.db' AS x",
		"INSTALL httpfs",
		"LOAD httpfs",
		"SET enable_external_access = true",
		"PRAGMA database_list",
		"INSERT INTO lake.s.t SELECT content FROM read_text('" + secret + "')",
	} {
		r := c.Run("sql", "-q", q)
		require.NotContains(t, r.Out+r.Err, canary, q)
		if q == "SELECT * FROM duckdb_settings()" {
			continue // harmless by itself: the instance knows no secret
		}
		require.Equal(t, 1, r.Code, "%s\n%s%s", q, r.Out, r.Err)
	}
	require.Zero(t, c.Table("s", "t").Snapshots)
}
