package scheduler

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/mutant"
)

// commitColumns are the columns of a commit's result.
var commitColumns = []string{
	"rows:int", "files:int", "bytes:int", "table", "snapshot_id:int", "version", "job_id", "attempts:int", "already_committed:bool",
	"operation", "branch", "sequence_number:int", "added_files:int", "removed_files:int", "added_rows:int", "removed_rows:int",
	"deleted_rows:int", "updated_rows:int", "partitions:int", "conflicts:int", "marker",
}

// commitReport is what a commit did. nil: not known, or not said by the table's format.
type commitReport struct {
	operation    string
	sequence     *int64
	addedFiles   *int64
	removedFiles *int64
	addedRows    *int64 // of data files
	removedRows  *int64 // of data files
	partitions   *int64 // that were changed
}

// reportOf reads what a sealed attempt does off its request, which the journal keeps: so the report is part of the record that ends the job, and survives
// whatever follows. a may be nil: the marker was found in the table.
func reportOf(a *coordinator.Attempt, m *coordinator.Machine) commitReport {
	t, r := m.Totals(), m.Result()
	switch {
	case r.Skipped:
		zero := int64(0)
		return commitReport{addedFiles: &zero, removedFiles: &zero, addedRows: &zero, removedRows: &zero, partitions: &zero}
	case r.Unreferenced && r.Already: // an earlier run's: what it did is not known
		return commitReport{}
	}
	out := commitReport{addedFiles: &t.Files, addedRows: &t.Rows}
	if a == nil || a.Kind != coordinator.KindCatalog {
		return out
	}
	if a.SequenceNumber > 0 {
		out.sequence = &a.SequenceNumber
	}
	summary := snapshotSummary(a.Updates)
	out.operation = summary["operation"]
	if len(a.Markers) > 1 { // of a group, whose counts are of all of its jobs
		return out
	}
	for key, to := range map[string]**int64{
		"added-data-files": &out.addedFiles, "deleted-data-files": &out.removedFiles, "added-records": &out.addedRows, "deleted-records": &out.removedRows,
		"changed-partition-count": &out.partitions,
	} {
		text, ok := summary[key]
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case ok && err == nil:
			*to = &n
		case !ok && len(summary) > 0 && key != "changed-partition-count": // summaries leave out what is zero
			zero := int64(0)
			*to = &zero
		}
	}
	return out
}

// newestSummary is the summary that was read last: the jobs of a group ask for the same one, twice each.
var newestSummary struct {
	sync.Mutex
	updates json.RawMessage
	summary map[string]string
}

// snapshotSummary is that of the snapshot that a catalog request adds; nil if it adds none. Nobody may change it.
func snapshotSummary(updates json.RawMessage) map[string]string {
	m := &newestSummary
	m.Lock()
	defer m.Unlock()
	if m.updates == nil || !bytes.Equal(m.updates, updates) {
		m.updates, m.summary = bytes.Clone(updates), readSummary(updates)
	}
	return m.summary
}

func readSummary(updates json.RawMessage) map[string]string {
	var list []struct {
		Action   string `json:"action"`
		Snapshot struct {
			Summary map[string]string `json:"summary"`
		} `json:"snapshot"`
	}
	if json.Unmarshal(updates, &list) != nil {
		return nil
	}
	for _, u := range list {
		if u.Action == "add-snapshot" {
			return u.Snapshot.Summary
		}
	}
	return nil
}

// committed is what commitResult is made of besides the machine.
type committed struct {
	table, job, marker, branch string
	mode                       sinkv1.WriteMode
	snapshots                  bool                 // the format's versions are snapshot ids
	attempt                    *coordinator.Attempt // that landed; nil: not one of this job's own
}

// commitResult is what a commit answers: one row, however much was written (S38).
func commitResult(m *coordinator.Machine, c committed) ([]byte, error) {
	r, t := m.Result(), m.Totals()
	rows, files, bytes := any(t.Rows), any(t.Files), any(t.Bytes)
	if r.Unreferenced && r.Already {
		// The rows are those of an earlier run under the same key; this run's files are not in the table.
		rows, files, bytes = nil, nil, nil
	}
	var snapshot any
	if id, err := strconv.ParseInt(r.Version, 10, 64); err == nil && !r.Skipped && c.snapshots {
		snapshot = id
	}
	if mutant.On("scheduler/result-lists-files") {
		c.table += strings.Repeat(", a file", int(t.Files))
	}
	conflicts := int64(0)
	for _, e := range m.Record().Ended {
		if e.Outcome == coordinator.OutcomeConflict.String() {
			conflicts++
		}
	}
	var deleted, updated any
	if c.mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL {
		deleted, updated = t.DeletedRows, t.UpdatedRows
	}
	rep := reportOf(c.attempt, m)
	return inlineResult(commitColumns, []row{{
		rows, files, bytes, c.table, snapshot, orNil(r.Version), c.job, int64(m.Seals()), r.Already,
		orNil(rep.operation), orNil(c.branch), orNull(rep.sequence), orNull(rep.addedFiles), orNull(rep.removedFiles), orNull(rep.addedRows), orNull(rep.removedRows),
		deleted, updated, orNull(rep.partitions), conflicts, orNil(c.marker),
	}})
}

func orNull(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}
