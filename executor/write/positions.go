package write

import (
	"context"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// mergeOnRead leaves the data files where they are: the rows that change go into delete files, and what becomes of them into new data files. A file of which the
// statement deletes every row is removed whole, with all that was deleted of it before.
func (r *rewrite) mergeOnRead(ctx context.Context) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	changes, err := r.changes(ctx)
	if err != nil {
		return nil, nil, err
	}
	whole, err := r.whole(ctx, changes)
	if err != nil {
		return nil, nil, err
	}
	gone, err := r.gone(ctx, changes)
	if err != nil {
		return nil, nil, err
	}
	d := &deleteFiles{rewrite: r}
	replaced := make([]*planv1.ReplacedFile, 0, len(whole))
	for _, f := range r.source.GetTable().GetFiles() { // none, where the task only adds rows
		c, changed := changes[f.GetName()]
		rows, all := whole[f.GetName()]
		switch {
		case all:
			replaced = append(replaced, &planv1.ReplacedFile{Path: f.GetName(), RecordCount: rows, DeletedRows: c.deleted})
		case changed:
			d.targets = append(d.targets, deleteTarget{file: f, change: c, rows: gone[f.GetName()]})
		}
	}
	if err := d.write(ctx); err != nil { // before anything is uploaded
		return nil, nil, err
	}
	var files []*planv1.DataFile
	if r.added > 0 {
		opts := r.opts
		if written := opts.Written; written != nil {
			opts.Written = func(rows, bytes int64) { written(rows, bytes+d.bytes()) }
		}
		if files, err = Run(ctx, r.inst, r.task, opts); err != nil {
			return nil, nil, err
		}
	} else if r.opts.Written != nil {
		r.opts.Written(0, d.bytes())
	}
	placed, err := d.place(ctx)
	if err != nil {
		return nil, nil, err
	}
	return append(files, placed...), replaced, nil
}

// whole are the files of which the statement deletes every row that is left, with how many these are.
func (r *rewrite) whole(ctx context.Context, changes map[string]change) (map[string]int64, error) {
	maybe := map[string]change{}
	for name, c := range changes {
		if c.updated == 0 && c.deleted >= leastRows(r.files[name]) {
			maybe[name] = c
		}
	}
	if len(maybe) == 0 {
		return nil, nil
	}
	rows, err := r.visibleRows(ctx, maybe)
	if err != nil {
		return nil, err
	}
	for name, c := range maybe {
		switch n := rows[name]; {
		case c.deleted > n:
			return nil, fmt.Errorf("data file %s has %d rows, and %d are to change: a row was found twice", name, n, c.deleted)
		case c.deleted < n:
			delete(rows, name)
		}
	}
	return rows, nil
}

// leastRows is how many rows a file has at least. By value, others may have deleted any number.
func leastRows(f *planv1.PinnedFile) int64 {
	n := f.GetRecordCount()
	for _, d := range f.GetDeletes() {
		if d.GetContent() == planv1.FileContent_FILE_CONTENT_EQUALITY_DELETES {
			return 0
		}
		n -= d.GetRecordCount()
	}
	return max(n, 0)
}

// gone are the positions of the rows that change, by data file.
func (r *rewrite) gone(ctx context.Context, changes map[string]change) (map[string]*roaring64.Bitmap, error) {
	out := map[string]*roaring64.Bitmap{}
	if len(changes) == 0 {
		return out, nil
	}
	names := make([]string, 0, len(changes))
	bitmaps := make([]*roaring64.Bitmap, 0, len(changes))
	for name := range changes {
		b := roaring64.New()
		out[name] = b
		names, bitmaps = append(names, name), append(bitmaps, b)
	}
	query := "SELECT CAST(coalesce(f.n, 0) AS BIGINT), CAST(coalesce(p.pos, -1) AS BIGINT) FROM (" + r.spec.GetPositionsSql() + ") AS p(file, pos) LEFT JOIN (SELECT unnest(" +
		duckdb.ListLiteral(names) + ") AS file, unnest(range(1, " + fmt.Sprint(len(names)+1) + ")) AS n) AS f ON p.file = f.file"
	var numbers []uint64
	err := r.inst.Longs(ctx, query, 2, func(batch [][]int64) error {
		for from := 0; from < len(batch[0]); {
			file, to := batch[0][from], from
			for numbers = numbers[:0]; to < len(batch[0]) && batch[0][to] == file; to++ {
				if file == 0 || batch[1][to] < 0 {
					return fmt.Errorf("a row at %d of a file that does not change is to be deleted", batch[1][to])
				}
				numbers = append(numbers, uint64(batch[1][to]))
			}
			bitmaps[file-1].AddMany(numbers)
			from = to
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, b := range out {
		if c := changes[name]; int64(b.GetCardinality()) != c.deleted+c.updated { //nolint:gosec // rows of a file
			return nil, fmt.Errorf("data file %s: %d rows change, at %d places: a row was found twice", name, c.deleted+c.updated, b.GetCardinality())
		}
	}
	return out, nil
}

// deleteTarget is a data file of which rows are deleted.
type deleteTarget struct {
	file *planv1.PinnedFile
	change
	rows *roaring64.Bitmap
}

// carry adds the rows that these delete files have deleted before, whose place the new one takes, and answers how many those are.
func (t *deleteTarget) carry(ctx context.Context, from []*planv1.DeleteFile) (int64, error) {
	before, err := duckdb.DeletedPositions(ctx, []*planv1.PinnedFile{{Path: t.file.GetPath(), Name: t.file.GetName(), Deletes: from}})
	if err != nil {
		return 0, err
	}
	old := before[t.file.GetPath()]
	if old == nil {
		return 0, nil
	}
	if old.Intersects(t.rows) {
		return 0, fmt.Errorf("data file %s: a row that is deleted already was found", t.file.GetName())
	}
	t.rows.Or(old)
	return int64(old.GetCardinality()), nil //nolint:gosec // rows of a file
}

// own are the position delete files that are about the data file alone. Others stay, for their other rows.
func (t *deleteTarget) own() (files []*planv1.DeleteFile, names []string) {
	for _, d := range t.file.GetDeletes() {
		if d.GetContent() == planv1.FileContent_FILE_CONTENT_POSITION_DELETES && d.GetName() != "" {
			files, names = append(files, d), append(names, d.GetName())
		}
	}
	return files, names
}

// describe is the delete file in the task manifest.
func (t *deleteTarget) describe(carried int64) *planv1.DataFile {
	return &planv1.DataFile{
		RecordCount: int64(t.rows.GetCardinality()), CarriedRows: carried, UpdatedRows: t.updated, ReferencedDataFile: t.file.GetName(), //nolint:gosec // rows of a file
	}
}

func (r *rewrite) fileName(suffix string) string {
	return strings.Join([]string{fmt.Sprint(r.task.GetStage()), fmt.Sprint(r.task.GetTask()), r.task.GetAttemptId(), suffix}, "-")
}
