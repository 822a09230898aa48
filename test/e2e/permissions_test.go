package e2e_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// Actions of permissions, as bits.
const (
	read = 1 << iota
	insert
	alter
	create
	drop
	maintain
	every = 1<<iota - 1
)

var actionWords = []string{"read", "insert", "alter", "create", "drop", "maintain"}

// principalOf is the principal that may do these things in the schema demo and no others.
func principalOf(actions int) string { return fmt.Sprintf("p%02d", actions) }

// permitted starts a cluster with one principal for each set of actions, and one that may do everything.
func permitted(t *testing.T, more string) (*harness.Cluster, func(who string) []string) {
	t.Helper()
	dir := t.TempDir()
	tokens, permissions := strings.Builder{}, strings.Builder{}
	add := func(who, allow string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, who), []byte("token-of-"+who), 0o600))
		fmt.Fprintf(&tokens, "    - {principal: %s, token: {file: %s}}\n", who, filepath.Join(dir, who))
		if allow != "" {
			fmt.Fprintf(&permissions, "      - {principals: [%s], %s}\n", who, allow)
		}
	}
	add("admin", "allow: [all]")
	add("stranger", "")
	for a := 0; a <= every; a++ {
		var words []string
		for i, w := range actionWords {
			if a&(1<<i) != 0 {
				words = append(words, w)
			}
		}
		if len(words) > 0 {
			add(principalOf(a), "allow: ["+strings.Join(words, ", ")+"], schemas: [demo]")
		}
	}
	c := harness.New(t, harness.Options{
		Executors: 1, ClientArgs: []string{"--token-file", filepath.Join(dir, "admin")}, CatalogConfig: "    permissions:\n" + permissions.String(),
		Config: "auth:\n  tokens:\n" + tokens.String() + more,
	})
	return c, func(who string) []string { return []string{"--token-file", filepath.Join(dir, who)} }
}

// runAs runs a statement as a principal. The last flag wins.
func runAs(c *harness.Cluster, t *testing.T, who []string, statement string, more ...string) harness.Result {
	t.Helper()
	args := append([]string{"sql", "--quiet", "--output", "csv", statement, "--scheduler", c.Address}, who...)
	return harness.RunCommand(t, "", nil, append(args, more...)...)
}

// kindsOfStatement are all kinds of statement, with what each needs in the schema demo. "" names no kind: it stands for the one before it.
var kindsOfStatement = []struct {
	kind, text string
	needs      int
}{
	{"Select", "SELECT * FROM lake.demo.t", read},
	{"", "SELECT 1 AS a WHERE EXISTS (SELECT 1 FROM lake.demo.t)", read},
	{"", "SELECT * FROM lake.demo.t FOR VERSION AS OF {snapshot}", read},
	{"", "SELECT * FROM lake.demo.t FOR TIMESTAMP AS OF TIMESTAMP '2100-01-01 00:00:00'", read},
	{"", "SELECT * FROM lake.demo.t.branch_b", read},
	{"Insert", "INSERT INTO lake.demo.t VALUES (5)", insert},
	{"", "INSERT INTO lake.demo.t SELECT id FROM lake.demo.t", read | insert},
	{"", "INSERT OVERWRITE lake.demo.o VALUES (6)", insert},
	{"", "INSERT INTO lake.demo.t.branch_b VALUES (5)", insert},
	{"Delete", "DELETE FROM lake.demo.t WHERE id = 99", read | insert},
	{"Update", "UPDATE lake.demo.t SET id = 100 WHERE id = 99", read | insert},
	{"Merge", "MERGE INTO lake.demo.t USING (SELECT 99::BIGINT AS n) s ON t.id = s.n WHEN MATCHED THEN DELETE", read | insert},
	{"CreateTable", "CREATE TABLE lake.demo.{new} (id BIGINT)", create},
	{"", "CREATE TABLE lake.demo.{new} AS SELECT 1::BIGINT AS id", create},
	{"", "CREATE TABLE lake.demo.{new} AS SELECT * FROM lake.demo.t", create | read},
	{"", "CREATE OR REPLACE TABLE lake.demo.o (id BIGINT)", create | drop},
	{"", "CREATE OR REPLACE TABLE lake.demo.o AS SELECT 1::BIGINT AS id", create | drop},
	{"CreateSchema", "CREATE SCHEMA IF NOT EXISTS lake.demo", create},
	{"DropTable", "DROP TABLE IF EXISTS lake.demo.gone", drop},
	{"Truncate", "TRUNCATE TABLE lake.demo.o", insert},
	{"AddFiles", "ALTER TABLE lake.demo.t ADD FILES FROM '{file}' WITH (copy = true)", insert},
	{"Validate", "VALIDATE INSERT INTO lake.demo.t VALUES (1)", insert},
	{"", "VALIDATE DELETE FROM lake.demo.t WHERE id = 99", read | insert},
	{"Explain", "EXPLAIN SELECT * FROM lake.demo.t", read},
	{"", "EXPLAIN INSERT INTO lake.demo.t VALUES (1)", insert},
	{"", "EXPLAIN ANALYZE SELECT * FROM lake.demo.t", read},
	{"Cache", "CACHE TABLE {new} AS SELECT * FROM lake.demo.t", read},
	{"Uncache", "UNCACHE TABLE IF EXISTS c", 0},
	{"AlterTable", "ALTER TABLE lake.demo.t SET TBLPROPERTIES ('x' = 'y')", alter},
	{"", "ALTER TABLE lake.demo.t CREATE TAG IF NOT EXISTS g", alter},
	{"Call", "", 0}, // below, for each procedure
	{"ShowCatalogs", "SHOW CATALOGS", 0},
	{"ShowSchemas", "SHOW SCHEMAS FROM lake", 0},
	{"ShowTables", "SHOW TABLES FROM lake.demo", read},
	{"ShowCreate", "SHOW CREATE TABLE lake.demo.t", read},
	{"Describe", "DESCRIBE lake.demo.t", read},
	{"ShowProperties", "SHOW TBLPROPERTIES lake.demo.t", read},
	{"ShowHistory", "SHOW SNAPSHOTS FROM lake.demo.t", read},
	{"DescribeHistory", "DESCRIBE HISTORY lake.demo.t", read},
	{"Vacuum", "VACUUM lake.demo.t DRY RUN", maintain},
}

