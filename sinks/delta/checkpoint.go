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
	if next.Version == 0 || next.Version%interval(next) != 0 || hit("delta.checkpoint.before") != nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, checkpointTime)
	defer stop()
	if err := log.WriteCheckpoint(ctx, t.store, next, s.old); err != nil {
		_ = t.store.host.Log(ctx, "warn", "a checkpoint of a Delta table could not be written; the commit has landed all the same", map[string]string{
			"version": versionOf(next.Version), "location": t.location, "error": err.Error(),
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
