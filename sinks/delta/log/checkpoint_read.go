package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"
)

// errCheckpoint is wrapped by errors of a checkpoint's content: an older one, or commits, may give the same table.
var errCheckpoint = fmt.Errorf("%w: unreadable checkpoint", ErrCorrupt)

// wholeBytes is up to what size an object is read in one piece: a store answers that faster than a request for each column.
const wholeBytes = 32 << 20

const parallelParts = 4

// checkpoint replays a checkpoint. Of what is wrong with its content, or is missing, the error is errCheckpoint.
func (r *replay) checkpoint(ctx context.Context, store Store, c *checkpoint) error {
	names := make([]string, len(c.parts))
	for i, p := range c.parts {
		names[i] = p.name
	}
	sidecars, err := r.parts(ctx, store, names)
	if err != nil {
		return err
	}
	if len(sidecars) > 0 {
		more, err := r.parts(ctx, store, sidecars)
		if err != nil {
			return err
		}
		if len(more) > 0 {
			return fmt.Errorf("%w: %s: a sidecar names sidecars", errCheckpoint, names[0])
		}
	}
	switch {
	case r.protocol == nil:
		return fmt.Errorf("%w: %s has no protocol action", errCheckpoint, names[0])
	case r.metadata == nil:
		return fmt.Errorf("%w: %s has no metaData action", errCheckpoint, names[0])
	}
	return nil
}

// parts replays files of a checkpoint, and gives the names of the sidecars in them.
func (r *replay) parts(ctx context.Context, store Store, names []string) (sidecars []string, err error) {
	for len(names) > 0 {
		batch := names[:min(parallelParts, len(names))]
		names = names[len(batch):]
		read := make([][]Action, len(batch))
		g, ctx := errgroup.WithContext(ctx)
		for i, name := range batch {
			g.Go(func() (err error) {
				read[i], err = readPart(ctx, store, name)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for i, actions := range read {
			r.intern(actions)
			for j := range actions {
				if s := actions[j].Sidecar; s != nil {
					sidecars = append(sidecars, Dir+"/_sidecars/"+path.Base(s.Path))
					continue
				}
				if err := r.checkpointed(&actions[j]); err != nil {
					return nil, fmt.Errorf("%w: %s: %w", errCheckpoint, batch[i], err)
				}
			}
		}
	}
	return sidecars, nil
}

// checkpointed takes an action of a checkpoint, in which the same file must not be both there and removed.
func (r *replay) checkpointed(a *Action) error {
	switch {
	case a.Add != nil:
		if r.removes[a.Add.key()] != nil {
			return fmt.Errorf("%q is both added and removed", a.Add.Path)
		}
		r.file(a)
	case a.Remove != nil:
		if r.adds[a.Remove.key()] != nil {
			return fmt.Errorf("%q is both added and removed", a.Remove.Path)
		}
		r.file(a)
	default:
		r.other(a)
	}
	return nil
}

func readPart(ctx context.Context, store Store, name string) ([]Action, error) {
	o, err := store.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: %w", errCheckpoint, name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer o.Close()
	in := &attentive{ReaderAt: o}
	var at readerAtSeeker = io.NewSectionReader(in, 0, o.Size())
	if strings.HasSuffix(name, ".json") || o.Size() <= wholeBytes {
		data := make([]byte, o.Size())
		if n, err := in.ReadAt(data, 0); err != nil && n < len(data) {
			if in.err == nil {
				return nil, fmt.Errorf("%w: %s is cut", errCheckpoint, name)
			}
			return nil, fmt.Errorf("%s: %w", name, in.err)
		}
		if strings.HasSuffix(name, ".json") {
			actions, err := ParseCommit(data)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", errCheckpoint, name, err)
			}
			return actions, nil
		}
		at = bytes.NewReader(data)
	}
	actions, err := parseParquet(ctx, at, o.Size())
	switch {
	case err == nil:
		return actions, nil
	case in.err != nil:
		return nil, fmt.Errorf("%s: %w", name, in.err)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: %s: %w", errCheckpoint, name, err)
}

type readerAtSeeker interface {
	io.ReaderAt
	io.Seeker
}

// attentive remembers the first failure to read, which is the store's and says nothing about the content. It is for one goroutine.
type attentive struct {
	io.ReaderAt
	err error
}

func (a *attentive) ReadAt(p []byte, off int64) (int, error) {
	n, err := a.ReaderAt.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) && a.err == nil {
		a.err = err
	}
	return n, err
}
