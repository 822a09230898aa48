package write

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/signet-io/signet/executor/duckdb"
)

// reshape gives files the order and the size that the one pass could not give them: rows sorted within partitioned files, and outsize files
// cut.
func (p *plan) reshape(ctx context.Context, inst *duckdb.Instance, dir string, files []*written) ([]*written, error) {
	unsorted, err := p.unsorted(ctx, inst, files)
	if err != nil {
		return nil, err
	}
	var out []*written
	for n, f := range files {
		if unsorted[f.path] {
			sorted, err := p.sortFile(ctx, inst, f, fmt.Sprintf("%s/s%d.parquet", dir, n))
			if err != nil {
				return nil, err
			}
			f = sorted
		}
		parts, err := p.cut(ctx, inst, f, fmt.Sprintf("%s/c%d", dir, n))
		if err != nil {
			return nil, err
		}
		out = append(out, parts...)
	}
	return out, nil
}

func (p *plan) fileColumns() string {
	var names []string
	for n, c := range p.columns {
		if !c.omit {
			names = append(names, p.fileColumn(n))
		}
	}
	return strings.Join(names, ", ")
}

// unsorted are the files whose rows are not in the table's order. DuckDB's partitioned output keeps an order but for a few seams.
func (p *plan) unsorted(ctx context.Context, inst *duckdb.Instance, files []*written) (map[string]bool, error) {
	out := map[string]bool{}
	if !p.sorted || !p.partitioned() || len(files) == 0 {
		return out, nil
	}
	terms, err := p.sortTerms(p.fileColumn)
	if err != nil {
		return nil, err
	}
	if len(p.sort) == 0 || p.hasAlias("file_row_number") || p.hasAlias("__signet_file") {
		for _, f := range files {
			out[f.path] = true
		}
		return out, nil
	}
	keys := make([]string, len(terms))
	for n, t := range terms {
		keys[n] = t.expr + ", " + duckdb.Literal(t.order)
	}
	q := "SELECT DISTINCT __signet_file FROM (SELECT __signet_file, k, lag(k) OVER (PARTITION BY __signet_file ORDER BY file_row_number) AS prev FROM (" +
		"SELECT __signet_file, file_row_number, create_sort_key(" + strings.Join(keys, ", ") + ") AS k FROM " +
		readFiles(files, ", filename='__signet_file', file_row_number=true") + ")) WHERE prev > k"
	rows, err := inst.Conn().QueryContext(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("check the sort order: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			return nil, fmt.Errorf("check the sort order: %w", err)
		}
		out[path] = true
	}
	return out, rows.Err()
}

func (p *plan) fileColumn(n int) string { return duckdb.Ident(p.columns[n].alias) }

func (p *plan) sortFile(ctx context.Context, inst *duckdb.Instance, f *written, target string) (*written, error) {
	terms, err := p.sortTerms(p.fileColumn)
	if err != nil || len(terms) == 0 {
		return f, err
	}
	order := make([]string, len(terms))
	for n, t := range terms {
		order[n] = t.expr + " " + t.order
	}
	return p.recopy(ctx, inst, f, "SELECT "+p.fileColumns()+" FROM "+readFiles([]*written{f}, "")+" ORDER BY "+strings.Join(order, ", "), target)
}

// recopy replaces a file by the result of a query over it.
func (p *plan) recopy(ctx context.Context, inst *duckdb.Instance, f *written, query, target string) (*written, error) {
	made, err := p.copyFile(ctx, inst, f, query, target)
	if err != nil {
		return nil, err
	}
	if made.rows != f.rows {
		return nil, fmt.Errorf("%s has %d rows after it was sorted, and %d before", target, made.rows, f.rows)
	}
	return made, os.Remove(f.path)
}

// copyFile writes the result of a query over a file to one file of the same partition.
func (p *plan) copyFile(ctx context.Context, inst *duckdb.Instance, f *written, query, target string) (*written, error) {
	made, err := runCopy(ctx, inst, copyTo(query, target, p.fileOptions()), nil)
	if err != nil {
		return nil, fmt.Errorf("rewrite %s: %w", f.path, err)
	}
	if len(made) != 1 {
		return nil, fmt.Errorf("rewrite %s: %d files instead of one", f.path, len(made))
	}
	made[0].partition = f.partition
	return made[0], nil
}

// cut splits a file of more than one and a half times the target size by row groups. Output that rolls by itself never is.
func (p *plan) cut(ctx context.Context, inst *duckdb.Instance, f *written, base string) ([]*written, error) {
	target := p.targetSize()
	if f.size <= target+target/2 || !p.sorted && !p.partitioned() || p.hasAlias("file_row_number") {
		return []*written{f}, nil
	}
	group := p.spec.GetFiles().GetRowGroupRows()
	if group <= 0 {
		group = defaultRowGroupRows
	}
	pieces := (f.size + target - 1) / target
	step := (f.rows + pieces - 1) / pieces
	step = (step + group - 1) / group * group
	var out []*written
	for start := int64(0); start < f.rows; start += step {
		q := fmt.Sprintf("SELECT %s FROM %s WHERE file_row_number >= %d AND file_row_number < %d", p.fileColumns(),
			readFiles([]*written{f}, ", file_row_number=true"), start, start+step)
		if p.sorted {
			q += " ORDER BY file_row_number"
		}
		part, err := p.copyFile(ctx, inst, f, q, fmt.Sprintf("%s-%d.parquet", base, len(out)))
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, os.Remove(f.path)
}
