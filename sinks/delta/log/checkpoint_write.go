package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// WriteCheckpoint writes a classic checkpoint of a snapshot, and then the hint, if no later checkpoint is in it. Another checkpoint of the version is left as it is. An
// error leaves the table as good as it was: a commit must not fail by it. drop says which transaction identifiers are left out beside those that have expired.
func WriteCheckpoint(ctx context.Context, store Store, s *Snapshot, drop ...func(Txn) bool) error {
	if s.Metadata.ID == "" || s.Version < 0 {
		return errors.New("a checkpoint of a snapshot that was not loaded")
	}
	if err := CheckWrite(s.Protocol, s.Metadata); err != nil {
		return err
	}
	actions := s.retained(time.Now(), drop)
	var body bytes.Buffer
	if err := writeParquet(&body, s, actions); err != nil {
		return fmt.Errorf("checkpoint of version %d: %w", s.Version, err)
	}
	name := fmt.Sprintf("%s/%020d.checkpoint.parquet", Dir, s.Version)
	size := body.Len()
	err := store.PutIfAbsent(ctx, name, &body)
	if errors.Is(err, fs.ErrExist) {
		return nil // and the hint is the business of whoever wrote that, since it says how large it is
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	hint := fmt.Sprintf(`{"version":%d,"size":%d,"sizeInBytes":%d,"numOfAddFiles":%d}`, s.Version, len(actions), size, s.NumFiles())
	return advanceHint(ctx, store, s.Version, []byte(hint))
}

// hintTries bounds how often a hint is read again that others replace meanwhile.
const hintTries = 10

// advanceHint replaces the hint by a later one, whatever others do at the same time.
func advanceHint(ctx context.Context, store Store, version int64, hint []byte) error {
	for range hintTries {
		old, err := store.Get(ctx, Hint)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", Hint, err)
		}
		if err == nil && parseHint(old) >= version {
			return nil
		}
		if err == nil && old == nil {
			old = []byte{}
		}
		if err = store.ReplaceHint(ctx, old, hint); !errors.Is(err, fs.ErrExist) {
			if err != nil {
				err = fmt.Errorf("%s: %w", Hint, err)
			}
			return err
		}
	}
	return nil // somebody is always faster: the hint is as good as theirs
}

// retained gives the rows of a checkpoint ("Checkpoints"): neither commitInfo nor changes, and no tombstone that has expired.
func (s *Snapshot) retained(now time.Time, drop []func(Txn) bool) []Action {
	out := make([]Action, 0, 2+len(s.txns)+len(s.domains)+s.adds.n+s.removes.n)
	out = append(out, Action{Protocol: &s.Protocol}, Action{Metadata: &s.Metadata})
	drop = append(slices.Clone(drop), s.forgotten(now))
	for _, id := range slices.Sorted(maps.Keys(s.txns)) {
		if t := s.txns[id]; !slices.ContainsFunc(drop, func(drop func(Txn) bool) bool { return drop(t) }) {
			out = append(out, Action{Txn: &t})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.domains)) {
		d := s.domains[name]
		out = append(out, Action{DomainMetadata: &d})
	}
	expired := s.expired(now)
	for m := range s.Tombstones() {
		if !expired(m) {
			out = append(out, Action{Remove: m})
		}
	}
	for a := range s.Files() {
		out = append(out, Action{Add: a})
	}
	return out
}
