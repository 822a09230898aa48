package write

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/valueslist"
)

// Constants writes the rows of a task whose query is a short VALUES list of plain constants, into a table without partitions and sort order, without
// DuckDB: opening, binding and writing there takes several times what everything else about such a task does. file is a name in scratch that is free, and
// free again afterwards. done is false where the list or the table has something that only DuckDB knows, also where a value does not fit: then nothing has
// been done, and Run does the work, or says what is wrong.
func Constants(ctx context.Context, task *planv1.Task, file string, opts Options) (files []*planv1.DataFile, done bool, err error) {
	p, columns, rows := constantPlan(task)
	if p == nil {
		return nil, false, nil
	}
	if err := errors.Join(fault.Hit("executor.task.start"), fault.Hit("executor.copy.before")); err != nil {
		return nil, true, err
	}
	f, err := p.writePlain(file, columns, rows)
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(file))) }()
	if err != nil {
		return nil, true, err
	}
	if err := fault.Hit("executor.copy.after"); err != nil {
		return nil, true, err
	}
	if opts.Written != nil {
		opts.Written(f.rows, f.size)
	}
	files, err = p.place(ctx, []*written{f}, opts.Store)
	return files, true, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// constantPlan works a task out; nil: it is DuckDB's. columns has the values of each column of the table.
func constantPlan(task *planv1.Task) (p *plan, columns [][]valueslist.Value, rows int) {
	w := task.GetWrite()
	if w == nil || len(task.GetSources()) > 0 || w.GetRewrite() != nil || w.GetRowLineage() || len(w.GetSpec().GetPartition()) > 0 || len(w.GetSpec().GetSort()) > 0 {
		return nil, nil, 0
	}
	list, ok := valueslist.Parse(task.GetSql())
	if !ok || plainCodec(w.GetSpec().GetFiles()) == nil {
		return nil, nil, 0
	}
	p, err := newPlan(task, list.Columns())
	if err != nil || len(p.leaves) != len(p.columns) {
		return nil, nil, 0
	}
	for _, c := range p.columns {
		values, ok := constantColumn(c, list)
		if !ok {
			return nil, nil, 0
		}
		columns = append(columns, values)
	}
	return p, columns, len(list.Rows)
}

// constantColumn are the values of a column, if each is stored as it is.
func constantColumn(c column, list *valueslist.List) ([]valueslist.Value, bool) {
	t, known := plainTypes[c.field.GetType().GetKind()]
	if !known || c.input < 0 || c.castType != t.castType {
		return nil, false
	}
	out := make([]valueslist.Value, 0, len(list.Rows))
	for _, row := range list.Rows {
		v := row[c.input]
		switch {
		case v.Kind == valueslist.Null && c.field.GetRequired():
			return nil, false
		case v.Kind == valueslist.Null:
		case v.Kind != t.kind:
			return nil, false
		case c.field.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_INT32 && (v.Integer < math.MinInt32 || v.Integer > math.MaxInt32):
			return nil, false
		case len(v.Text) >= cutAt: // bounds of long strings are DuckDB's affair
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// constantStats are what COPY says of a column.
func constantStats(values []valueslist.Value) *colStats {
	s := &colStats{size: -1, values: int64(len(values)), nans: -1}
	for _, v := range values {
		if v.Kind == valueslist.Null {
			s.nulls++
		}
	}
	if low, high := extremes(values); low != nil {
		a, b := constantText(low), constantText(high)
		s.min, s.max = &a, &b
	}
	return s
}

// extremes are the least and the greatest value; nil: there is none.
func extremes(values []valueslist.Value) (low, high *valueslist.Value) {
	for i := range values {
		v := &values[i]
		if v.Kind == valueslist.Null {
			continue
		}
		if low == nil || less(v, low) {
			low = v
		}
		if high == nil || less(high, v) {
			high = v
		}
	}
	return low, high
}

func less(a, b *valueslist.Value) bool {
	if a.Kind == valueslist.String {
		return a.Text < b.Text // by bytes, as the formats compare
	}
	return a.Integer < b.Integer
}

func constantText(v *valueslist.Value) string {
	switch v.Kind {
	case valueslist.String:
		return v.Text
	case valueslist.Boolean:
		return strconv.FormatBool(v.Integer == 1)
	}
	return strconv.FormatInt(v.Integer, 10)
}

// writePlain writes a file of one row group with one page for each column.
func (p *plan) writePlain(path string, columns [][]valueslist.Value, rows int) (*written, error) {
	f := &written{path: path, rows: int64(rows), stats: map[string]*colStats{}, partition: nil}
	data, err := p.plainFile(f, columns)
	if err != nil {
		return nil, err
	}
	f.size = int64(len(data))
	if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // tables are read by others
		return nil, fmt.Errorf("scratch: %w", err)
	}
	return f, nil
}
