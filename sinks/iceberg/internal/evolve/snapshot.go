package evolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// Summary keys of write-audit-publish, as the reference implementation has them.
const (
	SummaryWapID       = "wap.id"
	SummaryPublished   = "published-wap-id"
	SummarySourceID    = "source-snapshot-id"
	valuePrevious      = "previous_snapshot_id"
	valueCurrent       = "current_snapshot_id"
	valueSource        = "source_snapshot_id"
	summaryOperation   = "operation"
	summaryDynamic     = "replace-partitions"
	operationAppend    = "append"
	operationOverwrite = "overwrite"
)

func (e *editor) setSnapshot(s *sinkv1.SetSnapshot) error {
	head := e.head()
	target, err := e.snapshotTarget(s, head)
	if err != nil {
		return err
	}
	if s.GetAncestor() && !e.table.isAncestor(target, head) {
		return fmt.Errorf("snapshot %d is no ancestor of the current one; set_current_snapshot takes any", target)
	}
	e.values[valueCurrent] = strconv.FormatInt(target, 10)
	if head != nil {
		e.values[valuePrevious] = strconv.FormatInt(*head, 10)
		if *head == target {
			return nil
		}
	}
	r, _ := e.ref(meta.MainBranch)
	r.SnapshotID, r.Type = target, branchType
	e.put(meta.MainBranch, r)
	return nil
}

func (e *editor) snapshotTarget(s *sinkv1.SetSnapshot, head *int64) (int64, error) {
	switch {
	case s.GetSnapshot() != "":
		return e.snapshotID(s.GetSnapshot())
	case s.GetRef() != "":
		r, ok := e.ref(s.GetRef())
		if !ok {
			return 0, e.noRef(s.GetRef())
		}
		return r.SnapshotID, nil
	case s.BeforeMillis != nil:
		for _, a := range e.table.ancestors(head) {
			if a.TimestampMS < s.GetBeforeMillis() {
				return a.ID, nil
			}
		}
		return 0, fmt.Errorf("the table has no snapshot that is older than that")
	}
	return 0, fmt.Errorf("no snapshot is named")
}

// cherryPick puts a staged snapshot on top of main, as the reference implementation's CherryPickOperation does: main moves to it where it was made on
// main's head, and otherwise a new snapshot has to make its changes once more.
func (e *editor) cherryPick(c *sinkv1.CherryPick) error {
	s, err := e.staged(c)
	if err != nil {
		return err
	}
	head := e.head()
	e.values[valueSource] = strconv.FormatInt(s.ID, 10)
	line := e.table.ancestors(head)
	if err := Published(s, line); err != nil {
		if e.again {
			e.values[valueCurrent] = strconv.FormatInt(*head, 10)
			return nil
		}
		return err
	}
	if sameParent(s.ParentID, head) {
		e.values[valueCurrent] = strconv.FormatInt(s.ID, 10)
		r, _ := e.ref(meta.MainBranch)
		r.SnapshotID, r.Type = s.ID, branchType
		e.put(meta.MainBranch, r)
		return nil
	}
	if err := Pickable(s, line, e.version()); err != nil {
		return err
	}
	e.pick = s
	return nil
}

// Pickable says why a snapshot's changes cannot be made once more on top of main, whose ancestors are line; nil: they can. Only what adds files, or takes
// whole partitions' place, means the same on top of another snapshot.
func Pickable(s *meta.Snapshot, line []*meta.Snapshot, version int) error {
	op := s.Summary[summaryOperation]
	switch {
	case s.ManifestList == "":
		return fmt.Errorf("snapshot %d has no manifest list (a table of a very old version), which is not supported", s.ID)
	case op == operationAppend:
		return nil
	case op != operationOverwrite || !strings.EqualFold(s.Summary[summaryDynamic], "true"):
		return fmt.Errorf("snapshot %d (operation %s, %s %q) was not made on main's head, and only an append, or an overwrite of the partitions that it writes, can be put on another; "+
			"run its statement again", s.ID, op, SummaryWapID, s.Summary[SummaryWapID])
	case version < 2:
		return fmt.Errorf("snapshot %d overwrites partitions and was not made on main's head, and the table has format version %d, which only appends are made to; upgrade the table", s.ID, version)
	case s.ParentID != nil && !slices.ContainsFunc(line, func(a *meta.Snapshot) bool { return a.ID == *s.ParentID }):
		return fmt.Errorf("snapshot %d overwrites partitions of snapshot %d, which is no ancestor of main's head: what has changed since cannot be told; run its statement again", s.ID, *s.ParentID)
	}
	return nil
}

func sameParent(a, b *int64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func (e *editor) staged(c *sinkv1.CherryPick) (*meta.Snapshot, error) {
	if c.GetSnapshot() != "" {
		id, err := e.snapshotID(c.GetSnapshot())
		if err != nil {
			return nil, err
		}
		return e.table.Snapshot(id), nil
	}
	var found *meta.Snapshot
	for _, s := range e.table.Snapshots {
		if s.Summary[SummaryWapID] == c.GetWapId() && c.GetWapId() != "" {
			if found != nil {
				return nil, fmt.Errorf("snapshots %d and %d both have the wap.id %q; cherrypick_snapshot takes a snapshot's id", found.ID, s.ID, c.GetWapId())
			}
			found = s
		}
	}
	if found == nil {
		return nil, fmt.Errorf("the table has no snapshot with the wap.id %q", c.GetWapId())
	}
	return found, nil
}

// Published says why a snapshot is on the branch already whose ancestors are line; nil: it is not.
func Published(s *meta.Snapshot, line []*meta.Snapshot) error {
	wap, id := s.Summary[SummaryWapID], strconv.FormatInt(s.ID, 10)
	for _, a := range line {
		var why string
		switch {
		case a.ID == s.ID:
			why = "it is an ancestor of the current one"
		case a.Summary[SummarySourceID] == id:
			why = fmt.Sprintf("snapshot %d has its changes", a.ID)
		case wap != "" && (a.Summary[SummaryPublished] == wap || a.Summary[SummaryWapID] == wap):
			why = fmt.Sprintf("snapshot %d has published the wap.id %q", a.ID, wap)
		default:
			continue
		}
		return fmt.Errorf("snapshot %d is on the main branch already: %s", s.ID, why)
	}
	return nil
}
