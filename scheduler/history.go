package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// historyColumns are those of DESCRIBE HISTORY, by Delta's names. Maps are JSON objects.
var historyColumns = []string{
	"version:int", "timestamp", "userName", "operation", "operationParameters", "operationMetrics", "readVersion:int", "isolationLevel", "isBlindAppend:bool",
	"engineInfo", "userMetadata",
}

// timeText is how answers show a time, in UTC.
const timeText = "2006-01-02 15:04:05.000"

// describeHistory answers DESCRIBE HISTORY: the table's commits, the newest first.
func (s *Server) describeHistory(j *job, st *sql.DescribeHistory) error {
	t, err := s.resolveTable(st.Table.Strings(), j, toRead)
	if err != nil {
		return err
	}
	p, err := s.steadyPlugin(j.ctx, t)
	if err != nil {
		return err
	}
	switch {
	case slices.Contains(p.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_HISTORY):
	case t.entry.catalog != nil:
		return s.snapshotHistory(j, t, st.Limit)
	default:
		return fail(codeUser, "", "DESCRIBE HISTORY is not supported in catalog %s: its sink %s tells no history", t.entry.name, t.entry.sink)
	}
	rows, err := s.history(j.ctx, j, t, st.Limit)
	if other := s.respelt(j.ctx, t, err); other != nil {
		rows, err = s.history(j.ctx, j, other, st.Limit)
	}
	if err != nil {
		return err
	}
	return s.answer(j, historyColumns, rows)
}

func (s *Server) history(ctx context.Context, j *job, t *target, limit int64) (rows []row, err error) {
	err = s.overCrashes(ctx, "History", func() error {
		rows, err = s.historyOnce(ctx, j, t, limit)
		return err
	})
	return rows, err
}

func (s *Server) historyOnce(ctx context.Context, j *job, t *target, limit int64) ([]row, error) {
	lease, sink, err := s.readLease(ctx, j.id, t)
	if err != nil {
		return nil, err
	}
	defer lease.Close()
	most := int32(min(limit, 1<<31-1)) //nolint:gosec // it is
	st, err := sink.History(ctx, &sinkv1.HistoryRequest{Lease: lease.Token(), Table: t.ref(), Limit: most})
	if err != nil {
		return nil, s.sinkFailure(ctx, t, err)
	}
	var rows []row
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, s.sinkFailure(ctx, t, err)
		}
		for _, e := range m.GetEntries() {
			if limit > 0 && int64(len(rows)) == limit {
				return rows, nil
			}
			r, err := historyRow(e)
			if err != nil {
				return nil, fail(codeInternal, "", "table %s: the sink %s tells of version %q: %w", t, t.entry.sink, e.GetVersion(), err)
			}
			rows = append(rows, r)
		}
	}
}

func historyRow(e *sinkv1.HistoryEntry) (row, error) {
	version, err := strconv.ParseInt(e.GetVersion(), 10, 64)
	if err != nil {
		return nil, err
	}
	var at, blind any
	if e.TimestampMillis != nil {
		at = time.UnixMilli(e.GetTimestampMillis()).UTC().Format(timeText)
	}
	if e.BlindAppend != nil {
		blind = e.GetBlindAppend()
	}
	return row{
		version, at, orNil(e.GetUser()), orNil(e.GetOperation()), mapText(e.GetParameters()), mapText(e.GetMetrics()), number(e.ReadVersion),
		orNil(e.GetIsolationLevel()), blind, orNil(e.GetEngine()), orNil(e.GetUserMetadata()),
	}, nil
}

// mapText is a map as a JSON object, its keys in order; nil: there is nothing in it.
func mapText(m map[string]string) any {
	if len(m) == 0 {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil { // strings are never refused
		return nil
	}
	return string(b)
}

// snapshotHistory is the history of an Iceberg table: its snapshots, whose summaries are what is measured. The version that a commit has read is its parent.
func (s *Server) snapshotHistory(j *job, t *target, limit int64) error {
	t, err := s.existingTable(j, t)
	if err != nil {
		return err
	}
	loaded, err := t.entry.catalog.Load(j.ctx, t.ident)
	if err != nil {
		return catalogError(err, "table "+t.String())
	}
	var rows []row
	for _, snap := range slices.Backward(loaded.Metadata.Snapshots()) {
		if limit > 0 && int64(len(rows)) == limit {
			break
		}
		operation, summary := "", map[string]string{}
		if snap.Summary != nil {
			operation, summary = string(snap.Summary.Operation), snap.Summary.Properties
		}
		rows = append(rows, row{
			snap.SnapshotID, time.UnixMilli(snap.TimestampMs).UTC().Format(timeText), nil, orNil(operation), nil, mapText(summary), number(snap.ParentSnapshotID),
			nil, nil, orNil(summary["engine-name"]), nil,
		})
	}
	return s.answer(j, historyColumns, rows)
}
