package commitreport

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/journal"
)

func TestSnapshot(t *testing.T) {
	updates := `[{"action":"set-properties","updates":{"a":"b"}},{"action":"add-snapshot","snapshot":{"snapshot-id":9007199254740993,"sequence-number":7,
		"summary":{"operation":"overwrite","added-data-files":"2","deleted-data-files":"1","added-files-size":"10","changed-partition-count":"3","signet.user":"ann","ticket":"7","added-records":"many"}}}]`
	l, err := Snapshot(json.RawMessage(updates))
	require.NoError(t, err)
	require.Equal(t, &journal.Landing{SnapshotID: 9007199254740993, SequenceNumber: 7, Operation: "overwrite", Summary: map[string]string{
		"added-data-files": "2", "deleted-data-files": "1", "added-files-size": "10", "changed-partition-count": "3", "added-records": "many",
	}}, l)
	for _, none := range []string{"", "[]", `[{"action":"set-properties"}]`} {
		l, err = Snapshot(json.RawMessage(none))
		require.NoError(t, err)
		require.Nil(t, l)
	}
	_, err = Snapshot(json.RawMessage("{"))
	require.Error(t, err)
}

// The names are those of ReportMetricsRequest and of Iceberg's CommitMetricsResult.
func TestReport(t *testing.T) {
	l := &journal.Landing{SnapshotID: 9007199254740993, SequenceNumber: 7, Operation: "overwrite", Summary: map[string]string{
		"added-data-files": "2", "deleted-data-files": "1", "total-data-files": "11", "added-records": "20", "deleted-records": "5", "total-records": "100",
		"added-files-size": "2000", "removed-files-size": "500", "total-files-size": "9000", "added-position-deletes": "4", "added-position-delete-files": "1", "added-delete-files": "1",
		"added-dvs": "3", "manifests-kept": "2", "entries-processed": "8", "total-equality-deletes": "0", "added-equality-deletes": "none",
	}}
	b, err := Report("lake.demo.t", l, 3, 1500*time.Microsecond, map[string]string{"engine-name": "signet"})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"report-type": "commit-report", "table-name": "lake.demo.t", "snapshot-id": 9007199254740993, "sequence-number": 7, "operation": "overwrite",
		"metrics": {
			"total-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 1500000}, "attempts": {"unit": "count", "value": 3},
			"added-data-files": {"unit": "count", "value": 2}, "removed-data-files": {"unit": "count", "value": 1}, "total-data-files": {"unit": "count", "value": 11},
			"added-records": {"unit": "count", "value": 20}, "removed-records": {"unit": "count", "value": 5}, "total-records": {"unit": "count", "value": 100},
			"added-files-size-bytes": {"unit": "bytes", "value": 2000}, "removed-files-size-bytes": {"unit": "bytes", "value": 500}, "total-files-size-bytes": {"unit": "bytes", "value": 9000},
			"added-positional-deletes": {"unit": "count", "value": 4}, "added-positional-delete-files": {"unit": "count", "value": 1}, "added-delete-files": {"unit": "count", "value": 1},
			"added-dvs": {"unit": "count", "value": 3}, "manifests-kept": {"unit": "count", "value": 2}, "manifest-entries-processed": {"unit": "count", "value": 8},
			"total-equality-deletes": {"unit": "count", "value": 0}
		},
		"metadata": {"engine-name": "signet"}}`, string(b))
	b, err = Report("t", &journal.Landing{}, 0, 0, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"report-type":"commit-report","table-name":"t","snapshot-id":0,"sequence-number":0,"operation":"","metrics":{}}`, string(b))
}
