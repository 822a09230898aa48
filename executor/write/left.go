package write

import (
	"context"
	"fmt"
	"os"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
)

// Left are files of the task's only source that were left in their store. Their paths have footers, and no rows: the view of the source must not be read before Whole has said
// where it can be.
type Left interface {
	// Object is the file whose footer is at path; nil: all of it is there.
	Object(path string) *splice.Object
	// Whole fetches what was left of files, and answers them with the paths that have all of them.
	Whole(ctx context.Context, files []*planv1.PinnedFile) ([]*planv1.PinnedFile, error)
}

func filesOf(src *planv1.Source) []*planv1.PinnedFile {
	if t := src.GetTable(); t != nil {
		return t.GetFiles()
	}
	return src.GetFile().GetFiles()
}

func (s *splicer) openFile(f *planv1.PinnedFile) (*splice.Input, error) {
	if s.left != nil {
		if from := s.left.Object(f.GetPath()); from != nil {
			return splice.OpenObject(f.GetPath(), from)
		}
	}
	return splice.Open(f.GetPath())
}

// fetchAll has the source's view read its files, all of them.
func (p *plan) fetchAll(ctx context.Context, inst *duckdb.Instance, left Left) error {
	if left == nil {
		return nil
	}
	return p.fetch(ctx, inst, left, filesOf(p.task.GetSources()[0]))
}

// fetch has the source's view read these files, or parts of files.
func (p *plan) fetch(ctx context.Context, inst *duckdb.Instance, left Left, files []*planv1.PinnedFile) error {
	whole, err := left.Whole(ctx, files)
	if err != nil {
		return err
	}
	src := p.task.GetSources()[0]
	if _, err := inst.Conn().ExecContext(ctx, "DROP VIEW "+duckdb.Ident(src.GetView())); err != nil {
		return err
	}
	return inst.BindSources(ctx, []*planv1.Source{narrowed(src, whole)})
}

// sketch makes a file of the size of one that a store will make, with its footer and these columns, and nothing else: what reads no other column reads what will be there.
func sketch(f *written, leaves []int) (err error) {
	out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	pieces := f.stored.Pieces
	end := pieces[len(pieces)-1].Data
	if _, err := out.WriteAt(pieces[0].Data, 0); err != nil {
		return err
	}
	if _, err := out.WriteAt(end, f.size-int64(len(end))); err != nil {
		return err
	}
	for _, n := range leaves {
		for _, c := range f.stored.Chunks[n] {
			b, err := c.Read()
			if err != nil {
				return fmt.Errorf("read a column of copied row groups: %w", err)
			}
			if _, err := out.WriteAt(b, c.At); err != nil {
				return err
			}
		}
	}
	return nil
}
