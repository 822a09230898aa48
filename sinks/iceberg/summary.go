package iceberg

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/evolve"
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

// summary is the summary of the snapshot that puts the batch on top of the head.
func (b *batch) summary(head *meta.Snapshot, gone *removal) map[string]string {
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
	out["operation"] = b.snapshotOperation(gone)
	if id := b.plan.GetWapId(); id != "" {
		out[evolve.SummaryWapID] = id
	}
	if b.req.GetMode() == sinkv1.WriteMode_WRITE_MODE_OVERWRITE && b.plan.GetScope().GetPartitions() {
		out["replace-partitions"] = "true"
	}
	out["engine-name"], out["engine-version"] = Engine, Version
	out[summaryMarkers] = strings.Join(b.markers, ",")
	out["signet.job-ids"] = strings.Join(b.jobs, ",")
	if b.pick != nil {
		b.pick.summary(out)
	}
	summarize(out, head, &b.added, &gone.gone)
	if n := b.touched(gone); n >= 0 {
		out["changed-partition-count"] = strconv.Itoa(n)
	}
	return out
}

// touched counts the partitions of added and removed files; -1: not known.
func (b *batch) touched(gone *removal) int {
	if b.plan.Mode == 0 {
		return b.partitions
	}
	all := maps.Clone(gone.tuples)
	if b.pick != nil {
		maps.Copy(all, b.pick.places)
	}
	for key := range b.written {
		all[place(b.plan.GetSpecId(), key)] = true
	}
	if b.added.dataFiles > 0 && len(b.plan.GetPartition()) == 0 {
		all[place(b.plan.GetSpecId(), "")] = true
	}
	return len(all)
}

// snapshotOperation is what the reference implementation calls such a commit.
func (b *batch) snapshotOperation(gone *removal) string {
	switch b.req.GetMode() {
	case sinkv1.WriteMode_WRITE_MODE_REPLACE:
		return "overwrite"
	case sinkv1.WriteMode_WRITE_MODE_APPEND, sinkv1.WriteMode_WRITE_MODE_CREATE:
		return "append"
	case sinkv1.WriteMode_WRITE_MODE_REWRITE:
		return "replace"
	case sinkv1.WriteMode_WRITE_MODE_PICK:
		return b.pick.Summary["operation"]
	}
	if b.added.dataFiles == 0 {
		return "delete"
	}
	if b.added.deleteFiles() == 0 && gone.gone == (counts{}) && b.req.GetMode() == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL {
		return "append"
	}
	return "overwrite"
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
