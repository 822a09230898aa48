package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/scheduler/sql"
)

// showProperties answers SHOW TBLPROPERTIES.
func (s *Server) showProperties(j *job, st *sql.ShowProperties) error {
	t, d, err := s.described(j, st.Table)
	if err != nil {
		return err
	}
	var rows []row
	for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
		if st.Key == "" || st.Key == key {
			rows = append(rows, row{key, d.Properties[key]})
		}
	}
	if st.Key != "" && len(rows) == 0 {
		return fail(codeUser, "SHOW TBLPROPERTIES "+t.String()+" lists those that are set", "table %s has no property %s", t, sql.QuoteString(st.Key))
	}
	return s.answer(j, []string{"key", "value"}, rows)
}

// showHistory answers SHOW BRANCHES, SHOW TAGS and SHOW SNAPSHOTS.
func (s *Server) showHistory(j *job, st *sql.ShowHistory) error {
	t, err := s.resolveTable(st.Table.Strings(), j, toRead)
	if err != nil {
		return err
	}
	if t, err = s.existingTable(j, t); err != nil {
		return err
	}
	if t.entry.catalog == nil {
		return fail(codeUser, "DESCRIBE HISTORY "+t.String()+" lists its versions", "SHOW %s is about Iceberg tables: table %s is one of sink %s", st.What, t, t.entry.sink)
	}
	loaded, err := t.entry.catalog.Load(j.ctx, t.ident)
	if err != nil {
		return catalogError(err, "table "+t.String())
	}
	if st.What == "SNAPSHOTS" {
		return s.showSnapshots(j, loaded.Metadata)
	}
	kind, columns := table.TagRef, []string{"tag", "snapshot_id:int", "max_ref_age_ms:int"}
	if st.What == "BRANCHES" {
		kind, columns = table.BranchRef, []string{"branch", "snapshot_id:int", "max_ref_age_ms:int", "max_snapshot_age_ms:int", "min_snapshots_to_keep:int"}
	}
	refs := maps.Collect(loaded.Metadata.Refs())
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		r := refs[name]
		if r.SnapshotRefType != kind {
			continue
		}
		line := row{name, r.SnapshotID, number(r.MaxRefAgeMs)}
		if kind == table.BranchRef {
			var least any
			if r.MinSnapshotsToKeep != nil {
				least = int64(*r.MinSnapshotsToKeep)
			}
			line = append(line, number(r.MaxSnapshotAgeMs), least)
		}
		rows = append(rows, line)
	}
	return s.answer(j, columns, rows)
}

func number(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// showSnapshots lists a table's snapshots, the oldest first.
func (s *Server) showSnapshots(j *job, md table.Metadata) error {
	var current int64
	if snap := md.CurrentSnapshot(); snap != nil {
		current = snap.SnapshotID
	}
	var rows []row
	for _, snap := range md.Snapshots() {
		operation, summary := "", map[string]string{}
		if snap.Summary != nil {
			operation, summary = string(snap.Summary.Operation), snap.Summary.Properties
		}
		committed := time.UnixMilli(snap.TimestampMs).UTC().Format("2006-01-02 15:04:05.000")
		rows = append(rows, row{
			committed, snap.SnapshotID, number(snap.ParentSnapshotID), orNil(operation), snap.SnapshotID == current,
			orNil(summary["added-records"]), orNil(summary["deleted-records"]), orNil(summary["total-records"]), orNil(summary["wap.id"]),
		})
	}
	return s.answer(j, []string{
		"committed_at", "snapshot_id:int", "parent_id:int", "operation", "current:bool", "added_records", "deleted_records", "total_records", "wap_id",
	}, rows)
}
