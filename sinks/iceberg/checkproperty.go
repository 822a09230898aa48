package iceberg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// leastNumbers are the properties that engines read as whole numbers, each with the least that makes sense. Another value would make every later
// statement of the reference implementation fail, and so it never gets into a table.
var leastNumbers = map[string]int64{
	"commit.retry.num-retries": 0, "commit.retry.min-wait-ms": 0, "commit.retry.max-wait-ms": 0, "commit.retry.total-timeout-ms": 0,
	"commit.status-check.num-retries": 0, "commit.status-check.min-wait-ms": 0, "commit.status-check.max-wait-ms": 0, "commit.status-check.total-timeout-ms": 0,
	propMergeCount: 1, propManifestSize: 1, propTargetFileSize: 1, "write.delete.target-file-size-bytes": 1,
	propRowGroupBytes: 1, propRowGroupRows: 1, "write.parquet.page-size-bytes": 1, "write.parquet.page-row-limit": 1, "write.parquet.dict-size-bytes": 1, propMetricsMax: 1,
	"write.metadata.previous-versions-max": 1, "history.expire.max-snapshot-age-ms": 1, "history.expire.min-snapshots-to-keep": 1, "history.expire.max-ref-age-ms": 1,
	"read.split.target-size": 1, "read.split.metadata-target-size": 1, "read.split.planning-lookback": 1, "read.split.open-file-cost": 0,
}

// words are the properties that take one of a few words, whatever their case.
var words = map[string][]string{
	"write.delete.mode": {"copy-on-write", "merge-on-read"}, "write.update.mode": {"copy-on-write", "merge-on-read"}, "write.merge.mode": {"copy-on-write", "merge-on-read"},
	"write.delete.isolation-level": {"serializable", "snapshot"}, "write.update.isolation-level": {"serializable", "snapshot"}, "write.merge.isolation-level": {"serializable", "snapshot"},
	propDistribution: {"none", "hash", "range"}, propMerge: {"true", "false"}, "write.metadata.delete-after-commit.enabled": {"true", "false"}, "gc.enabled": {"true", "false"},
	"write.delete.granularity": {"file", "partition"},
}

// checkValue refuses a value that no engine could read.
func checkValue(key, text string) error {
	text = strings.ToLower(strings.TrimSpace(text))
	if list, ok := words[key]; ok && !slices.Contains(list, text) {
		return fmt.Errorf("it must be %s or %s", strings.Join(list[:len(list)-1], ", "), list[len(list)-1])
	}
	least, ok := leastNumbers[key]
	if !ok {
		return nil
	}
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case (err != nil || n < least) && least == 0:
		return fmt.Errorf("it must be a whole number, 0 or more")
	case err != nil || n < least:
		return fmt.Errorf("it must be a positive number")
	}
	return nil
}
