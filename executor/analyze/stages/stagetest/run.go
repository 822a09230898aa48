package stagetest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// Layout is how the work is cut.
type Layout struct {
	Shares     int // of a split source
	Partitions int // of a hash exchange
	Broadcast  int // which of a stage's joins by broadcast is taken, from 1; 0: none
}

// Runner runs stages over tables named base_VIEW. Views of the sources' names are replaced as tasks need them.
type Runner struct {
	Conn *sql.Conn
	made []string
	rows map[string]int64
}

// Base is the table that holds the rows of a source.
func Base(view string) string { return "base_" + view }

func (r *Runner) exec(ctx context.Context, format string, args ...any) error {
	stmt := fmt.Sprintf(format, args...)
	if _, err := r.Conn.ExecContext(ctx, stmt); err != nil {
		return fmt.Errorf("%w in %s", err, stmt)
	}
	return nil
}

// Whole binds the sources' views to all of their rows.
func (r *Runner) Whole(ctx context.Context, views ...string) error {
	for _, v := range views {
		if err := r.exec(ctx, "CREATE OR REPLACE TEMP VIEW %s AS SELECT * FROM %s", duckdb.Ident(v), duckdb.Ident(Base(v))); err != nil {
			return err
		}
	}
	return nil
}

// Run runs all stages and answers the rows of the last one, task by task.
func (r *Runner) Run(ctx context.Context, q *executorv1.StagedQuery, l Layout) ([][]any, error) {
	defer r.clear(ctx, len(q.GetStages()))
	read := map[int32]bool{int32(len(q.GetStages()) - 1): true}
	for _, s := range q.GetStages() {
		for _, in := range s.GetInputs() {
			read[in.GetStage()] = true
		}
	}
	var rows [][]any
	for n, s := range q.GetStages() {
		if !read[int32(n)] {
			return nil, fmt.Errorf("nobody reads stage %d", n)
		}
		out, err := r.stage(ctx, q, n, s, l)
		if err != nil {
			return nil, fmt.Errorf("stage %d (%s): %w", n, s.GetLabel(), err)
		}
		rows = out
	}
	return rows, nil
}

func (r *Runner) clear(ctx context.Context, stages int) {
	for n := range stages {
		_ = r.exec(ctx, "DROP VIEW IF EXISTS signet_stage_%d", n) // nor what cannot be dropped here
	}
	for _, t := range r.made {
		_ = r.exec(ctx, "DROP TABLE IF EXISTS %s", t) // what cannot be dropped is replaced by the next run
	}
	r.made = nil
}

func output(n int) string { return fmt.Sprintf("output_%d", n) }

