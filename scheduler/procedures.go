package scheduler

import (
	"strconv"

	"github.com/apache/iceberg-go/table"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

func init() {
	register("rollback_to_snapshot", toAlter, ofSnapshots(setSnapshot), param{"snapshot_id", argInt, true})
	register("rollback_to_timestamp", toAlter, ofSnapshots(setSnapshot), param{"timestamp", argTime, true})
	register("set_current_snapshot", toAlter, ofSnapshots(setSnapshot), param{"snapshot_id", argInt, false}, param{"ref", argText, false})
	register("cherrypick_snapshot", toAlter, ofSnapshots(cherryPick), param{"snapshot_id", argInt, true})
	register("publish_changes", toAlter, ofSnapshots(cherryPick), param{"wap_id", argText, true})
	register("fast_forward", toAlter, ofSnapshots(fastForward), param{"branch", argText, true}, param{"to", argText, true})
	register("ancestors_of", toRead, ofSnapshots(ancestorsOf), param{"snapshot_id", argInt, false})
}

// changed makes one change and answers some of the values that it found, in a row.
func (s *Server) changed(j *job, c *procedureCall, change *sinkv1.Change, columns ...string) error {
	resp, err := s.alter(j, c.table, &sinkv1.AlterTableRequest{Changes: []*sinkv1.Change{change}}, nil)
	if err != nil {
		return err
	}
	return s.answerFound(j, resp, columns...)
}

// answerFound answers some of the values that changes have found.
func (s *Server) answerFound(j *job, resp *sinkv1.AlterTableResponse, columns ...string) error {
	r := make(row, len(columns))
	names := make([]string, len(columns))
	for i, name := range columns {
		text, ok := resp.Values[name]
		names[i] = name + ":int"
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			r[i] = n
		} else if ok {
			names[i], r[i] = name, text
		}
	}
	return s.answer(j, names, []row{r})
}

// setSnapshot is rollback_to_snapshot, rollback_to_timestamp and set_current_snapshot.
func setSnapshot(s *Server, j *job, c *procedureCall) error {
	set := &sinkv1.SetSnapshot{Ancestor: c.name != "set_current_snapshot", Ref: c.text("ref")}
	id, byID := c.int("snapshot_id")
	if byID {
		set.Snapshot = strconv.FormatInt(id, 10)
	}
	if t, ok := c.time("timestamp"); ok {
		ms := t.UnixMilli()
		set.BeforeMillis = &ms
	}
	if c.name == "set_current_snapshot" && byID == (set.Ref != "") {
		return fail(codeUser, "", "set_current_snapshot: give either snapshot_id or ref")
	}
	return s.changed(j, c, &sinkv1.Change{Kind: &sinkv1.Change_SetSnapshot{SetSnapshot: set}}, "previous_snapshot_id", "current_snapshot_id")
}

func fastForward(s *Server, j *job, c *procedureCall) error {
	set := &sinkv1.SetRef{Name: c.text("branch"), From: c.text("to"), FastForward: true}
	return s.changed(j, c, &sinkv1.Change{Kind: &sinkv1.Change_SetRef{SetRef: set}}, "branch_updated", "previous_ref", "updated_ref")
}

// ancestorsOf lists a snapshot and those that it was made from, the newest first, as far as the table still has them.
func ancestorsOf(s *Server, j *job, c *procedureCall) error {
	t, err := c.table.entry.catalog.Load(j.ctx, c.table.ident)
	if err != nil {
		return catalogError(err, "table "+c.table.String())
	}
	snap := t.Metadata.CurrentSnapshot()
	if id, ok := c.int("snapshot_id"); ok {
		if snap = t.Metadata.SnapshotByID(id); snap == nil {
			return fail(codeUser, "SHOW SNAPSHOTS FROM "+c.table.String()+" lists them", "table %s has no snapshot %d", c.table, id)
		}
	}
	var rows []row
	for seen := map[int64]bool{}; snap != nil && !seen[snap.SnapshotID]; snap = snapshotParent(t.Metadata, snap) {
		seen[snap.SnapshotID] = true
		rows = append(rows, row{snap.SnapshotID, snap.TimestampMs})
	}
	return s.answer(j, []string{"snapshot_id:int", "timestamp:int"}, rows)
}

func snapshotParent(md table.Metadata, s *table.Snapshot) *table.Snapshot {
	if s.ParentSnapshotID == nil {
		return nil
	}
	return md.SnapshotByID(*s.ParentSnapshotID)
}
