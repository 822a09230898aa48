package delta

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/sinks/delta/log"
)

const (
	defaultInterval = 10
	// checkpointTime bounds what a checkpoint may take of the commit that it follows.
	checkpointTime = time.Minute
	// markerAge is how long checkpoints keep the txn actions of jobs, if the table does not say: no job is settled later.
	markerAge = 30 * 24 * time.Hour
)

// manyFiles is how many files a commit adds at most for the snapshot after it to be made at once. That of more takes longer than the answer may, and memory; whoever asks
// for the table next reads the commit.
const manyFiles = 5000

// landedBody is landed for a commit of which the adds are staged.
func (s *Sink) landedBody(ctx context.Context, t *table, version int64, b *body) {
	if len(b.batch.adds) > manyFiles {
		if !t.missing && version%interval(t.Snapshot) == 0 {
			if next, err := s.newest(ctx, t.store); err == nil {
				s.checkpoint(ctx, t.store, next)
			}
		}
		return
	}
	actions, err := b.actions()
	if err != nil {
		s.tables.drop(t.location)
		return
	}
	s.landed(ctx, t, log.Commit{Version: version, Actions: actions})
}

// landed keeps the snapshot that a commit has made, and writes a checkpoint of it where one is due. What fails here fails no commit: the next call reads the log,
// and the next checkpoint is due soon.
func (s *Sink) landed(ctx context.Context, t *table, c log.Commit) {
	next, err := advanced(t, c)
	if err != nil {
		s.tables.drop(t.location)
		return
	}
	if err := s.remember(ctx, t.store, next); err != nil {
		s.tables.drop(t.location)
	}
	s.checkpoint(ctx, t.store, next)
}

// checkpoint writes the checkpoint of a version if one is due there.
func (s *Sink) checkpoint(ctx context.Context, st *store, next *log.Snapshot) {
	if next.Version == 0 || next.Version%interval(next) != 0 || hit("delta.checkpoint.before") != nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, checkpointTime)
	defer stop()
	if err := log.WriteCheckpoint(ctx, st, next, s.old); err != nil {
		_ = st.host.Log(ctx, "warn", "a checkpoint of a Delta table could not be written; the commit has landed all the same", map[string]string{
			"version": versionOf(next.Version), "location": st.location, "error": err.Error(),
		})
	}
}

// advanced is the snapshot after the commit.
func advanced(t *table, c log.Commit) (*log.Snapshot, error) {
	if t.missing {
		return log.NewSnapshot(c.Version, *c.Info().Timestamp, c.Actions)
	}
	return t.With(c)
}

// old reports whether a txn action of a job is too old to be asked for.
func (s *Sink) old(t log.Txn) bool {
	return strings.HasPrefix(t.AppID, markerApp) && t.LastUpdated != nil && *t.LastUpdated < s.now().Add(-markerAge).UnixMilli()
}

// interval is the number of versions from one checkpoint to the next.
func interval(t *log.Snapshot) int64 {
	if n, err := strconv.ParseInt(t.Metadata.Configuration[propCheckpointInterval], 10, 64); err == nil && n > 0 {
		return n
	}
	return defaultInterval
}
