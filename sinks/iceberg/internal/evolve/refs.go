package evolve

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

const (
	branchType = "branch"
	tagType    = "tag"
)

// ref is a reference as the changes so far leave it.
func (e *editor) ref(name string) (meta.Ref, bool) {
	if r, ok := e.refs[name]; ok {
		if r == nil {
			return meta.Ref{}, false
		}
		return *r, true
	}
	r, ok := e.table.Refs[name]
	return r, ok
}

// head is main's snapshot as the changes so far leave it.
func (e *editor) head() *int64 {
	if r, ok := e.ref(meta.MainBranch); ok {
		return &r.SnapshotID
	}
	return nil
}

func (e *editor) put(name string, r meta.Ref) {
	e.refs[name], e.pinned[name] = &r, true
}

// snapshotID reads an id and checks that the table has the snapshot.
func (e *editor) snapshotID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no snapshot id", text)
	}
	if e.table.Snapshot(id) == nil {
		return 0, fmt.Errorf("the table has no snapshot %d: it never had, or it has expired", id)
	}
	return id, nil
}

func (e *editor) noRef(name string) error {
	names := slices.Sorted(maps.Keys(e.table.Refs))
	return fmt.Errorf("the table has no branch or tag %s; it has %v", name, names)
}

func kindName(tag bool) string {
	if tag {
		return tagType
	}
	return branchType
}

// setRef creates or moves a branch or a tag.
func (e *editor) setRef(s *sinkv1.SetRef) error {
	if s.GetFastForward() {
		return e.fastForward(s)
	}
	kind := kindName(s.GetTag())
	if s.GetName() == "" {
		return fmt.Errorf("a %s needs a name", kind)
	}
	have, exists := e.ref(s.GetName())
	target, err := e.refTarget(s, have, exists)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind, s.GetName(), err)
	}
	r := meta.Ref{SnapshotID: target, Type: kind}
	if exists {
		switch {
		case have.Type != kind:
			return fmt.Errorf("%s is a %s", s.GetName(), have.Type)
		case s.GetIfNotExists(), e.again && !s.GetOrReplace() && have.SnapshotID == target:
			return nil
		case !s.GetOrReplace():
			return fmt.Errorf("%s %s exists already, at snapshot %d; CREATE OR REPLACE moves it", kind, s.GetName(), have.SnapshotID)
		}
		r = have // retention that is not named stays
		r.SnapshotID = target
	} else if s.GetMustExist() {
		return e.noRef(s.GetName())
	}
	if err := retention(&r, s); err != nil {
		return fmt.Errorf("%s %s: %w", kind, s.GetName(), err)
	}
	e.put(s.GetName(), r)
	return nil
}

func (e *editor) refTarget(s *sinkv1.SetRef, have meta.Ref, exists bool) (int64, error) {
	switch {
	case s.GetSnapshot() != "":
		return e.snapshotID(s.GetSnapshot())
	case s.GetFrom() != "":
		from, ok := e.ref(s.GetFrom())
		if !ok {
			return 0, e.noRef(s.GetFrom())
		}
		return from.SnapshotID, nil
	case exists && s.GetIfNotExists():
		return have.SnapshotID, nil
	}
	head := e.head()
	if head == nil {
		return 0, fmt.Errorf("the table has no snapshot yet; write to it first")
	}
	return *head, nil
}

func retention(r *meta.Ref, s *sinkv1.SetRef) error {
	if s.MaxRefAgeMillis != nil {
		if s.GetMaxRefAgeMillis() <= 0 {
			return fmt.Errorf("its age must be positive")
		}
		r.MaxRefAgeMS = s.MaxRefAgeMillis
	}
	if r.Type == tagType && (s.MaxSnapshotAgeMillis != nil || s.MinSnapshotsToKeep != nil) {
		return fmt.Errorf("a tag is one snapshot: only branches retain snapshots")
	}
	if s.MaxSnapshotAgeMillis != nil {
		if s.GetMaxSnapshotAgeMillis() <= 0 {
			return fmt.Errorf("the age of its snapshots must be positive")
		}
		r.MaxSnapshotAgeMS = s.MaxSnapshotAgeMillis
	}
	if s.MinSnapshotsToKeep != nil {
		if s.GetMinSnapshotsToKeep() <= 0 {
			return fmt.Errorf("the number of snapshots to keep must be positive")
		}
		r.MinSnapshotsToKeep = s.MinSnapshotsToKeep
	}
	return nil
}

// fastForward moves a branch to where another reference is, if nothing of the branch is left behind.
func (e *editor) fastForward(s *sinkv1.SetRef) error {
	to, ok := e.ref(s.GetFrom())
	if !ok {
		return e.noRef(s.GetFrom())
	}
	have, exists := e.ref(s.GetName())
	e.values["branch_updated"], e.values["updated_ref"] = s.GetName(), strconv.FormatInt(to.SnapshotID, 10)
	if !exists {
		e.put(s.GetName(), meta.Ref{SnapshotID: to.SnapshotID, Type: branchType})
		return nil
	}
	e.values["previous_ref"] = strconv.FormatInt(have.SnapshotID, 10)
	switch {
	case have.Type != branchType:
		return fmt.Errorf("%s is a %s and does not move", s.GetName(), have.Type)
	case have.SnapshotID == to.SnapshotID:
		return nil
	case !e.table.isAncestor(have.SnapshotID, &to.SnapshotID):
		return fmt.Errorf("branch %s cannot be moved forward to %s: its snapshot %d is no ancestor of snapshot %d", s.GetName(), s.GetFrom(), have.SnapshotID, to.SnapshotID)
	}
	have.SnapshotID = to.SnapshotID
	e.put(s.GetName(), have)
	return nil
}

func (e *editor) dropRef(d *sinkv1.DropRef) error {
	kind := kindName(d.GetTag())
	have, exists := e.ref(d.GetName())
	switch {
	case !exists && (d.GetIfExists() || e.again):
		return nil
	case !exists:
		return e.noRef(d.GetName())
	case have.Type != kind:
		return fmt.Errorf("%s is a %s, not a %s", d.GetName(), have.Type, kind)
	case d.GetName() == meta.MainBranch:
		return fmt.Errorf("branch main is the table and stays")
	}
	e.refs[d.GetName()] = nil
	return nil
}
