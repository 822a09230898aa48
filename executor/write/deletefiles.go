package write

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/deletes"
	"github.com/signet-io/signet/internal/fault"
)

// deletesDir is the directory below Options.Scratch for delete files: DuckDB wants its own empty.
const deletesDir = "deletes"

// deleteFiles are the delete files of one task.
type deleteFiles struct {
	*rewrite
	targets []deleteTarget
	files   []*planv1.DataFile // without their URIs until they are placed
	local   []string           // the objects that hold them: one for each file, or one for all
}

// bytes of the objects in scratch.
func (d *deleteFiles) bytes() int64 {
	var n int64
	for i, f := range d.files {
		if i == 0 || len(d.local) > 1 {
			n += f.GetSizeBytes()
		}
	}
	return n
}

// write leaves the delete files in scratch.
func (d *deleteFiles) write(ctx context.Context) error {
	if len(d.targets) == 0 {
		return nil
	}
	dir := filepath.Join(d.opts.Scratch, deletesDir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	write := d.writePositions
	if d.spec.GetChanges() == planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS {
		write = d.writeVectors
	}
	if err := write(ctx, dir); err != nil {
		return err
	}
	return fault.Hit("executor.deletes.after")
}

// writePositions writes one position delete file for each data file, so that none is read for the sake of another one's rows. It takes the place of those that
// were about the same data file alone: however often rows of a file are deleted, there is one to read.
func (d *deleteFiles) writePositions(ctx context.Context, dir string) error {
	for n, t := range d.targets {
		if err := ctx.Err(); err != nil {
			return err
		}
		own, names := t.own()
		carried, err := t.carry(ctx, own)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, d.fileName(fmt.Sprintf("%d-deletes.parquet", n)))
		size, err := deletes.WritePositions(path, t.file.GetName(), t.rows, codecOf(d.task.GetWrite().GetSpec()))
		if err != nil {
			return fmt.Errorf("delete file of %s: %w", t.file.GetName(), err)
		}
		f := t.describe(carried)
		f.Content, f.Format, f.SizeBytes, f.Merged = planv1.FileContent_FILE_CONTENT_POSITION_DELETES, planv1.FileFormat_FILE_FORMAT_PARQUET, size, names
		d.files, d.local = append(d.files, f), append(d.local, path)
	}
	return nil
}

// writeVectors writes all deletion vectors of the task into one Puffin file. A vector takes the place of whatever deletes a file's rows by position: readers look
// at nothing else then.
func (d *deleteFiles) writeVectors(ctx context.Context, dir string) (err error) {
	path := filepath.Join(dir, d.fileName("deletes.puffin"))
	out, err := deletes.CreatePuffin(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Abort()) }()
	for _, t := range d.targets {
		if err := ctx.Err(); err != nil {
			return err
		}
		carried, err := t.carry(ctx, t.file.GetDeletes())
		if err != nil {
			return err
		}
		at, err := out.Add(t.file.GetName(), t.rows)
		if err != nil {
			return fmt.Errorf("deletion vector of %s: %w", t.file.GetName(), err)
		}
		f := t.describe(carried)
		f.Content, f.ContentOffset, f.ContentSize = planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, at.Offset, at.Size
		d.files = append(d.files, f)
	}
	size, err := out.Close()
	if err != nil {
		return err
	}
	for _, f := range d.files {
		f.SizeBytes = size
	}
	d.local = []string{path}
	return nil
}

// place makes the delete files durable under their final names.
func (d *deleteFiles) place(ctx context.Context) ([]*planv1.DataFile, error) {
	if len(d.files) == 0 {
		return nil, nil
	}
	w, err := d.opts.Store.Writer(ctx, d.task.GetWrite().GetPrefix())
	if err != nil {
		return nil, err
	}
	uris := make([]string, len(d.local))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(uploads)
	for n, path := range d.local {
		g.Go(func() error {
			uri, size, err := w.Place(gctx, path, filepath.Base(path))
			if err == nil && size != d.files[n].GetSizeBytes() {
				err = fmt.Errorf("%s has %d bytes in the store and %d in scratch", uri, size, d.files[n].GetSizeBytes())
			}
			uris[n] = uri
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	for n, f := range d.files {
		f.Path = uris[min(n, len(uris)-1)]
	}
	return d.files, w.Finish(ctx)
}
