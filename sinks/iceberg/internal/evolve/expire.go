package evolve

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// Retention of a table's snapshots, as the reference implementation names and defaults it.
const (
	propGC             = "gc.enabled"
	propMaxSnapshotAge = "history.expire.max-snapshot-age-ms"
	propMinSnapshots   = "history.expire.min-snapshots-to-keep"
	propMaxRefAge      = "history.expire.max-ref-age-ms"

	defaultMaxSnapshotAge = 5 * 24 * 3600 * 1000 // ms
	defaultMinSnapshots   = 1
)

// ValueExpired and ValueDropped name the values that list what an expiry removes, separated by commas.
const (
	ValueExpired = "expired_snapshots"
	ValueDropped = "dropped_refs"
)

// expire finds the snapshots that no reference retains (RemoveSnapshots of the reference implementation).
func (e *editor) expire(x *sinkv1.ExpireSnapshots) error {
	if strings.EqualFold(strings.TrimSpace(e.table.Properties[propGC]), "false") {
		return fmt.Errorf("its property %s is false: its files may belong to other tables too", propGC)
	}
	r, err := e.retains(x)
	if err != nil {
		return err
	}
	heads := map[int64][]string{} // by which references
	kept, referenced := map[int64]bool{}, map[int64]bool{}
	for _, name := range slices.Sorted(maps.Keys(e.table.Refs)) {
		ref := e.table.Refs[name]
		if r.refExpired(e.table, name, ref) {
			e.refs[name] = nil
			continue
		}
		e.pinned[name] = name != meta.MainBranch // that moves on all the time, and its head cannot be removed
		heads[ref.SnapshotID] = append(heads[ref.SnapshotID], name)
		kept[ref.SnapshotID], referenced[ref.SnapshotID] = true, true
		if ref.Type != branchType {
			continue
		}
		older, least := r.ofBranch(ref)
		ended := false
		for i, s := range e.table.ancestors(&ref.SnapshotID) {
			referenced[s.ID] = true
			ended = ended || i >= least && s.TimestampMS < older // what is before it goes too, whatever its time says
			if !ended {
				kept[s.ID] = true
			}
		}
	}
	explicit, err := e.explicit(x, heads)
	if err != nil {
		return err
	}
	for _, s := range e.table.Snapshots {
		switch {
		case explicit[s.ID]:
		case kept[s.ID]:
			continue
		case !referenced[s.ID] && s.TimestampMS >= r.older:
			continue
		}
		e.removed = append(e.removed, s.ID)
	}
	e.values[ValueExpired] = joinIDs(e.removed)
	var dropped []string
	for name, ref := range e.refs {
		if ref == nil {
			dropped = append(dropped, name)
		}
	}
	slices.Sort(dropped)
	e.values[ValueDropped] = strings.Join(dropped, ",")
	return nil
}

// retains is what an expiry keeps.
type retains struct {
	now    int64 // ms
	older  int64 // snapshots before it go
	least  int   // of each branch
	refAge int64
}

func (e *editor) retains(x *sinkv1.ExpireSnapshots) (*retains, error) {
	r := &retains{now: e.Now.UnixMilli()}
	age, err := e.number(propMaxSnapshotAge, defaultMaxSnapshotAge)
	if err != nil {
		return nil, err
	}
	r.older = r.now - age
	least, err := e.number(propMinSnapshots, defaultMinSnapshots)
	if err != nil {
		return nil, err
	}
	if r.refAge, err = e.number(propMaxRefAge, math.MaxInt64); err != nil {
		return nil, err
	}
	if x.OlderThanMillis != nil {
		r.older = x.GetOlderThanMillis()
	}
	if x.RetainLast != nil {
		if least = int64(x.GetRetainLast()); least < 1 {
			return nil, fmt.Errorf("retain_last must be at least 1: the current snapshot stays")
		}
	}
	r.least = int(min(least, math.MaxInt32))
	return r, nil
}

// number reads a property that is a positive number.
func (e *editor) number(key string, fallback int64) (int64, error) {
	text, ok := e.table.Properties[key]
	if !ok {
		return fallback, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("its property %s=%s: it must be a positive number; nothing expires before it is", key, text)
	}
	return n, nil
}

func (r *retains) refExpired(t *Table, name string, ref meta.Ref) bool {
	if name == meta.MainBranch {
		return false
	}
	s := t.Snapshot(ref.SnapshotID)
	if s == nil {
		return true // it leads nowhere
	}
	age := r.refAge
	if ref.MaxRefAgeMS != nil {
		age = *ref.MaxRefAgeMS
	}
	return r.now-s.TimestampMS > age
}

// ofBranch is what a branch keeps: snapshots that are not older, and the newest ones whatever their age.
func (r *retains) ofBranch(ref meta.Ref) (older int64, least int) {
	older, least = r.older, r.least
	if ref.MaxSnapshotAgeMS != nil {
		older = r.now - *ref.MaxSnapshotAgeMS
	}
	if ref.MinSnapshotsToKeep != nil {
		least = int(*ref.MinSnapshotsToKeep)
	}
	return older, least
}

// explicit are the snapshots that were asked for by their ids. One that a branch or a tag points to is refused.
func (e *editor) explicit(x *sinkv1.ExpireSnapshots, heads map[int64][]string) (map[int64]bool, error) {
	out := map[int64]bool{}
	for _, text := range x.GetSnapshots() {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no snapshot id", text)
		}
		if e.table.Snapshot(id) == nil {
			if e.again {
				continue
			}
			return nil, fmt.Errorf("the table has no snapshot %d: it never had, or it has expired", id)
		}
		if by := heads[id]; len(by) > 0 {
			return nil, fmt.Errorf("snapshot %d is where %s points to", id, strings.Join(by, ", "))
		}
		out[id] = true
	}
	return out, nil
}

func joinIDs(ids []int64) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(out, ",")
}
