package write

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// Rewrite runs a write task that replaces files of its table, or deletes rows of them, and answers what Run does, and the files that are replaced. The
// sources of the task are bound.
func Rewrite(ctx context.Context, inst *duckdb.Instance, task *planv1.Task, opts Options) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	r := &rewrite{inst: inst, task: task, spec: task.GetWrite().GetRewrite(), opts: opts}
	files, replaced, err := r.run(ctx)
	if err != nil {
		return nil, nil, err
	}
	return files, append(replaced, r.spec.GetWhole()...), nil
}

func (r *rewrite) run(ctx context.Context) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	if r.spec.GetView() == "" && r.spec.GetChanged() == nil { // whole files go, and nothing is read
		return nil, nil, nil
	}
	if err := r.findSource(); err != nil {
		return nil, nil, err
	}
	if err := r.keepChanged(ctx); err != nil {
		return nil, nil, err
	}
	if err := r.check(ctx); err != nil {
		return nil, nil, err
	}
	switch r.spec.GetChanges() {
	case planv1.RowChanges_ROW_CHANGES_POSITION_DELETES, planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS:
		return r.mergeOnRead(ctx)
	}
	return r.copyOnWrite(ctx)
}

// rewrite is the state of one task.
type rewrite struct {
	inst   *duckdb.Instance
	task   *planv1.Task
	spec   *planv1.RewriteFiles
	opts   Options
	source *planv1.Source                // of the files that the task is about; nil: it only adds rows
	files  map[string]*planv1.PinnedFile // by the URI, which is the view's _file
	added  int64                         // changed rows that are written
}

func (r *rewrite) findSource() error {
	if r.spec.GetView() == "" {
		return nil
	}
	for _, s := range r.task.GetSources() {
		if s.GetView() == r.spec.GetView() && s.GetTable().GetWithPositions() {
			r.source = s
		}
	}
	if r.source == nil {
		return fmt.Errorf("the task has no table scan with positions called %q", r.spec.GetView())
	}
	r.files = map[string]*planv1.PinnedFile{}
	for _, f := range r.source.GetTable().GetFiles() {
		if f.GetFirstRow() != 0 || f.GetEndRow() != 0 || r.files[f.GetName()] != nil {
			return fmt.Errorf("data file %s is not in the task once and whole", f.GetName())
		}
		r.files[f.GetName()] = f
	}
	return nil
}

// check runs the query that finds a row of the table that several rows of the source match.
func (r *rewrite) check(ctx context.Context) error {
	if r.spec.GetCheckSql() == "" {
		return nil
	}
	rows, err := r.inst.Conn().QueryContext(ctx, r.spec.GetCheckSql())
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return rows.Err()
	}
	var detail *string
	if err := rows.Scan(&detail); err != nil {
		return err
	}
	where := ""
	if detail != nil && *detail != "" {
		where = ": " + shorten(*detail, 300)
	}
	return &duckdb.UserError{
		Message: fmt.Sprintf("%s: several rows of the source match one row of the table%s", r.source.GetTable().GetTable(), where),
		Hint:    "make at most one row of the source match: aggregate it, or add to the condition",
	}
}

// change is how many rows of a file change.
type change struct{ deleted, updated int64 }

// changes answers them by file. Without a query every file changes, although no row does.
func (r *rewrite) changes(ctx context.Context) (map[string]change, error) {
	out := map[string]change{}
	if r.source == nil {
		return out, nil
	}
	if r.spec.GetChangesSql() == "" {
		for name := range r.files {
			out[name] = change{}
		}
		return out, nil
	}
	rows, err := r.inst.Conn().QueryContext(ctx, r.spec.GetChangesSql())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var c change
		if err := rows.Scan(&name, &c.deleted, &c.updated); err != nil {
			return nil, fmt.Errorf("read the changes: %w", err)
		}
		if r.files[name] == nil {
			return nil, fmt.Errorf("the changes are of %q, which is no file of the task", name)
		}
		if c.deleted+c.updated > 0 {
			out[name] = c
		}
	}
	return out, rows.Err()
}

func (r *rewrite) copyOnWrite(ctx context.Context) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	changes, err := r.changes(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(changes) == 0 && r.added == 0 {
		return nil, nil, nil
	}
	replaced, keep, err := r.replaced(ctx, changes)
	if err != nil {
		return nil, nil, err
	}
	if len(keep) == 0 && r.added == 0 { // nothing of them stays
		return nil, replaced, nil
	}
	if r.source != nil {
		if err := r.narrow(ctx, keep); err != nil {
			return nil, nil, err
		}
	}
	files, err := Run(ctx, r.inst, r.task, r.opts)
	return files, replaced, err
}

// replaced lists the files with changes in the order of the task, and those of them that have rows that stay.
func (r *rewrite) replaced(ctx context.Context, changes map[string]change) (out []*planv1.ReplacedFile, keep []*planv1.PinnedFile, err error) {
	counts, err := r.visibleRows(ctx, changes)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range r.source.GetTable().GetFiles() {
		c, changed := changes[f.GetName()]
		if !changed {
			continue
		}
		n := counts[f.GetName()]
		if c.deleted+c.updated > n {
			return nil, nil, fmt.Errorf("data file %s has %d rows, and %d are to change: a row was found twice", f.GetName(), n, c.deleted+c.updated)
		}
		out = append(out, &planv1.ReplacedFile{Path: f.GetName(), RecordCount: n, DeletedRows: c.deleted, UpdatedRows: c.updated})
		if c.deleted+c.updated < n {
			keep = append(keep, f)
		}
	}
	return out, keep, nil
}

// visibleRows counts the rows of files that nothing has deleted before.
func (r *rewrite) visibleRows(ctx context.Context, changes map[string]change) (map[string]int64, error) {
	out := map[string]int64{}
	var ask []string
	for name := range changes {
		if f := r.files[name]; len(f.GetDeletes()) == 0 && f.GetRecordCount() > 0 {
			out[name] = f.GetRecordCount()
			continue
		}
		out[name] = 0
		ask = append(ask, name)
	}
	if len(ask) == 0 {
		return out, nil
	}
	rows, err := r.inst.Conn().QueryContext(ctx, "SELECT _file, count(*) FROM "+duckdb.Ident(r.spec.GetView())+" WHERE _file IN (SELECT unnest("+duckdb.ListLiteral(ask)+")) GROUP BY _file")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, fmt.Errorf("count the rows of files: %w", err)
		}
		out[name] = n
	}
	return out, rows.Err()
}

// narrow lets the task's view read these files alone.
func (r *rewrite) narrow(ctx context.Context, files []*planv1.PinnedFile) error {
	if len(files) == len(r.source.GetTable().GetFiles()) {
		return nil
	}
	if _, err := r.inst.Conn().ExecContext(ctx, "DROP VIEW "+duckdb.Ident(r.source.GetView())); err != nil {
		return err
	}
	t, _ := proto.Clone(r.source.GetTable()).(*planv1.TableScan)
	t.Files = files
	return r.inst.BindSources(ctx, []*planv1.Source{{View: r.source.GetView(), Alias: r.source.GetAlias(), Kind: &planv1.Source_Table{Table: t}}})
}
