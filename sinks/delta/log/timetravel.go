package log

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"time"
)

// HistoryEntry is a version that the log still has the commit of.
type HistoryEntry struct {
	Version   int64
	Timestamp int64       // milliseconds since 1970, as Snapshot.Timestamp; ascending with the versions
	Info      *CommitInfo // nil if the commit has none
}

// History gives the newest versions first, at most limit of them (0: all). Commits that have been cleaned up are left out.
func History(ctx context.Context, store Store, limit int) ([]HistoryEntry, error) {
	l, err := list(ctx, store, 0)
	if err != nil {
		return nil, err
	}
	if l.newest() < 0 {
		return nil, fmt.Errorf("%w: nothing in %s", ErrNoTable, Dir)
	}
	s, err := loadListed(ctx, store, nil)
	if err != nil {
		return nil, err
	}
	times := fileTimes(l.commits)
	enabled := ictSince(s)
	var out []HistoryEntry
	for i, f := range slices.Backward(l.commits) {
		if limit > 0 && len(out) == limit {
			break
		}
		info, err := readInfo(ctx, store, f)
		if errors.Is(err, fs.ErrNotExist) {
			break // cleaned up meanwhile, with all before it
		}
		if err != nil {
			return nil, err
		}
		e := HistoryEntry{Version: f.version, Timestamp: times[i], Info: info}
		if f.version >= enabled {
			if e.Timestamp, err = inCommitTime(f, info); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// fileTimes are the modification times of commit files, moved where a later one is not after an earlier one, as Spark does: a copied log would be travelled through
// in another order than its versions.
func fileTimes(commits []logFile) []int64 {
	out := make([]int64, len(commits))
	for i, f := range commits {
		if out[i] = f.mod.UnixMilli(); i > 0 {
			out[i] = max(out[i], out[i-1]+1)
		}
	}
	return out
}

// ictSince is the first version with an in-commit timestamp: one after the newest where the table has none, 0 where it always had.
func ictSince(s *Snapshot) int64 {
	if !s.InCommitTimestamps() {
		return s.Version + 1
	}
	v, err := strconv.ParseInt(s.Metadata.Configuration["delta.inCommitTimestampEnablementVersion"], 10, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}

func inCommitTime(f logFile, info *CommitInfo) (int64, error) {
	if info == nil || info.InCommitTimestamp == nil {
		return 0, fmt.Errorf("%w: %s has no inCommitTimestamp, though the table asks for one", ErrCorrupt, f.name)
	}
	return *info.InCommitTimestamp, nil
}

// infoBytes is how much of a commit is read for its first line.
const infoBytes = 64 << 10

// readInfo reads the commitInfo of a commit, which most writers put first; only where it is not, all of the commit is read.
func readInfo(ctx context.Context, store Store, f logFile) (*CommitInfo, error) {
	o, err := store.Open(ctx, f.name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	defer o.Close()
	head := make([]byte, min(o.Size(), infoBytes))
	if n, err := o.ReadAt(head, 0); err != nil && (!errors.Is(err, io.EOF) || n < len(head)) {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	if line, _, whole := bytes.Cut(head, []byte{'\n'}); whole || int64(len(head)) == o.Size() {
		if actions, err := ParseCommit(line); err == nil && len(actions) == 1 && actions[0].CommitInfo != nil {
			return actions[0].CommitInfo, nil
		}
	}
	c, err := ReadCommit(ctx, store, f.version)
	if err != nil {
		return nil, err
	}
	return c.Info(), nil
}

// versionAt is the newest version that was committed at or before a time. A time before all of them is ErrNoVersion; one after all of them is the newest.
func versionAt(ctx context.Context, store Store, at time.Time) (int64, error) {
	s, err := loadListed(ctx, store, nil)
	if err != nil {
		return 0, err
	}
	l, err := list(ctx, store, 0)
	if err != nil {
		return 0, err
	}
	oldest := l.oldest()
	commits := slices.DeleteFunc(slices.Clone(l.commits), func(f logFile) bool { return f.version > s.Version })
	times := fileTimes(commits) // from the first file on, so that times do not depend on what has been cleaned up after it
	first := slices.IndexFunc(commits, func(f logFile) bool { return f.version >= oldest })
	if first < 0 {
		return 0, fmt.Errorf("%w: no commit file is left that says when a version was committed", ErrNoVersion)
	}
	commits, times = commits[first:], times[first:]
	enabled := ictSince(s)
	split, _ := slices.BinarySearchFunc(commits, enabled, func(f logFile, v int64) int { return cmp.Compare(f.version, v) })
	want := at.UnixMilli()
	when := func(i int) (int64, error) {
		info, err := readInfo(ctx, store, commits[i])
		if err != nil {
			return 0, err
		}
		return inCommitTime(commits[i], info)
	}
	earliest := times[0]
	if split < len(commits) {
		begin, err := when(split)
		if err != nil {
			return 0, err
		}
		if begin <= want {
			return searchInCommit(commits, split, want, when)
		}
		if split == 0 {
			earliest = begin
		}
	}
	i, exact := slices.BinarySearch(times[:split], want)
	if !exact {
		i--
	}
	if i < 0 {
		return 0, fmt.Errorf("%w: none was committed at or before %s; the oldest left is %d of %s", ErrNoVersion, at.UTC().Format(time.RFC3339Nano), commits[0].version,
			time.UnixMilli(earliest).UTC().Format(time.RFC3339Nano))
	}
	return commits[i].version, nil
}

// searchInCommit finds the last commit from low on whose time is not after want; that of low is not.
func searchInCommit(commits []logFile, low int, want int64, when func(int) (int64, error)) (int64, error) {
	high := len(commits)
	for high-low > 1 {
		mid := low + (high-low)/2
		t, err := when(mid)
		if err != nil {
			return 0, err
		}
		if t <= want {
			low = mid
		} else {
			high = mid
		}
	}
	return commits[low].version, nil
}
