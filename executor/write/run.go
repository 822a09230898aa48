package write

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/internal/fault"
)

// Options of Run.
type Options struct {
	// Scratch is an existing directory of this attempt's own, absolute, that the instance may write below. The caller removes it.
	Scratch string
	// Store receives the finished files.
	Store upload.Store
	// Left are files of the source that are not all there. Optional.
	Left Left
	// Written is told what has been written, when it is known. Optional.
	Written func(rows, bytes int64)
}

// FilesDir is the directory below Options.Scratch that files are written to.
const FilesDir = "files"

// copiedDir is the one below Options.Scratch for files of copied row groups: DuckDB wants its own empty.
const copiedDir = "copied"

// uploads is how many files are synced and placed at a time: file systems make several syncs durable for the price of one.
const uploads = 4

// KeepOrder says whether the task needs Access.KeepOrder: cutting sorted files reads them in order.
func KeepOrder(task *planv1.Task) bool { return task.GetWrite().GetSpec().GetSortOrderId() != 0 }

// Run writes the rows of a task whose sources are bound, and answers its data files, which are durable under their final names. After an
// error some files may lie below the task's prefix; the caller sweeps it.
func Run(ctx context.Context, inst *duckdb.Instance, task *planv1.Task, opts Options) ([]*planv1.DataFile, error) {
	inputs, err := describe(ctx, inst, task.GetSql())
	if err != nil {
		return nil, err
	}
	p, err := newPlan(task, inputs)
	if err != nil {
		return nil, err
	}
	if err := inst.CheckInt96(ctx, task.GetSql()); err != nil {
		return nil, err
	}
	dir := filepath.Join(opts.Scratch, FilesDir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	if err := fault.Hit("executor.copy.before"); err != nil {
		return nil, err
	}
	files, left, err := p.splice(ctx, inst, filepath.Join(opts.Scratch, copiedDir), opts.Left)
	if err != nil {
		return nil, err
	}
	if left {
		others, err := p.write(ctx, inst, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, others...)
	}
	if err := fault.Hit("executor.copy.after"); err != nil {
		return nil, err
	}
	if opts.Written != nil {
		var rows, bytes int64
		for _, f := range files {
			rows, bytes = rows+f.rows, bytes+f.size
		}
		opts.Written(rows, bytes)
	}
	return p.place(ctx, files, opts.Store)
}

// write leaves checked files in dir.
func (p *plan) write(ctx context.Context, inst *duckdb.Instance, dir string) ([]*written, error) {
	files, err := runCopy(ctx, inst, p.copySQL(dir), p.keys)
	if err != nil {
		return nil, p.explain(ctx, inst, err)
	}
	if err := inst.CheckPins(); err != nil { // S73: the sources were what was planned until the last row was read
		return nil, err
	}
	if err := p.checkValues(ctx, inst, files); err != nil {
		return nil, err
	}
	if files, err = p.reshape(ctx, inst, dir, files); err != nil {
		return nil, err
	}
	if err := p.countNaNs(ctx, inst, files); err != nil {
		return nil, err
	}
	for n, f := range files {
		if len(p.fixed) > 0 {
			if err := p.fixFile(ctx, f, fmt.Sprintf("%s/x%d.parquet", dir, n)); err != nil {
				return nil, err
			}
		}
		if err := readFooter(f); err != nil {
			return nil, err
		}
		if p.fieldIDs() != "" || !p.ids() {
			if err := bareIntegers(f); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

func (p *plan) place(ctx context.Context, files []*written, store upload.Store) ([]*planv1.DataFile, error) {
	if len(files) == 0 {
		return nil, nil
	}
	w, err := store.Writer(ctx, p.task.GetWrite().GetPrefix())
	if err != nil {
		return nil, err
	}
	out := make([]*planv1.DataFile, len(files))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(uploads)
	for n, f := range files {
		g.Go(func() error {
			name := fmt.Sprintf("%d-%d-%s-%d.parquet", p.task.GetStage(), p.task.GetTask(), p.task.GetAttemptId(), n)
			if f.stored != nil {
				out[n] = p.dataFile(f, p.task.GetWrite().GetPrefix()+"/"+name)
				return makeStored(gctx, w, f, name)
			}
			uri, size, err := w.Place(gctx, f.path, name)
			if err != nil {
				return err
			}
			if size != f.size {
				return fmt.Errorf("%s has %d bytes in the store and %d in scratch", uri, size, f.size)
			}
			out[n] = p.dataFile(f, uri)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return out, w.Finish(ctx)
}

// makeStored has the store make a file.
func makeStored(ctx context.Context, w upload.Writer, f *written, name string) error {
	maker, ok := w.(splice.Maker)
	if !ok {
		return errors.New("row groups are to be copied by a store that copies none")
	}
	return maker.Make(ctx, f.stored.Pieces, name)
}

func (p *plan) dataFile(f *written, uri string) *planv1.DataFile {
	d := &planv1.DataFile{
		Path: uri, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: f.rows, SizeBytes: f.size,
		Partition: f.partition, Columns: p.columnMetrics(f), SplitOffsets: f.offsets,
	}
	if p.sorted {
		d.SortOrderId = p.spec.GetSortOrderId()
	}
	return d
}
