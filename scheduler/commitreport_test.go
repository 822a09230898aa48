package scheduler

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
)

// shownRow is an inline result of one row as text, by column.
func shownRow(t *testing.T, b []byte) map[string]string {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	out := map[string]string{}
	for i, f := range r.Schema().Fields() {
		out[f.Name] = r.RecordBatch().Column(i).ValueStr(0)
	}
	return out
}

const overwriteUpdates = `[{"action": "set-properties", "updates": {}}, {"action": "add-snapshot", "snapshot": {"summary": {
	"operation": "overwrite", "added-data-files": "2", "added-records": "10", "deleted-data-files": "3", "deleted-records": "7", "changed-partition-count": "4"}}}]`

// machineAt is a job of one task with two files of ten rows, whose commits have met conflicts before the last one was sealed.
func machineAt(t *testing.T, conflicts int, a coordinator.Attempt) *coordinator.Machine {
	t.Helper()
	m := coordinator.New("job", 1)
	step := func(ev coordinator.Event) {
		t.Helper()
		_, err := m.Step(ev)
		require.NoError(t, err)
	}
	step(coordinator.Begin{Tasks: 1, TableUUID: "u"})
	step(coordinator.Accept{Attempt: "a", Epoch: 1, Digest: "00", Totals: coordinator.Totals{Files: 2, Rows: 10, Bytes: 99}, Paths: []string{"x", "y"}})
	step(coordinator.Start{})
	for n := range conflicts + 1 {
		step(coordinator.Seal{Attempt: a})
		if n < conflicts {
			step(coordinator.Conflict{Seq: n + 1, Reason: "somebody was faster"})
		}
	}
	return m
}

func catalogAttempt(updates string, markers ...string) coordinator.Attempt {
	return coordinator.Attempt{
		Epoch: 1, Kind: coordinator.KindCatalog, SnapshotID: 5, Version: "5", SequenceNumber: 9, TableUUID: "u", Markers: markers,
		Requirements: json.RawMessage(`[]`), Updates: json.RawMessage(updates),
	}
}

func landed(t *testing.T, m *coordinator.Machine, c committed) map[string]string {
	t.Helper()
	c.attempt = m.Open()
	_, err := m.Step(coordinator.Landed{Seq: m.Seals(), Version: "5"})
	require.NoError(t, err)
	b, err := commitResult(m, c)
	require.NoError(t, err)
	return shownRow(t, b)
}

// What is answered is what the sealed request says, which is what the table now has.
func TestCommitResult_SaysWhatTheRequestDid(t *testing.T) {
	got := landed(t, machineAt(t, 2, catalogAttempt(overwriteUpdates, "m")), committed{table: "lake.s.t", job: "job", marker: "m", branch: "audit", snapshots: true})
	require.Equal(t, map[string]string{
		"rows": "10", "files": "2", "bytes": "99", "table": "lake.s.t", "snapshot_id": "5", "version": "5", "job_id": "job", "attempts": "3", "already_committed": "false",
		"operation": "overwrite", "branch": "audit", "sequence_number": "9", "added_files": "2", "removed_files": "3", "added_rows": "10", "removed_rows": "7",
		"deleted_rows": "(null)", "updated_rows": "(null)", "partitions": "4", "conflicts": "2", "marker": "m",
	}, got)
}

func TestCommitResult_LeavesOutWhatIsNotKnown(t *testing.T) {
	appended := landed(t, machineAt(t, 0, catalogAttempt(`[{"action": "add-snapshot", "snapshot": {"summary": {"operation": "append", "added-data-files": "2", "added-records": "10"}}}]`, "m")), committed{})
	require.Equal(t, []string{"append", "2", "0", "10", "0", "(null)", "0"}, []string{
		appended["operation"], appended["added_files"], appended["removed_files"], appended["added_rows"], appended["removed_rows"], appended["partitions"], appended["conflicts"],
	}, "summaries leave out what is zero")

	grouped := landed(t, machineAt(t, 0, catalogAttempt(`[{"action": "add-snapshot", "snapshot": {"summary": {"operation": "append", "added-data-files": "200", "added-records": "1000"}}}]`, "m", "other")), committed{})
	require.Equal(t, []string{"2", "10", "(null)"}, []string{grouped["added_files"], grouped["added_rows"], grouped["removed_files"]}, "the group's counts are not the job's")

	stored := landed(t, machineAt(t, 0, coordinator.Attempt{Epoch: 1, Kind: coordinator.KindStorage, Version: "5", Markers: []string{"m"}, URI: "file:///t/_log/5", Body: []byte("x")}), committed{})
	require.Equal(t, []string{"(null)", "(null)", "2", "(null)"}, []string{stored["operation"], stored["sequence_number"], stored["added_files"], stored["removed_files"]})

	m := machineAt(t, 0, catalogAttempt(overwriteUpdates, "m"))
	_, err := m.Step(coordinator.Conflict{Seq: 1})
	require.NoError(t, err)
	_, err = m.Step(coordinator.Found{Version: "4"})
	require.NoError(t, err)
	b, err := commitResult(m, committed{mode: sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL})
	require.NoError(t, err)
	earlier := shownRow(t, b)
	require.Equal(t, []string{"(null)", "(null)", "(null)", "true"}, []string{earlier["rows"], earlier["added_files"], earlier["operation"], earlier["already_committed"]}, "an earlier run's commit")
}
