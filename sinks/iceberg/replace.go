package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"google.golang.org/protobuf/proto"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// replacement is the definition that a CREATE OR REPLACE TABLE gives a table that exists. Its snapshots, branches and properties stay; the properties of the
// statement are set besides.
type replacement struct {
	NewSchema   bool              `json:"new-schema,omitempty"`
	NewSpec     bool              `json:"new-spec,omitempty"`
	NewOrder    bool              `json:"new-order,omitempty"`
	SortOrder   json.RawMessage   `json:"sort-order"`
	SortOrderID int32             `json:"sort-order-id"`
	Properties  map[string]string `json:"properties,omitempty"`
	Version     int               `json:"version,omitempty"` // to upgrade to
	Base        layoutIDs         `json:"base"`
}

// layoutIDs tell whether a table's definition has been changed. New ids are given on top of them.
type layoutIDs struct {
	Schema, Spec, Order       int32
	LastColumn, LastPartition int32
	Version                   int
}

func idsOf(m *meta.Metadata) layoutIDs {
	return layoutIDs{m.CurrentSchemaID, m.DefaultSpecID, m.DefaultSortOrderID, m.LastColumnID, m.LastPartitionID, m.FormatVersion}
}

// prepareReplace plans the definition and the rows that take the place of a table's.
func (s *Sink) prepareReplace(ctx context.Context, h Host, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	t, err := s.existing(ctx, h, req.GetTable())
	if err != nil {
		return nil, err
	}
	l, r, warnings, err := replaceLayout(t.Metadata, req)
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	spec, err := newSpec(*l, nil)
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	if spec.SinkState, err = withReplacement(spec.GetSinkState(), r); err != nil {
		return nil, err
	}
	if id := t.HeadID(); id != nil {
		spec.BaseVersion = versionOf(*id)
	}
	spec.Warnings = append(warnings, spec.GetWarnings()...)
	return &sinkv1.PrepareWriteResponse{Spec: spec}, nil
}

func withReplacement(raw []byte, r *replacement) ([]byte, error) {
	var st state
	if err := json.Unmarshal(raw, &st); err != nil {
		return nil, err
	}
	st.Replace = r
	return st.encode()
}

func replaceLayout(m *meta.Metadata, req *sinkv1.PrepareWriteRequest) (*layout, *replacement, []string, error) {
	if err := writable(m); err != nil {
		return nil, nil, nil, err
	}
	if b := req.GetBranch(); b != "" && b != meta.MainBranch {
		return nil, nil, nil, fmt.Errorf("branch %q: a table is replaced as a whole, not on a branch", b)
	}
	def := proto.CloneOf(req.GetDefinition())
	if def == nil {
		return nil, nil, nil, errors.New("a replacement without a definition")
	}
	if def.Properties == nil {
		def.Properties = map[string]string{}
	}
	if _, ok := def.Properties[propFormatVersion]; !ok {
		def.Properties[propFormatVersion] = strconv.Itoa(m.FormatVersion)
	}
	d, err := define(def)
	switch {
	case err != nil:
		return nil, nil, nil, err
	case d.version < m.FormatVersion:
		return nil, nil, nil, fmt.Errorf("property format-version=%d: the table has version %d, and there is no way back", d.version, m.FormatVersion)
	case d.version < 2:
		return nil, nil, nil, errors.New("it has format version 1, and only version 2 and above can remove files safely; set 'format-version' to 2")
	case d.location != "" && !sameLocation(d.location, m.Location):
		return nil, nil, nil, fmt.Errorf("location %s: the table stays at %s", d.location, m.Location)
	}
	r := &replacement{Properties: d.properties, Base: idsOf(m)}
	if d.version > m.FormatVersion {
		r.Version = d.version
	}
	l := d.layout
	l.uuid, l.location, l.intent = m.UUID, m.Location, intent{mode: sinkv1.WriteMode_WRITE_MODE_REPLACE}
	l.properties = maps.Clone(m.Properties)
	if l.properties == nil {
		l.properties = map[string]string{}
	}
	maps.Copy(l.properties, d.properties)
	if l.schema, r.NewSchema, err = m.ReplaceSchema(d.schema.Fields); err != nil {
		return nil, nil, nil, err
	}
	clauses := definition{layout: layout{schema: l.schema}} // by the new ids
	if err := clauses.clauses(def); err != nil {
		return nil, nil, nil, err
	}
	if l.spec, r.NewSpec, err = m.ReplaceSpec(clauses.spec); err != nil {
		return nil, nil, nil, err
	}
	if l.order, r.NewOrder, err = m.ReplaceSortOrder(clauses.order); err != nil {
		return nil, nil, nil, err
	}
	r.SortOrder, r.SortOrderID = l.order.JSON, l.order.ID
	head, err := m.Head()
	if err == nil && head != nil {
		l.intent.sequence = head.SequenceNumber
	}
	return &l, r, d.warnings, err
}

// replaceable says why a table's definition cannot be replaced as it was planned.
func (b *batch) replaceable(t *table) error {
	if err := writable(t.Metadata); err != nil {
		return err
	}
	if now := idsOf(t.Metadata); now != b.plan.Replace.Base {
		return fmt.Errorf("its columns, partitioning, sort order or version have been changed since the statement was planned; run it again")
	}
	return nil
}

// redefine replaces a table's definition, in the order in which the parts depend on each other. -1 is the part that was added last.
func (r *request) redefine(p *plan) {
	d := p.Replace
	r.requirements = append(r.requirements,
		object{"type": "assert-last-assigned-field-id", "last-assigned-field-id": d.Base.LastColumn},
		object{"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": d.Base.LastPartition},
		object{"type": "assert-default-spec-id", "default-spec-id": d.Base.Spec},
		object{"type": "assert-default-sort-order-id", "default-sort-order-id": d.Base.Order},
	)
	if d.Version > 0 {
		r.updates = append(r.updates, object{"action": "upgrade-format-version", "format-version": d.Version})
	}
	part := func(isNew bool, add object, set, member string, id int32) {
		if isNew {
			r.updates = append(r.updates, add)
			id = -1
		}
		r.updates = append(r.updates, object{"action": set, member: id})
	}
	part(d.NewSchema, object{"action": "add-schema", "schema": p.SchemaJSON, "last-column-id": max(p.schema.Highest(), d.Base.LastColumn)},
		"set-current-schema", "schema-id", p.GetSchemaId())
	part(d.NewSpec, object{"action": "add-spec", "spec": p.SpecJSON}, "set-default-spec", "spec-id", p.GetSpecId())
	part(d.NewOrder, object{"action": "add-sort-order", "sort-order": d.SortOrder}, "set-default-sort-order", "sort-order-id", d.SortOrderID)
}
