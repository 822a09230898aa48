// Package commitreport turns what a snapshot's summary says of a commit into counts, and into the report that Iceberg's metrics reporting defines
// (ReportMetricsRequest of the REST catalog's specification). It is pure.
package commitreport

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/signet-io/signet/scheduler/journal"
)

// Snapshot reads the snapshot that a catalog's request adds; nil: it adds none.
func Snapshot(updates json.RawMessage) (*journal.Landing, error) {
	var list []struct {
		Action   string `json:"action"`
		Snapshot struct {
			ID       int64             `json:"snapshot-id"`
			Sequence int64             `json:"sequence-number"`
			Summary  map[string]string `json:"summary"`
		} `json:"snapshot"`
	}
	if len(updates) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(updates, &list); err != nil {
		return nil, fmt.Errorf("updates: %w", err)
	}
	for _, u := range list {
		if u.Action != "add-snapshot" {
			continue
		}
		s := u.Snapshot
		return &journal.Landing{SnapshotID: s.ID, SequenceNumber: s.Sequence, Operation: s.Summary["operation"], Summary: counts(s.Summary)}, nil
	}
	return nil, nil
}

// counts leaves the numbers of a summary that are the format's.
func counts(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if _, isCount := counters[k]; isCount || sizes[k] != "" || k == "changed-partition-count" {
			out[k] = v
		}
	}
	return out
}

// counters are the names of a report's counters by those of the summary.
var counters = map[string]string{
	"added-data-files": "added-data-files", "deleted-data-files": "removed-data-files", "total-data-files": "total-data-files",
	"added-delete-files": "added-delete-files", "removed-delete-files": "removed-delete-files", "total-delete-files": "total-delete-files",
	"added-equality-delete-files": "added-equality-delete-files", "removed-equality-delete-files": "removed-equality-delete-files",
	"added-position-delete-files": "added-positional-delete-files", "removed-position-delete-files": "removed-positional-delete-files",
	"added-dvs": "added-dvs", "removed-dvs": "removed-dvs",
	"added-records": "added-records", "deleted-records": "removed-records", "total-records": "total-records",
	"added-position-deletes": "added-positional-deletes", "removed-position-deletes": "removed-positional-deletes", "total-position-deletes": "total-positional-deletes",
	"added-equality-deletes": "added-equality-deletes", "removed-equality-deletes": "removed-equality-deletes", "total-equality-deletes": "total-equality-deletes",
	"manifests-created": "manifests-created", "manifests-replaced": "manifests-replaced", "manifests-kept": "manifests-kept", "entries-processed": "manifest-entries-processed",
}

var sizes = map[string]string{
	"added-files-size": "added-files-size-bytes", "removed-files-size": "removed-files-size-bytes", "total-files-size": "total-files-size-bytes",
}

type counter struct {
	Unit  string `json:"unit"`
	Value int64  `json:"value"`
}

type timer struct {
	Count    int64  `json:"count"`
	TimeUnit string `json:"time-unit"`
	Total    int64  `json:"total-duration"`
}

type report struct {
	Type      string            `json:"report-type"`
	Table     string            `json:"table-name"`
	Snapshot  int64             `json:"snapshot-id"`
	Sequence  int64             `json:"sequence-number"`
	Operation string            `json:"operation"`
	Metrics   map[string]any    `json:"metrics"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// Report is the commit report. table is the name with its catalog's; took is 0 where it is not known.
func Report(table string, l *journal.Landing, attempts int, took time.Duration, metadata map[string]string) ([]byte, error) {
	r := report{Type: "commit-report", Table: table, Snapshot: l.SnapshotID, Sequence: l.SequenceNumber, Operation: l.Operation, Metadata: metadata, Metrics: map[string]any{}}
	if attempts > 0 {
		r.Metrics["attempts"] = counter{"count", int64(attempts)}
	}
	if took > 0 {
		r.Metrics["total-duration"] = timer{1, "nanoseconds", took.Nanoseconds()}
	}
	put := func(names map[string]string, unit string) {
		for from, to := range names {
			if n, ok := Count(l.Summary, from); ok {
				r.Metrics[to] = counter{unit, n}
			}
		}
	}
	put(counters, "count")
	put(sizes, "bytes")
	return json.Marshal(r)
}

// Count is a number of a summary; false: it does not say.
func Count(summary map[string]string, key string) (int64, bool) {
	n, err := strconv.ParseInt(summary[key], 10, 64)
	return n, err == nil
}
