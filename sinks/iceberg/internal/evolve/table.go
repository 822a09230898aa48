package evolve

import (
	"encoding/json"
	"fmt"

	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// Table is a metadata.json as far as changes need it. It is not changed by planning.
type Table struct {
	FormatVersion      int
	UUID               string
	Location           string
	LastColumnID       int32
	CurrentSchemaID    int32
	Schemas            []*Schema
	DefaultSpecID      int32
	Specs              []*Spec
	LastPartitionID    int32
	DefaultSortOrderID int32
	SortOrders         []*SortOrder
	Properties         map[string]string
	Current            *int64 // the snapshot that main points to
	Snapshots          []*meta.Snapshot
	Refs               map[string]meta.Ref

	saidColumn    int32  // last-column-id as the document has it
	saidPartition *int32 // last-partition-id likewise; nil: it does not say
}

type jsonTable struct {
	FormatVersion      int                 `json:"format-version"`
	UUID               string              `json:"table-uuid"`
	Location           string              `json:"location"`
	LastColumnID       int32               `json:"last-column-id"`
	CurrentSchemaID    int32               `json:"current-schema-id"`
	Schemas            []*Schema           `json:"schemas"`
	Schema             *Schema             `json:"schema"` // format version 1
	DefaultSpecID      int32               `json:"default-spec-id"`
	Specs              []*Spec             `json:"partition-specs"`
	Spec               []SpecField         `json:"partition-spec"` // format version 1
	LastPartitionID    *int32              `json:"last-partition-id"`
	DefaultSortOrderID int32               `json:"default-sort-order-id"`
	SortOrders         []*SortOrder        `json:"sort-orders"`
	Properties         map[string]string   `json:"properties"`
	Current            *int64              `json:"current-snapshot-id"`
	Snapshots          []*meta.Snapshot    `json:"snapshots"`
	Refs               map[string]meta.Ref `json:"refs"`
}

// Parse reads a metadata.json of format version 1, 2 or 3.
func Parse(raw []byte) (*Table, error) {
	var j jsonTable
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, fmt.Errorf("%w: %w", meta.ErrInvalid, err)
	}
	if j.FormatVersion < 1 || j.FormatVersion > 3 {
		return nil, fmt.Errorf("table format version %d is %w: Signet knows 1 to 3", j.FormatVersion, meta.ErrUnsupported)
	}
	if len(j.Schemas) == 0 && j.Schema != nil {
		j.Schema.ID = j.CurrentSchemaID
		j.Schemas = []*Schema{j.Schema}
	}
	if len(j.Specs) == 0 {
		j.Specs = []*Spec{{ID: j.DefaultSpecID, Fields: j.Spec}}
	}
	t := &Table{
		FormatVersion: j.FormatVersion, UUID: j.UUID, Location: j.Location, LastColumnID: j.LastColumnID, CurrentSchemaID: j.CurrentSchemaID,
		Schemas: j.Schemas, DefaultSpecID: j.DefaultSpecID, Specs: j.Specs, DefaultSortOrderID: j.DefaultSortOrderID, SortOrders: j.SortOrders,
		Properties: j.Properties, Current: j.Current, Snapshots: j.Snapshots, Refs: j.Refs,
	}
	if t.Properties == nil {
		t.Properties = map[string]string{}
	}
	if t.Refs == nil {
		t.Refs = map[string]meta.Ref{}
	}
	if r, ok := t.Refs[meta.MainBranch]; ok {
		t.Current = &r.SnapshotID
	} else if t.Current != nil && *t.Current != -1 { // -1 is what early versions wrote for "none"
		t.Refs[meta.MainBranch] = meta.Ref{SnapshotID: *t.Current, Type: branchType}
	} else {
		t.Current = nil
	}
	t.number(j.LastPartitionID)
	return t, t.check()
}

// number gives partition fields of format version 1 the ids that they have by their place, and finds the highest ids in use.
func (t *Table) number(last *int32) {
	t.saidColumn, t.saidPartition = t.LastColumnID, last
	t.LastPartitionID = firstPartitionID - 1
	if last != nil {
		t.LastPartitionID = max(t.LastPartitionID, *last)
	}
	for _, s := range t.Specs {
		for i := range s.Fields {
			f := &s.Fields[i]
			if f.FieldID == nil {
				id := firstPartitionID + int32(i)
				f.FieldID = &id
			}
			if f.SourceID == 0 && len(f.SourceIDs) == 1 {
				f.SourceID = f.SourceIDs[0]
			}
			t.LastPartitionID = max(t.LastPartitionID, *f.FieldID)
		}
	}
	for _, s := range t.Schemas {
		t.LastColumnID = max(t.LastColumnID, s.highest())
	}
}

func (t *Table) check() error {
	switch {
	case t.UUID == "" || t.Location == "":
		return fmt.Errorf("%w: it must have a table-uuid and a location", meta.ErrInvalid)
	case t.schema() == nil:
		return fmt.Errorf("%w: no schema has the current-schema-id %d", meta.ErrInvalid, t.CurrentSchemaID)
	case t.spec() == nil:
		return fmt.Errorf("%w: no partition spec has the default-spec-id %d", meta.ErrInvalid, t.DefaultSpecID)
	}
	return nil
}

func (t *Table) schema() *Schema {
	for _, s := range t.Schemas {
		if s.ID == t.CurrentSchemaID {
			return s
		}
	}
	return nil
}

func (t *Table) spec() *Spec {
	for _, s := range t.Specs {
		if s.ID == t.DefaultSpecID {
			return s
		}
	}
	return nil
}

// order is the default sort order; a table without one is unsorted.
func (t *Table) order() *SortOrder {
	for _, o := range t.SortOrders {
		if o.ID == t.DefaultSortOrderID {
			return o
		}
	}
	return &SortOrder{}
}

// Snapshot returns the snapshot of that id, or nil.
func (t *Table) Snapshot(id int64) *meta.Snapshot {
	for _, s := range t.Snapshots {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// ancestors are the snapshots from id on back, the newest first, as far as the table still has them.
func (t *Table) ancestors(id *int64) []*meta.Snapshot {
	byID := make(map[int64]*meta.Snapshot, len(t.Snapshots))
	for _, s := range t.Snapshots {
		byID[s.ID] = s
	}
	var out []*meta.Snapshot
	for id != nil {
		s := byID[*id]
		if s == nil {
			break
		}
		delete(byID, *id) // no circle, whatever the metadata says
		out = append(out, s)
		id = s.ParentID
	}
	return out
}

// isAncestor reports whether the snapshot is among those from head on back, head included.
func (t *Table) isAncestor(id int64, head *int64) bool {
	for _, s := range t.ancestors(head) {
		if s.ID == id {
			return true
		}
	}
	return false
}
