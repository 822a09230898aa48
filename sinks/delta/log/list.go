package log

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// listing is what lies in a log's directory, by version.
type listing struct {
	commits     []logFile // ascending
	checkpoints []checkpoint
}

type logFile struct {
	version int64
	name    string
	size    int64
	mod     time.Time
}

// checkpoint is a complete one: a file, or all parts of one.
type checkpoint struct {
	version int64
	parts   []logFile
}

var logName = regexp.MustCompile(`^(\d{20})\.(?:(json)|checkpoint\.parquet|checkpoint\.(\d{10})\.(\d{10})\.parquet|checkpoint\.[0-9A-Fa-f-]{36}\.(?:json|parquet))$`)

// list reads a log's directory from a version on. The checkpoints come newest first; of one version in the order of preference: one file before parts.
func list(ctx context.Context, store Store, from int64) (*listing, error) {
	infos, err := store.List(ctx, Dir, fmt.Sprintf("%s/%020d", Dir, from))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", Dir, err)
	}
	l := &listing{}
	type set struct{ version, parts int64 }
	parts := map[set][]logFile{}
	for _, info := range infos {
		m := logName.FindStringSubmatch(path.Base(info.Name))
		if m == nil {
			continue
		}
		version, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || version < from {
			continue // more than 63 bits is no version
		}
		f := logFile{version: version, name: info.Name, size: info.Size, mod: info.Modified}
		switch {
		case m[2] != "":
			l.commits = append(l.commits, f)
		case m[3] == "":
			l.checkpoints = append(l.checkpoints, checkpoint{version, []logFile{f}})
		default:
			part, _ := strconv.ParseInt(m[3], 10, 64)
			of, _ := strconv.ParseInt(m[4], 10, 64)
			k := set{version, of}
			if part == int64(len(parts[k]))+1 { // names are sorted, so the parts of a complete set come in their order
				parts[k] = append(parts[k], f)
			}
			if part == of && int64(len(parts[k])) == of {
				l.checkpoints = append(l.checkpoints, checkpoint{version, parts[k]})
			}
		}
	}
	l.sort()
	return l, nil
}

// sort brings the newest checkpoint to the front, one file before parts of the same version, and commits into ascending order.
func (l *listing) sort() {
	slices.SortStableFunc(l.commits, func(a, b logFile) int { return cmp.Compare(a.version, b.version) })
	slices.SortStableFunc(l.checkpoints, func(a, b checkpoint) int {
		return cmp.Or(cmp.Compare(b.version, a.version), cmp.Compare(len(a.parts), len(b.parts)))
	})
}

// segment is what has to be read for a version: a checkpoint, nil if all is in commits, and the commits after it.
type segment struct {
	version    int64
	checkpoint *checkpoint
	commits    []logFile
	tip        *logFile // the commit file of version, nil if it has been cleaned up
}

// segment finds what gives the newest version, or the one asked for, with a checkpoint (nil: with commits only). A gap is an error that names the version.
func (l *listing) segment(c *checkpoint, target *int64) (*segment, error) {
	s := &segment{checkpoint: c, version: -1}
	if c != nil {
		s.version = c.version
	}
	for i := range l.commits {
		f := &l.commits[i]
		if target != nil && f.version > *target {
			break
		}
		if f.version == s.version {
			s.tip = f
		}
		if f.version <= s.version {
			continue
		}
		if f.version != s.version+1 {
			return nil, &gapError{s.version + 1, f.version}
		}
		s.version, s.tip = f.version, f
		s.commits = append(s.commits, *f)
	}
	if target != nil && s.version != *target {
		return nil, &gapError{s.version + 1, *target}
	}
	return s, nil
}

// gapError: the log lacks a version below one that it has.
type gapError struct{ missing, after int64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("%v: version %d is missing (%s), though there is version %d, and no complete checkpoint helps", ErrCorrupt, e.missing, CommitName(e.missing), e.after)
}

func (e *gapError) Unwrap() error { return ErrCorrupt }

// newest is the newest version that the log has, -1 if none.
func (l *listing) newest() int64 {
	v := int64(-1)
	if n := len(l.commits); n > 0 {
		v = l.commits[n-1].version
	}
	if len(l.checkpoints) > 0 {
		v = max(v, l.checkpoints[0].version)
	}
	return v
}

// oldest is the oldest version that can be loaded: 0 by commits, else that of the oldest checkpoint.
func (l *listing) oldest() int64 {
	switch n := len(l.checkpoints); {
	case len(l.commits) > 0 && l.commits[0].version == 0:
		return 0
	case n > 0:
		return l.checkpoints[n-1].version
	}
	return l.newest() + 1
}
