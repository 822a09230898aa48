package iceberg

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// reservedSummary are summary keys, or beginnings of them, that are computed here or that mean something to other engines.
var reservedSummary = []string{
	"signet.", "added-", "deleted-", "removed-", "total-", "changed-partition-count", "engine-", "operation", "partitions.", "partition-summaries-included",
	"manifests-", "entries-processed", "replace-partitions", "wap.", "published-wap-id", "source-snapshot-id", "iceberg-version",
}

// unitKeys are the reserved keys that a unit's properties may set. Those of several units are listed.
var unitKeys = []string{"signet.user", "signet.query-hash"}

func reserved(key string) bool {
	for _, r := range reservedSummary {
		if key == r || (strings.HasSuffix(r, "-") || strings.HasSuffix(r, ".")) && strings.HasPrefix(key, r) {
			return true
		}
	}
	return false
}

// summary is the summary of the snapshot that appends the batch to the head.
func (b *batch) summary(head *meta.Snapshot) map[string]string {
	out := map[string]string{}
	for _, u := range slices.Backward(b.units) { // the first unit's word stands
		maps.Copy(out, u.GetProperties())
	}
	maps.DeleteFunc(out, func(k, _ string) bool { return reserved(k) })
	for _, key := range unitKeys {
		if list := b.listed(key); len(list) > 0 {
			out[key] = strings.Join(list, ",")
		}
	}
	out["operation"] = "append"
	out["engine-name"], out["engine-version"] = Engine, Version
	out[summaryMarkers] = strings.Join(b.markers, ",")
	out["signet.job-ids"] = strings.Join(b.jobs, ",")
	added := map[string]int64{"data-files": b.files, "records": b.rows, "files-size": b.bytes}
	for name, n := range added {
		out["added-"+name] = strconv.FormatInt(n, 10)
	}
	if b.partitions >= 0 {
		out["changed-partition-count"] = strconv.Itoa(b.partitions)
	}
	for _, name := range []string{"data-files", "records", "files-size", "delete-files", "position-deletes", "equality-deletes"} {
		if n, ok := total(head, "total-"+name); ok {
			out["total-"+name] = strconv.FormatInt(n+added[name], 10)
		}
	}
	return out
}

// listed are the units' values of a property, each once, in their order.
func (b *batch) listed(key string) []string {
	var out []string
	for _, u := range b.units {
		if v := u.GetProperties()[key]; v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// total is a total of the parent. Without a parent it is zero; a parent that does not say leaves it unknown, and then it is not written.
func total(head *meta.Snapshot, key string) (int64, bool) {
	if head == nil {
		return 0, true
	}
	n, err := strconv.ParseInt(head.Summary[key], 10, 64)
	return n, err == nil && n >= 0
}
