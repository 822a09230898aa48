package evolve

import (
	"fmt"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// Options say how changes are planned.
type Options struct {
	Now time.Time
	// Again: an earlier try may have made the changes. What is as they would leave it is no error.
	Again bool
	// CheckProperty says why a property may not have the value. The property's name is put in front.
	CheckProperty func(key, value string) error
}

// Plan is what a request has to say to make the changes.
type Plan struct {
	Requirements []any
	Updates      []any
	Values       map[string]string // what the changes found, for people
	Warnings     []string
	// Pick is a snapshot whose changes a commit of its own is to make once more on top of main. The updates do not speak of it.
	Pick *meta.Snapshot
	// Head is main's snapshot after the changes.
	Head *int64
	want wanted
}

// Unchanged reports whether the table is so already.
func (p *Plan) Unchanged() bool { return len(p.Updates) == 0 && p.Pick == nil }

// editor applies changes to copies of the table's parts.
type editor struct {
	Options
	table *Table
	again bool

	schema        *Schema
	lastColumn    int32
	spec          *specEdit // nil: untouched
	lastPartition int32
	order         []SortField // nil: untouched
	orderSet      bool
	upgrade       int // 0: none
	set           map[string]string
	unset         map[string]bool
	refs          map[string]*meta.Ref // changed ones; nil: dropped
	removed       []int64              // snapshots
	pick          *meta.Snapshot
	values        map[string]string
	warnings      []string
	pinned        map[string]bool // references whose place the plan relies on
}

// Changes plans changes that are made together.
func Changes(t *Table, changes []*sinkv1.Change, o Options) (*Plan, error) {
	e := &editor{
		Options: o, table: t, again: o.Again, schema: t.schema().clone(), lastColumn: t.LastColumnID, lastPartition: t.LastPartitionID,
		set: map[string]string{}, unset: map[string]bool{}, refs: map[string]*meta.Ref{}, values: map[string]string{}, pinned: map[string]bool{},
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("there is nothing to change")
	}
	for _, c := range changes { // an upgrade first: it decides what the others may do
		if err := e.upgradeFirst(c); err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		if err := e.change(c); err != nil {
			return nil, err
		}
	}
	if e.pick != nil && len(changes) > 1 {
		return nil, fmt.Errorf("snapshot %d was not made on main's head, and what puts it there is not done together with other changes", e.pick.ID)
	}
	return e.plan()
}

// version is the table's format version after the changes.
func (e *editor) version() int { return max(e.table.FormatVersion, e.upgrade) }

func (e *editor) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}

func (e *editor) change(c *sinkv1.Change) error {
	switch k := c.GetKind().(type) {
	case *sinkv1.Change_AddColumn:
		return e.addColumn(k.AddColumn)
	case *sinkv1.Change_DropColumn:
		return e.dropColumn(k.DropColumn)
	case *sinkv1.Change_RenameColumn:
		return e.renameColumn(k.RenameColumn)
	case *sinkv1.Change_ChangeColumn:
		return e.changeColumn(k.ChangeColumn)
	case *sinkv1.Change_AddPartitionField:
		return e.addPartition(k.AddPartitionField)
	case *sinkv1.Change_DropPartitionField:
		return e.dropPartition(k.DropPartitionField)
	case *sinkv1.Change_ReplacePartitionField:
		if err := e.dropPartition(k.ReplacePartitionField.GetDrop()); err != nil {
			return err
		}
		return e.addPartition(k.ReplacePartitionField.GetAdd())
	case *sinkv1.Change_SetSort:
		return e.setSort(k.SetSort)
	case *sinkv1.Change_SetProperties:
		return e.setProperties(k.SetProperties)
	case *sinkv1.Change_UnsetProperties:
		return e.unsetProperties(k.UnsetProperties)
	case *sinkv1.Change_SetRef:
		return e.setRef(k.SetRef)
	case *sinkv1.Change_DropRef:
		return e.dropRef(k.DropRef)
	case *sinkv1.Change_SetSnapshot:
		return e.setSnapshot(k.SetSnapshot)
	case *sinkv1.Change_ExpireSnapshots:
		return e.expire(k.ExpireSnapshots)
	case *sinkv1.Change_CherryPick:
		return e.cherryPick(k.CherryPick)
	}
	return fmt.Errorf("a change of this kind is %w", meta.ErrUnsupported)
}