// procedures are those of CALL, with their arguments and what each needs.
var procedures = map[string]struct {
	args  string
	needs int
}{
	"rollback_to_snapshot":  {", snapshot_id => {snapshot}", alter},
	"rollback_to_timestamp": {", timestamp => TIMESTAMP '2100-01-01 00:00:00'", alter},
	"set_current_snapshot":  {", snapshot_id => {snapshot}", alter},
	"cherrypick_snapshot":   {", snapshot_id => {snapshot}", alter},
	"publish_changes":       {", wap_id => 'none'", alter},
	"fast_forward":          {", branch => 'b', to => 'main'", alter},
	"ancestors_of":          {"", read},
	"add_files":             {", source => '{file}', copy => true", insert},
	"rewrite_data_files":    {"", maintain},
	"rewrite_manifests":     {"", maintain},
	"expire_snapshots":      {"", maintain},
	"remove_orphan_files":   {"", maintain},
}

// kindsInSources are the statements that the parser makes.
func kindsInSources(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root(), "scheduler/sql/*.go"))
	require.NoError(t, err)
	var out []string
	for _, f := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		require.NoError(t, err)
		for _, d := range tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != "statement" || fn.Recv == nil || fn.Type.Results != nil {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				out = append(out, star.X.(*ast.Ident).Name)
			}
		}
	}
	return out
}

