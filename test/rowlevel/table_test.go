//go:build cgo

package rowlevel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// table is a table of data files, as a sink would list them.
type table struct {
	testing.TB
	pool    *duckdb.Pool
	dir     string
	spec    *planv1.WriteSpec
	files   []*planv1.PinnedFile
	sources map[string]string // name to Parquet file
	tasks   int               // at least so many where the files allow it
	ran     int               // tasks of the last statement
	result  []*planv1.ReplacedFile
}

func newTable(t testing.TB, pool *duckdb.Pool, fields ...*planv1.Field) *table {
	t.Helper()
	dir := t.TempDir()
	return &table{TB: t, pool: pool, dir: dir, sources: map[string]string{}, spec: &planv1.WriteSpec{
		TableUuid: uuid.NewString(), Schema: &planv1.Schema{Fields: fields}, DataLocation: "file://" + dir + "/data", FormatVersion: 2,
	}}
}

func newPool(t testing.TB) *duckdb.Pool {
	pool := duckdb.NewPool(duckdb.Options{Ready: -1, Setup: transform.Register})
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	return pool
}

func (tb *table) scan(positions bool) *planv1.TableScan {
	return &planv1.TableScan{Schema: tb.spec.Schema, Files: tb.files, Table: "lake.s.t", Version: "1", WithPositions: positions}
}

func (tb *table) add(files []*planv1.DataFile) {
	for _, f := range files {
		p := strings.TrimPrefix(f.GetPath(), "file://")
		st, err := os.Stat(p)
		require.NoError(tb, err)
		tb.files = append(tb.files, &planv1.PinnedFile{Path: p, Name: f.GetPath(), SizeBytes: st.Size(), RecordCount: f.GetRecordCount()})
	}
}

// open gets an instance with a scratch directory and these sources.
func (tb *table) open(sources []*planv1.Source) (*duckdb.Instance, string) {
	scratch, err := os.MkdirTemp(tb.dir, "scratch")
	require.NoError(tb, err)
	inst, err := tb.pool.Open(context.Background(), duckdb.Access{
		ReadFiles: duckdb.FilesOf(sources), WriteDirs: []string{scratch}, TempDir: scratch + "/spill", Threads: 2, MemoryBytes: 1 << 30, KeepOrder: true,
	})
	require.NoError(tb, err)
	return inst, scratch
}

func (tb *table) place(task *planv1.Task) {
	task.AttemptId = uuid.NewString()
	task.GetWrite().Prefix = fmt.Sprintf("%s/job/%d/%d/%s", tb.spec.DataLocation, task.GetStage(), task.GetTask(), task.AttemptId)
}

// insert appends the rows of a query that reads nothing, as one file for each call and partition.
func (tb *table) insert(query string) {
	tb.Helper()
	w := &planv1.WriteTask{Spec: tb.spec}
	for n, f := range tb.spec.Schema.Fields {
		w.Columns = append(w.Columns, &planv1.OutputColumn{Field: f, Input: int32(n)})
	}
	task := &planv1.Task{Sql: query, Work: &planv1.Task_Write{Write: w}}
	tb.place(task)
	inst, scratch := tb.open(nil)
	defer inst.Close()
	files, err := write.Run(context.Background(), inst, task, write.Options{Scratch: scratch, Store: upload.Local{}})
	require.NoError(tb, err, query)
	tb.add(files)
}

func (tb *table) resolve(u *executorv1.UnresolvedSource) (*planv1.Source, error) {
	src := &planv1.Source{View: u.GetView(), Alias: u.GetAlias()}
	name := strings.Join(u.GetTable(), ".")
	switch {
	case name == "t" || name == "lake.s.t":
		src.Kind = &planv1.Source_Table{Table: tb.scan(false)}
	case tb.sources[name] != "":
		p := tb.sources[name]
		st, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		src.Kind = &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet", Files: []*planv1.PinnedFile{{Path: p, SizeBytes: st.Size(), MtimeNanos: st.ModTime().UnixNano(), Name: p}}}}
	default:
		return nil, fmt.Errorf("no table %q", name)
	}
	return src, nil
}

