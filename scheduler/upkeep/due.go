package upkeep

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/tableprops"
)

// Excluded tells whether a table's properties keep its snapshots from a schedule: by our own one, or because its files may be others', too.
func Excluded(properties map[string]string) bool {
	for _, key := range []string{tableprops.ExpireSnapshots, "gc.enabled"} {
		if strings.EqualFold(strings.TrimSpace(properties[key]), "false") && !mutant.On("upkeep/nobody-excluded") {
			return true
		}
	}
	return false
}

// Expires tells whether an expiry at an instant would remove a snapshot or a reference, by the table's own retention. The sink decides what goes; this
// spares a schedule the jobs that would find nothing. Where a property cannot be read the answer is true, so that the job says so.
func Expires(md table.Metadata, now time.Time) bool {
	var age, least, refAge int64
	for key, to := range map[string]struct {
		v        *int64
		fallback int64
	}{
		"history.expire.max-snapshot-age-ms":   {&age, 5 * 24 * 3600 * 1000},
		"history.expire.min-snapshots-to-keep": {&least, 1},
		"history.expire.max-ref-age-ms":        {&refAge, math.MaxInt64},
	} {
		text, ok := md.Properties()[key]
		if *to.v = to.fallback; !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n < 1 {
			return true
		}
		*to.v = n
	}
	all := map[int64]table.Snapshot{}
	for _, s := range md.Snapshots() {
		all[s.SnapshotID] = s
	}
	kept, referenced := map[int64]bool{}, map[int64]bool{}
	for name, ref := range md.Refs() {
		s, ok := all[ref.SnapshotID]
		if name != table.MainBranch && (!ok || now.UnixMilli()-s.TimestampMs > orElse(ref.MaxRefAgeMs, refAge)) {
			return true
		}
		kept[ref.SnapshotID], referenced[ref.SnapshotID] = true, true
		if ref.SnapshotRefType != table.BranchRef {
			continue
		}
		older, keep := now.UnixMilli()-orElse(ref.MaxSnapshotAgeMs, age), least
		if ref.MinSnapshotsToKeep != nil {
			keep = int64(*ref.MinSnapshotsToKeep)
		}
		ended := false
		for i, seen := int64(0), map[int64]bool{}; ok && !seen[s.SnapshotID]; i++ {
			seen[s.SnapshotID], referenced[s.SnapshotID] = true, true
			if ended = ended || i >= keep && s.TimestampMs < older; !ended {
				kept[s.SnapshotID] = true
			}
			if ok = s.ParentSnapshotID != nil; ok {
				s, ok = all[*s.ParentSnapshotID]
			}
		}
	}
	for id, s := range all {
		if !kept[id] && (referenced[id] || s.TimestampMs < now.UnixMilli()-age) {
			return true
		}
	}
	return false
}

func orElse(v *int64, fallback int64) int64 {
	if v == nil {
		return fallback
	}
	return *v
}
