package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"time"
)

// Snapshot is a table at one version. It is immutable and safe for concurrent use; what it gives out belongs to it.
type Snapshot struct {
	Version int64
	// Timestamp is when the version was committed, in milliseconds since 1970: its in-commit timestamp where the table has them, else the modification
	// time of the commit file, and where nobody listed that, what its commitInfo says.
	Timestamp int64
	Protocol  Protocol
	Metadata  Metadata

	adds    fileSet[*Add]
	removes fileSet[*Remove]
	size    int64
	txns    map[string]Txn
	domains map[string]DomainMetadata
}

// Files gives the live files in the order of their paths.
func (s *Snapshot) Files() iter.Seq[*Add] { return s.adds.all() }

// Tombstones gives the removed files that the log still knows, expired or not, in the order of their paths.
func (s *Snapshot) Tombstones() iter.Seq[*Remove] { return s.removes.all() }

// NumFiles is the number of live files.
func (s *Snapshot) NumFiles() int { return s.adds.n }

// Size is the size of all live files in bytes.
func (s *Snapshot) Size() int64 { return s.size }

// File finds a live file by its decoded path and the ID of its deletion vector, which is empty if it has none.
func (s *Snapshot) File(path, dvID string) (*Add, bool) {
	return s.adds.get(fileKey{pathKey(path), dvID})
}

// Txn says how far an application has come.
func (s *Snapshot) Txn(appID string) (Txn, bool) {
	t, ok := s.txns[appID]
	return t, ok
}

// Domains gives the domains that are not removed.
func (s *Snapshot) Domains() map[string]DomainMetadata { return maps.Clone(s.domains) }

// InCommitTimestamps tells whether each commit of the table has to carry its time.
func (s *Snapshot) InCommitTimestamps() bool {
	return s.Protocol.writes(featureInCommitTimestamp) && isTrue(s.Metadata.Configuration["delta.enableInCommitTimestamps"])
}

// Commit is the content of one commit file.
type Commit struct {
	Version  int64
	Modified time.Time // of the file; zero where nobody listed it
	Actions  []Action
}

// CommitName is the name of a version's commit file.
func CommitName(version int64) string { return fmt.Sprintf("%s/%020d.json", Dir, version) }

// ReadCommit reads one commit file; Modified is left out. A missing one is fs.ErrNotExist.
func ReadCommit(ctx context.Context, store Store, version int64) (*Commit, error) {
	if version < 0 {
		return nil, fmt.Errorf("%w: version %d", ErrNoVersion, version)
	}
	data, err := store.Get(ctx, CommitName(version))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CommitName(version), err)
	}
	c := &Commit{Version: version}
	if c.Actions, err = ParseCommit(data); err != nil {
		return nil, fmt.Errorf("%s: %w", CommitName(version), err)
	}
	return c, nil
}

// Info gives the commit's commitInfo, nil if it has none.
func (c *Commit) Info() *CommitInfo {
	for i := range c.Actions {
		if info := c.Actions[i].CommitInfo; info != nil {
			return info
		}
	}
	return nil
}

// NewSnapshot replays the actions of a version from nothing: what a commit 0 or a checkpoint of it holds.
func NewSnapshot(version, timestamp int64, actions []Action) (*Snapshot, error) {
	r := newReplay()
	if err := r.commit(&Commit{Version: version, Actions: actions}); err != nil {
		return nil, err
	}
	s, err := r.onto(nil, version)
	if err != nil {
		return nil, err
	}
	s.Timestamp = timestamp
	return s, nil
}

// With is the snapshot after one more commit, which has to be that of the next version.
func (s *Snapshot) With(c Commit) (*Snapshot, error) {
	if s.Version == math.MaxInt64 || c.Version != s.Version+1 {
		return nil, fmt.Errorf("commit %d does not follow version %d", c.Version, s.Version)
	}
	r := newReplay()
	if err := r.commit(&c); err != nil {
		return nil, err
	}
	next, err := r.onto(s, c.Version)
	if err != nil {
		return nil, err
	}
	return next, next.stamp(&c)
}

// stamp sets the time of the version from its commit.
func (s *Snapshot) stamp(c *Commit) error {
	info := c.Info()
	switch {
	case s.InCommitTimestamps():
		if info == nil || info.InCommitTimestamp == nil {
			return fmt.Errorf("%w: %s has no inCommitTimestamp, though the table asks for one", ErrCorrupt, CommitName(c.Version))
		}
		s.Timestamp = *info.InCommitTimestamp
	case !c.Modified.IsZero():
		s.Timestamp = c.Modified.UnixMilli()
	case info != nil && info.Timestamp != nil:
		s.Timestamp = *info.Timestamp
	}
	return nil
}

// Advance reads the commits after the snapshot and gives the newest one with the commits in their order. It asks for one after the other until one is missing, and lists
// nothing: the caller makes sure that the log is still the one that the snapshot is of, since a table may have been dropped and made anew. The snapshot
// itself comes back where there is nothing new.
func (s *Snapshot) Advance(ctx context.Context, store Store) (*Snapshot, []Commit, error) {
	var commits []Commit
	at := s
	for at.Version < math.MaxInt64 {
		c, err := ReadCommit(ctx, store, at.Version+1)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if at, err = at.With(*c); err != nil {
			return nil, nil, err
		}
		commits = append(commits, *c)
	}
	return at, commits, nil
}