// planned is what the scheduler does with a statement.
func (tb *table) planned(text string) ([]*planv1.Task, error) {
	st, err := sql.Parse(text)
	if err != nil {
		return nil, err
	}
	r := &plan.RowLevel{Table: "lake.s.t", Schema: tb.spec.Schema, Lineage: tb.spec.FormatVersion >= 3}
	switch st := st.(type) {
	case *sql.Delete:
		r.Delete, r.Name = st, st.Table.Strings()
	case *sql.Update:
		r.Update, r.Name = st, st.Table.Strings()
	case *sql.Merge:
		r.Merge, r.Name = st, st.Table.Strings()
	default:
		return nil, fmt.Errorf("%T", st)
	}
	changes, err := r.Changes()
	if err != nil {
		return nil, err
	}
	target := &planv1.Source{View: plan.TargetView, Alias: "lake.s.t", Kind: &planv1.Source_Table{Table: tb.scan(true)}}
	req := &executorv1.Analyze{RequestId: "r", Sql: changes.SQL, NowMicros: 1777638896789000, Sources: []*planv1.Source{target}, Target: &executorv1.RowTarget{View: plan.TargetView, Alias: r.Alias()}}
	if !r.Aliased() {
		req.Target.Table = r.Name
	}
	res := analyze.Analyze(context.Background(), tb.pool, req)
	var others []*planv1.Source
	for _, u := range res.GetUnresolved() {
		src, err := tb.resolve(u)
		if err != nil {
			return nil, err
		}
		others = append(others, src)
	}
	if len(others) > 0 {
		req.Sources = append(req.Sources, others...)
		res = analyze.Analyze(context.Background(), tb.pool, req)
	}
	if res.GetError() != nil {
		return nil, errors.New(res.GetError().GetMessage() + " | " + res.GetError().GetHint())
	}
	clauses, err := changes.Clauses(res.GetColumns())
	if err != nil {
		return nil, err
	}
	p, err := (&plan.RowLevelTasks{
		Statement: r, Spec: tb.spec, Target: target, Why: res.GetUnrepeatable(), Mode: plan.Static,
		Found:   &plan.Found{SQL: res.GetSql(), Columns: len(res.GetColumns()), Sources: others, Clauses: clauses},
		Request: plan.Request{Limits: plan.Limits{Executors: max(tb.tasks, 1), MinBytes: 1}},
	}).Planner()
	if err != nil {
		return nil, err
	}
	batch, err := p.Next(nil)
	if err != nil {
		return nil, err
	}
	var out []*planv1.Task
	for i := range batch.Stages[0].Tasks() {
		out = append(out, batch.Stages[0].Task(i))
	}
	return out, nil
}

// run plans and runs a statement, and changes the table if every task has succeeded.
func (tb *table) run(text string) error {
	tasks, err := tb.planned(text)
	if err != nil {
		return err
	}
	tb.ran, tb.result = len(tasks), nil
	var added []*planv1.DataFile
	for _, task := range tasks {
		tb.place(task)
		files, replaced, err := tb.runTask(task)
		if err != nil {
			return err
		}
		added, tb.result = append(added, files...), append(tb.result, replaced...)
	}
	before := tb.visible()
	tb.files = slices.Clone(tb.files) // a test may go back to them
	var gone, fresh int64
	for _, r := range tb.result {
		at := tb.at(r.GetPath())
		require.Equal(tb, left(tb.files[at]), r.GetRecordCount())
		require.Positive(tb, r.GetDeletedRows()+r.GetUpdatedRows(), "only files with changes are replaced")
		gone += r.GetDeletedRows() + r.GetUpdatedRows()
		if !tb.mergesOnRead() {
			fresh -= r.GetRecordCount() - r.GetDeletedRows() - r.GetUpdatedRows() // what stays is written again
		}
		tb.files = slices.Delete(tb.files, at, at+1)
	}
	for _, f := range added {
		if n := manifest.CountsOf(f); f.GetContent() != planv1.FileContent_FILE_CONTENT_UNSPECIFIED {
			tb.apply(f)
			gone += n.Deleted + n.Updated
		} else {
			fresh += n.Rows
			tb.add([]*planv1.DataFile{f})
		}
	}
	require.Equal(tb, before-gone+fresh, tb.visible(), "what is told of the rows adds up")
	return nil
}

func (tb *table) mergesOnRead() bool {
	return tb.spec.RowChanges > planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE
}