// proceduresInSources are those that CALL knows.
func proceduresInSources(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root(), "scheduler/*.go"))
	require.NoError(t, err)
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\n\tregister\("([a-z_]+)", `).FindAllStringSubmatch(string(b), -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// Every kind of statement, and every procedure, is refused to whoever lacks one of the permissions that it needs, and to nobody else. A new kind without a
// row here fails.
//
// Numbers in docs/semantics.md: J21.
func TestPermissions_EveryStatement(t *testing.T) {
	c, as := permitted(t, "")
	known := map[string]bool{}
	for _, st := range kindsOfStatement {
		known[st.kind] = true
	}
	for _, kind := range kindsInSources(t) {
		require.True(t, known[kind], "statements of the kind %s have no row in this test: what do they need?", kind)
	}
	for _, name := range proceduresInSources(t) {
		require.Contains(t, procedures, name, "the procedure has no row in this test: what does it need?")
	}
	require.Len(t, procedures, len(proceduresInSources(t)))

	input := filepath.Join(t.TempDir(), "in.parquet")
	c.SQL("CREATE SCHEMA lake.demo; CREATE SCHEMA lake.other; CREATE TABLE lake.other.hidden (id BIGINT)")
	c.SQL("CREATE TABLE lake.demo.t (id BIGINT); CREATE TABLE lake.demo.o (id BIGINT); INSERT INTO lake.demo.t VALUES (1), (2); ALTER TABLE lake.demo.t CREATE BRANCH b")
	writeIDs(t, input, 1, []int64{7})
	snapshot := c.SQL("SHOW SNAPSHOTS FROM lake.demo.t")[0][1]

	n := 0
	try := func(t *testing.T, text string, needs int) {
		for _, who := range append([]int{needs}, lacking(needs)...) { // the first may
			n++
			fill := strings.NewReplacer("{new}", fmt.Sprintf("n%d", n), "{file}", input, "{snapshot}", snapshot)
			r := runAs(c, t, as(nameOf(who)), fill.Replace(text))
			if who == needs {
				require.NotContains(t, r.Err, "may not", "%s, with what it needs", text)
				require.NotContains(t, r.Err, "no catalog", text)
				continue
			}
			require.Equal(t, 1, r.Code, "%s, without %v:\n%s%s", text, words(needs&^who), r.Out, r.Err)
			require.Regexp(t, "may not|no catalog|schema lake.demo does not exist", r.Err, "%s, without %v", text, words(needs&^who))
			require.NotContains(t, r.Err, "hidden")
		}
	}
	for _, st := range kindsOfStatement {
		if st.needs != 0 {
			t.Run(st.text, func(t *testing.T) { try(t, st.text, st.needs) })
		}
	}
	for name, p := range procedures {
		t.Run(name, func(t *testing.T) { try(t, "CALL lake.system."+name+"(table => 'demo.t'"+p.args+")", p.needs) })
	}
}

// nameOf is a principal's name; the one without any permission is no p00: it is not in the list at all.
func nameOf(actions int) string {
	if actions == 0 {
		return "stranger"
	}
	return principalOf(actions)
}

// lacking are all sets that lack one of some actions, and have all others.
func lacking(needs int) []int {
	out := []int{0}
	for i := range actionWords {
		if needs&(1<<i) != 0 {
			out = append(out, every&^(1<<i))
		}
	}
	return out
}

func words(actions int) []string {
	var out []string
	for i, w := range actionWords {
		if actions&(1<<i) != 0 {
			out = append(out, w)
		}
	}
	return out
}

// What may not be read is not listed, and a refusal is the same whether there is such a table or not.
//
// Numbers in docs/semantics.md: J21.
func TestPermissions_NothingIsToldOfWhatMayNotBeRead(t *testing.T) {
	c, as := permitted(t, "http: {listen: '127.0.0.1:0'}\n")
	c.SQL("CREATE SCHEMA lake.demo; CREATE SCHEMA lake.other; CREATE TABLE lake.other.hidden (id BIGINT); CREATE TABLE lake.demo.t (id BIGINT); INSERT INTO lake.other.hidden VALUES (1)")
	reader, writer := as(principalOf(read)), as(principalOf(insert|create))
	list := func(who []string, text string) []string {
		r := runAs(c, t, who, text, "--catalog", "lake")
		require.Equal(t, 0, r.Code, r.Err)
		return strings.Fields(r.Out)[1:]
	}
	require.Equal(t, []string{"lake"}, list(reader, "SHOW CATALOGS"))
	require.Equal(t, []string{"demo"}, list(reader, "SHOW SCHEMAS FROM lake"))
	require.Equal(t, []string{"demo,t"}, list(reader, "SHOW TABLES"))
	require.Equal(t, []string{"t"}, list(reader, "SHOW TABLES FROM lake.demo"))
	require.Empty(t, list(writer, "SHOW SCHEMAS FROM lake"))
	require.Empty(t, list(writer, "SHOW TABLES"))
	require.Empty(t, list(as("stranger"), "SHOW CATALOGS"))
	require.ElementsMatch(t, []string{"demo", "other"}, list(as("admin"), "SHOW SCHEMAS FROM lake"))

	same := func(who []string, format string) {
		t.Helper()
		there, gone := runAs(c, t, who, fmt.Sprintf(format, "other.hidden")), runAs(c, t, who, fmt.Sprintf(format, "other.nosuch"))
		nowhere := runAs(c, t, who, fmt.Sprintf(format, "nowhere.hidden"))
		require.Equal(t, there.Code, gone.Code)
		plain := func(r harness.Result) string {
			text := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).ReplaceAllString(r.Out+r.Err, "JOB")
			return strings.NewReplacer("other.hidden", "NAME", "other.nosuch", "NAME", "nowhere.hidden", "NAME").Replace(text)
		}
		require.Equal(t, plain(there), plain(gone), format)
		require.Equal(t, plain(there), plain(nowhere), format)
	}
	for _, format := range []string{
		"SELECT * FROM lake.%s", "DESCRIBE lake.%s", "INSERT INTO lake.%s VALUES (1)", "DROP TABLE lake.%s", "DROP TABLE IF EXISTS lake.%s", "TRUNCATE TABLE IF EXISTS lake.%s",
		"ALTER TABLE IF EXISTS lake.%s SET TBLPROPERTIES ('a' = 'b')", "CREATE TABLE IF NOT EXISTS lake.%s (id BIGINT)", "CALL lake.system.expire_snapshots(table => '%s')",
		"EXPLAIN SELECT * FROM lake.%s", "SELECT * FROM lake.%s.branch_x", "SHOW TBLPROPERTIES lake.%s",
	} {
		require.Equal(t, 1, runAs(c, t, reader, fmt.Sprintf(format, "other.hidden")).Code, format)
		same(reader, format)
		same(as("stranger"), format)
	}
	for _, schema := range []string{"other", "nosuch"} {
		r := runAs(c, t, reader, "SHOW TABLES FROM lake."+schema)
		require.Equal(t, 1, r.Code, r.Out)
		require.Contains(t, r.Err, "schema lake."+schema+" does not exist")
	}
	r := runAs(c, t, writer, "INSERT INTO lake.demo.T2 VALUES (1)")
	require.Equal(t, 1, r.Code)
	require.NotContains(t, r.Err, "SHOW TABLES", "no names of others, and none of near ones")

	// The case of a schema's name does not matter, for a permission either; the name of another schema does.
	require.Equal(t, 0, runAs(c, t, reader, "SELECT * FROM lake.DEMO.T").Code)
	require.Equal(t, 1, runAs(c, t, reader, "SELECT * FROM lake.OTHER.hidden").Code)

	// Nor are the files of tables read past their names.
	data := filepath.Join(c.Dir, "warehouse/other/hidden/data")
	found := false
	require.NoError(t, filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".parquet") {
			found = true
			r := runAs(c, t, reader, "SELECT * FROM '"+path+"'")
			require.Equal(t, 1, r.Code, r.Out)
			require.Contains(t, r.Err, "name the table instead")
		}
		return err
	}))
	require.True(t, found, "no data file below %s", data)
	r = runAs(c, t, reader, "SELECT * FROM '"+filepath.Join(c.Dir, "warehouse/**/*.parquet")+"'")
	require.Equal(t, 1, r.Code, r.Out)

	info := harness.RunCommand(t, "", nil, append([]string{"info", "--scheduler", c.Address}, as("stranger")...)...)
	require.Equal(t, 0, info.Code, info.Err)
	require.NotContains(t, info.Out, "lake")
}

// What was permitted when a job was planned has to be so when it commits: a scheduler that starts with less says no to what waits for its commit.
//
// Numbers in docs/semantics.md: J22.
func TestPermissions_AskedAgainBeforeTheCommit(t *testing.T) {
	c, as := permitted(t, "")
	c.SQL("CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT); INSERT INTO lake.demo.t VALUES (1)")
	who := principalOf(read | insert)
	require.Equal(t, 0, runAs(c, t, as(who), "CACHE TABLE kept AS SELECT * FROM lake.demo.t").Code)
	require.Equal(t, 0, runAs(c, t, as(who), "SELECT * FROM kept").Code)
	c.Scheduler.Kill()
	c.StartScheduler("SIGNET_FAILPOINTS=scheduler.root.before-commit=kill")
	c.AwaitExecutors(1)
	r := runAs(c, t, as(who), "INSERT INTO lake.demo.t VALUES (2)", "--retry-for", "0s")
	require.Equal(t, 5, r.Code, r.Err)
	c.Scheduler.Wait(t)

	path := filepath.Join(c.Dir, "signet.yaml")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	less := strings.Replace(string(b), "principals: ["+who+"], allow: [read, insert], schemas: [demo]", "principals: ["+who+"], allow: [read, insert], schemas: [elsewhere]", 1)
	require.NotEqual(t, string(b), less)
	require.NoError(t, os.WriteFile(path, []byte(less), 0o600))
	c.StartScheduler()
	c.AwaitExecutors(1)
	harness.Eventually(t, "the job ends", func() bool {
		list := harness.RunCommand(t, "", nil, append([]string{"jobs", "--scheduler", c.Address}, as(who)...)...)
		return strings.Contains(list.Out, "Failed")
	})
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.demo.t"), "what it wrote is not there")
	r = runAs(c, t, as(who), "SELECT * FROM kept")
	require.Equal(t, 1, r.Code, r.Out)
	require.Contains(t, r.Err, "may not read")
}
