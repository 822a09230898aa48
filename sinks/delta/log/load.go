package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"
)

// LoadOptions says which version to load; with neither member it is the newest.
type LoadOptions struct {
	Version *int64
	AsOf    *time.Time // the newest version that was committed at or before this time
}

// Load reads a table. A log that does not exist is ErrNoTable, one that cannot be understood ErrCorrupt, a version that it cannot give ErrNoVersion; every other error is
// the store's. The protocol is not checked: see CheckRead.
func Load(ctx context.Context, store Store, o LoadOptions) (*Snapshot, error) {
	target := o.Version
	switch {
	case target != nil && o.AsOf != nil:
		return nil, errors.New("a version and a time were asked for: give one of them")
	case target != nil && *target < 0:
		return nil, fmt.Errorf("%w: version %d", ErrNoVersion, *target)
	case o.AsOf != nil:
		v, err := versionAt(ctx, store, *o.AsOf)
		if err != nil {
			return nil, err
		}
		target = &v
	}
	hint, err := readHint(ctx, store)
	if err != nil {
		return nil, err
	}
	if hint > 0 && (target == nil || hint <= *target) {
		l, err := list(ctx, store, hint)
		if err != nil {
			return nil, err
		}
		s, err := l.load(ctx, store, target, false)
		if err == nil || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNoVersion) && !errors.Is(err, ErrNoTable) {
			return s, err
		}
	}
	return loadListed(ctx, store, target)
}

// loadListed loads by all that lies in the log's directory.
func loadListed(ctx context.Context, store Store, target *int64) (*Snapshot, error) {
	for again := true; ; again = false {
		l, err := list(ctx, store, 0)
		if err != nil {
			return nil, err
		}
		s, err := l.load(ctx, store, target, true)
		// A listing is no snapshot: of two commits made meanwhile it may have seen the second one only, and files may have been cleaned up since.
		var gap *gapError
		if again && (errors.As(err, &gap) || errors.Is(err, fs.ErrNotExist)) {
			continue
		}
		return s, err
	}
}

// load reads by the newest checkpoint that is readable, else by commits alone if the listing is of the whole directory.
func (l *listing) load(ctx context.Context, store Store, target *int64, whole bool) (*Snapshot, error) {
	newest := l.newest()
	switch {
	case newest < 0:
		return nil, fmt.Errorf("%w: nothing in %s", ErrNoTable, Dir)
	case target != nil && *target > newest:
		return nil, fmt.Errorf("%w: %d is asked for, and the newest is %d", ErrNoVersion, *target, newest)
	}
	var failed []error
	for i := range l.checkpoints {
		c := &l.checkpoints[i]
		if target != nil && c.version > *target {
			continue
		}
		seg, err := l.segment(c, target)
		if err != nil {
			return nil, errors.Join(append(failed, err)...) // an older checkpoint has the same gap after it
		}
		s, err := seg.load(ctx, store)
		if !errors.Is(err, errCheckpoint) {
			return s, err
		}
		failed = append(failed, err)
	}
	if !whole {
		return nil, errors.Join(append(failed, fmt.Errorf("%w: no checkpoint where the hint says", ErrCorrupt))...)
	}
	seg, err := l.segment(nil, target)
	if err == nil {
		return seg.load(ctx, store)
	}
	var gap *gapError
	if target != nil && len(failed) == 0 && len(l.commits) > 0 && errors.As(err, &gap) && gap.missing == 0 && *target < l.oldest() {
		return nil, fmt.Errorf("%w: %d is asked for, and the log goes back to %d", ErrNoVersion, *target, l.oldest())
	}
	return nil, errors.Join(append(failed, err)...)
}

// load replays a segment. What is wrong with the checkpoint is errCheckpoint.
func (seg *segment) load(ctx context.Context, store Store) (*Snapshot, error) {
	r := newReplay()
	if seg.checkpoint != nil {
		if err := r.checkpoint(ctx, store, seg.checkpoint); err != nil {
			return nil, err
		}
	}
	last, err := r.commits(ctx, store, seg.commits)
	if err != nil {
		return nil, err
	}
	s, err := r.onto(nil, seg.version)
	if err != nil {
		return nil, err
	}
	return s, seg.stamp(ctx, store, s, last)
}

// stamp sets the snapshot's time; last is the last commit that was read, if any.
func (seg *segment) stamp(ctx context.Context, store Store, s *Snapshot, last *Commit) error {
	switch {
	case last != nil:
		return s.stamp(last)
	case seg.tip == nil: // cleaned up: what is left is the time of the checkpoint
		s.Timestamp = seg.checkpoint.parts[0].mod.UnixMilli()
		return nil
	case !s.InCommitTimestamps():
		s.Timestamp = seg.tip.mod.UnixMilli()
		return nil
	}
	c, err := ReadCommit(ctx, store, seg.version)
	if err != nil {
		return err
	}
	return s.stamp(c)
}

const (
	parallelReads = 16
	// bytesInFlight bounds the commit files that are read ahead: parsed they are about as large.
	bytesInFlight = 64 << 20
)

// commits reads commit files, several at a time, and applies them in their order. It gives the last one.
func (r *replay) commits(ctx context.Context, store Store, files []logFile) (last *Commit, err error) {
	for len(files) > 0 {
		batch, size := 0, int64(0)
		for batch < len(files) && batch < 8*parallelReads && (batch == 0 || size+files[batch].size <= bytesInFlight) {
			size += files[batch].size
			batch++
		}
		read := make([]*Commit, batch)
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(parallelReads)
		for i, f := range files[:batch] {
			g.Go(func() (err error) {
				read[i], err = ReadCommit(ctx, store, f.version)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		for i, c := range read {
			c.Modified = files[i].mod
			r.intern(c.Actions)
			if err := r.commit(c); err != nil {
				return nil, err
			}
			last = c
		}
		files = files[batch:]
	}
	return last, nil
}