func (tb *table) at(name string) int {
	at := slices.IndexFunc(tb.files, func(f *planv1.PinnedFile) bool { return f.GetName() == name })
	require.GreaterOrEqual(tb, at, 0, "a file is replaced, or gets a deletion vector, once, and is one of the table")
	return at
}

// apply puts a delete file beside its data file, as a scan lists it.
func (tb *table) apply(d *planv1.DataFile) {
	require.True(tb, tb.mergesOnRead())
	at := tb.at(d.GetReferencedDataFile())
	f, _ := proto.Clone(tb.files[at]).(*planv1.PinnedFile)
	p := strings.TrimPrefix(d.GetPath(), "file://")
	st, err := os.Stat(p)
	require.NoError(tb, err)
	require.Equal(tb, st.Size(), d.GetSizeBytes())
	require.Empty(tb, d.GetPartition())
	now := &planv1.DeleteFile{
		Content: d.GetContent(), Path: p, SizeBytes: d.GetSizeBytes(), RecordCount: d.GetRecordCount(), ContentOffset: d.GetContentOffset(), ContentSize: d.GetContentSize(),
	}
	was := f.GetRecordCount() - left(f)
	require.Equal(tb, was, d.GetCarriedRows(), "it holds what was deleted before")
	if d.GetContent() != planv1.FileContent_FILE_CONTENT_DELETION_VECTOR {
		now.Name = d.GetPath()
		require.Len(tb, d.GetMerged(), len(f.GetDeletes()))
	}
	f.Deletes = nil
	f.Deletes = append(f.Deletes, now)
	tb.files[at] = f
}

// left are the rows of a file that no delete file deletes. No two of them may name the same row.
func left(f *planv1.PinnedFile) int64 {
	n := f.GetRecordCount()
	for _, d := range f.GetDeletes() {
		n -= d.GetRecordCount()
	}
	return n
}

func (tb *table) visible() (n int64) {
	for _, f := range tb.files {
		n += left(f)
	}
	return n
}

func (tb *table) runTask(task *planv1.Task) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	inst, scratch := tb.open(task.GetSources())
	defer inst.Close()
	if err := inst.BindSources(context.Background(), task.GetSources()); err != nil {
		return nil, nil, err
	}
	return write.Rewrite(context.Background(), inst, task, write.Options{Scratch: scratch, Store: upload.Local{}})
}

// rows are all rows of the table as text, sorted.
func (tb *table) rows(columns string) []string {
	src := &planv1.Source{View: "v", Kind: &planv1.Source_Table{Table: tb.scan(strings.Contains(columns, "_row_id"))}}
	inst, _ := tb.open([]*planv1.Source{src})
	defer inst.Close()
	require.NoError(tb, inst.BindSources(context.Background(), []*planv1.Source{src}))
	return texts(tb, inst, "SELECT "+columns+" FROM v ORDER BY ALL")
}

func texts(t testing.TB, inst *duckdb.Instance, query string) []string {
	t.Helper()
	rows, err := inst.Conn().QueryContext(context.Background(), "SELECT CAST(q AS VARCHAR) FROM ("+query+") AS q")
	require.NoError(t, err, query)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		out = append(out, s)
	}
	require.NoError(t, rows.Err())
	return out
}

// oracle is a DuckDB with the same tables.
type oracle struct {
	testing.TB
	*duckdb.Instance
	dir string
}

func newOracle(t testing.TB, pool *duckdb.Pool) *oracle {
	dir := t.TempDir()
	inst, err := pool.Open(context.Background(), duckdb.Access{WriteDirs: []string{dir}, TempDir: dir + "/spill", Threads: 1, KeepOrder: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inst.Close()) })
	return &oracle{t, inst, dir}
}

func (o *oracle) exec(stmts ...string) {
	o.Helper()
	for _, s := range stmts {
		_, err := o.Conn().ExecContext(context.Background(), s)
		require.NoError(o, err, s)
	}
}

// file writes a query's rows to a Parquet file.
func (o *oracle) file(name, query string) string {
	p := filepath.Join(o.dir, name+"-"+uuid.NewString()+".parquet")
	o.exec("COPY (" + query + ") TO '" + p + "' (FORMAT PARQUET)")
	return p
}