func (r *Runner) stage(ctx context.Context, q *executorv1.StagedQuery, n int, s *executorv1.QueryStage, l Layout) ([][]any, error) {
	text, inputs := s.GetSql(), s.GetInputs()
	if b := s.GetBroadcasts(); l.Broadcast > 0 && len(b) > 0 {
		alt := b[(l.Broadcast-1)%len(b)]
		text, inputs = alt.GetSql(), alt.GetInputs()
	}
	last := n == len(q.GetStages())-1
	if err := check(q, n, s, inputs, last); err != nil {
		return nil, err
	}
	if !last {
		if err := r.create(ctx, n, s); err != nil {
			return nil, err
		}
	}
	tasks := tasksOf(q, inputs, l)
	if s.GetSingle() && tasks != 1 {
		return nil, fmt.Errorf("a single stage shares its inputs")
	}
	var rows [][]any
	for t := range tasks {
		for _, in := range inputs {
			if err := r.bind(ctx, q, in, t, tasks); err != nil {
				return nil, err
			}
		}
		if last {
			out, err := Rows(ctx, r.Conn, text)
			if err != nil {
				return nil, err
			}
			rows = append(rows, out...)
			continue
		}
		if err := r.exec(ctx, "INSERT INTO %s SELECT %d, %s, * FROM (%s) q", output(n), t, partitionOf(s, l), text); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// check holds a stage against the contract of StagedQuery.
func check(q *executorv1.StagedQuery, n int, s *executorv1.QueryStage, inputs []*executorv1.StageInput, last bool) error {
	sources, hashes, keys := 0, 0, ""
	for _, in := range inputs {
		if int(in.GetStage()) >= n {
			return fmt.Errorf("it reads stage %d, which is not before it", in.GetStage())
		}
		if !in.GetSplit() {
			continue
		}
		if in.GetStage() < 0 {
			sources++
			continue
		}
		if k := keyTypes(q.GetStages()[in.GetStage()]); hashes > 0 && k != keys {
			return fmt.Errorf("it shares stages by keys of types %s and %s", keys, k)
		} else {
			keys = k
		}
		hashes++
		if k := q.GetStages()[in.GetStage()].GetOutput(); k != planv1.ExchangeKind_EXCHANGE_KIND_HASH {
			return fmt.Errorf("it shares the output of stage %d, which is not hashed", in.GetStage())
		}
	}
	if sources > 1 || sources > 0 && hashes > 0 {
		return fmt.Errorf("it shares %d sources and %d stages", sources, hashes)
	}
	hashed := s.GetOutput() == planv1.ExchangeKind_EXCHANGE_KIND_HASH
	if last != (s.GetOutput() == planv1.ExchangeKind_EXCHANGE_KIND_UNSPECIFIED) || hashed != (len(s.GetKeys()) > 0) {
		return fmt.Errorf("its output is %v with %d keys", s.GetOutput(), len(s.GetKeys()))
	}
	seen := map[string]bool{}
	for _, c := range s.GetColumns() {
		if lower := strings.ToLower(c.GetName()); seen[lower] && !last {
			return fmt.Errorf("two columns are called %s", c.GetName())
		} else {
			seen[lower] = true
		}
	}
	return nil
}

func keyTypes(s *executorv1.QueryStage) string {
	var out []string
	for _, k := range s.GetKeys() {
		out = append(out, s.GetColumns()[k].GetEngineType())
	}
	return strings.Join(out, ", ")
}

func tasksOf(q *executorv1.StagedQuery, inputs []*executorv1.StageInput, l Layout) int {
	for _, in := range inputs {
		if in.GetSplit() && in.GetStage() < 0 {
			return l.Shares
		}
		if in.GetSplit() {
			return l.Partitions
		}
	}
	return 1
}

func partitionOf(s *executorv1.QueryStage, l Layout) string {
	if s.GetOutput() != planv1.ExchangeKind_EXCHANGE_KIND_HASH {
		return "0"
	}
	keys := make([]string, len(s.GetKeys()))
	for i, k := range s.GetKeys() {
		keys[i] = duckdb.Ident(s.GetColumns()[k].GetName())
	}
	return fmt.Sprintf("hash(%s) %% %d", strings.Join(keys, ", "), l.Partitions)
}

func (r *Runner) create(ctx context.Context, n int, s *executorv1.QueryStage) error {
	cols := []string{"signet_task INTEGER", "signet_part UBIGINT"}
	for _, c := range s.GetColumns() {
		cols = append(cols, duckdb.Ident(c.GetName())+" "+c.GetEngineType())
	}
	r.made = append(r.made, output(n))
	return r.exec(ctx, "CREATE OR REPLACE TEMP TABLE %s (%s)", output(n), strings.Join(cols, ", "))
}

// count is the number of a source's rows, which do not change.
func (r *Runner) count(ctx context.Context, view string) (int64, error) {
	if n, ok := r.rows[view]; ok {
		return n, nil
	}
	var n int64
	err := r.Conn.QueryRowContext(ctx, "SELECT count(*) FROM "+duckdb.Ident(Base(view))).Scan(&n)
	if r.rows == nil {
		r.rows = map[string]int64{}
	}
	r.rows[view] = n
	return n, err
}

// bind gives an input's view the rows that task t of several sees.
func (r *Runner) bind(ctx context.Context, q *executorv1.StagedQuery, in *executorv1.StageInput, t, tasks int) error {
	if in.GetStage() < 0 {
		where := ""
		if in.GetSplit() {
			rows, err := r.count(ctx, in.GetView())
			if err != nil {
				return err
			}
			where = fmt.Sprintf(" WHERE rowid >= %d AND rowid < %d", rows*int64(t)/int64(tasks), rows*int64(t+1)/int64(tasks))
		}
		return r.exec(ctx, "CREATE OR REPLACE TEMP VIEW %s AS SELECT * FROM %s%s", duckdb.Ident(in.GetView()), duckdb.Ident(Base(in.GetView())), where)
	}
	s := q.GetStages()[in.GetStage()]
	names := make([]string, len(s.GetColumns()))
	for i, c := range s.GetColumns() {
		names[i] = duckdb.Ident(c.GetName())
	}
	where := ""
	if in.GetSplit() {
		where = fmt.Sprintf(" WHERE signet_part = %d", t)
	}
	return r.exec(ctx, "CREATE OR REPLACE TEMP VIEW %s AS SELECT %s FROM %s%s ORDER BY signet_task, signet_part, rowid", duckdb.Ident(in.GetView()),
		strings.Join(names, ", "), output(int(in.GetStage())), where)
}

// Rows runs a query. Floating-point values come as float64, everything else as text; NULL as nil.
func Rows(ctx context.Context, conn *sql.Conn, query string) ([][]any, error) {
	types, err := typesOf(ctx, conn, query)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, query)
	}
	names := make([]string, len(types))
	items := make([]string, len(types))
	for i, t := range types {
		names[i] = fmt.Sprintf("c%d", i)
		items[i] = fmt.Sprintf("CAST(c%d AS VARCHAR)", i)
		if t == "DOUBLE" || t == "FLOAT" {
			items[i] = fmt.Sprintf("CAST(c%d AS DOUBLE)", i)
		}
	}
	rs, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM (%s\n) q(%s)", strings.Join(items, ", "), query, strings.Join(names, ", ")))
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	var out [][]any
	for rs.Next() {
		row := make([]any, len(names))
		ptrs := make([]any, len(names))
		for i := range row {
			ptrs[i] = &row[i]
		}
		if err := rs.Scan(ptrs...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rs.Err()
}

// typesOf binds a query; DuckDB describes what it would answer.
func typesOf(ctx context.Context, conn *sql.Conn, query string) ([]string, error) {
	rs, err := conn.QueryContext(ctx, "DESCRIBE "+query)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	var out []string
	for rs.Next() {
		var name, typ string
		var null, key, def, extra sql.NullString
		if err := rs.Scan(&name, &typ, &null, &key, &def, &extra); err != nil {
			return nil, err
		}
		out = append(out, typ)
	}
	return out, rs.Err()
}
