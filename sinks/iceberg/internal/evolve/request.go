package evolve

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

type object map[string]any

// wanted is the state that a plan's updates lead to, as far as they speak of it.
type wanted struct {
	version  int
	schema   *Schema
	spec     []SpecField
	specSet  bool
	order    []SortField
	orderSet bool
	set      map[string]string
	unset    []string
	refs     map[string]*meta.Ref
	removed  []int64
}

// plan checks what the changes have made, and says what is different.
func (e *editor) plan() (*Plan, error) {
	p := &Plan{Values: e.values, Warnings: e.warnings, Pick: e.pick, Head: e.head()}
	p.want = wanted{set: e.set, unset: slices.Sorted(maps.Keys(e.unset)), removed: e.removed, refs: map[string]*meta.Ref{}}
	fields, order := e.table.spec().Fields, e.table.order().Fields
	if e.spec != nil {
		fields = e.specResult()
	}
	if e.orderSet {
		order = e.order
	}
	if err := e.checkSpec(fields); err != nil {
		return nil, err
	}
	if err := e.checkOrder(order); err != nil {
		return nil, err
	}
	if e.upgrade > 0 {
		p.want.version = e.upgrade
		p.update("upgrade-format-version", object{"format-version": e.upgrade})
	}
	if err := e.planSchema(p); err != nil {
		return nil, err
	}
	if err := e.planSpec(p, fields); err != nil {
		return nil, err
	}
	if err := e.planOrder(p, order); err != nil {
		return nil, err
	}
	if len(e.set) > 0 {
		p.update("set-properties", object{"updates": e.set})
	}
	if len(p.want.unset) > 0 {
		p.update("remove-properties", object{"removals": p.want.unset})
	}
	e.planRefs(p)
	if len(e.removed) > 0 {
		p.update("remove-snapshots", object{"snapshot-ids": e.removed})
	}
	e.require(p)
	return p, nil
}

func (p *Plan) update(action string, o object) {
	o["action"] = action
	p.Updates = append(p.Updates, o)
}

func (p *Plan) requires(kind string, o object) {
	o["type"] = kind
	p.Requirements = append(p.Requirements, o)
}

// planSchema makes the schema current, a former one of the table where it is equal (so that ids do not pile up).
func (e *editor) planSchema(p *Plan) error {
	if e.schema.same(e.table.schema()) {
		return nil
	}
	if err := e.checkNames(); err != nil {
		return err
	}
	p.want.schema = e.schema
	next := int32(0)
	for _, s := range e.table.Schemas {
		if s.same(e.schema) {
			p.update("set-current-schema", object{"schema-id": s.ID})
			return nil
		}
		next = max(next, s.ID+1)
	}
	e.schema.ID = next
	raw, err := json.Marshal(e.schema)
	if err != nil {
		return err
	}
	p.update("add-schema", object{"schema": json.RawMessage(raw), "last-column-id": e.lastColumn})
	p.update("set-current-schema", object{"schema-id": -1})
	return nil
}

func (e *editor) planSpec(p *Plan, fields []SpecField) error {
	if e.spec == nil || sameFields(fields, e.table.spec().Fields) {
		return nil
	}
	p.want.spec, p.want.specSet = fields, true
	next := int32(0)
	for _, s := range e.table.Specs {
		if sameFields(s.Fields, fields) {
			p.update("set-default-spec", object{"spec-id": s.ID})
			return nil
		}
		next = max(next, s.ID+1)
	}
	raw, err := (&Spec{ID: next, Fields: fields}).document()
	if err != nil {
		return err
	}
	p.update("add-spec", object{"spec": raw})
	p.update("set-default-spec", object{"spec-id": -1})
	return nil
}

func (e *editor) planOrder(p *Plan, fields []SortField) error {
	if !e.orderSet || sameSort(fields, e.table.order().Fields) {
		return nil
	}
	p.want.order, p.want.orderSet = fields, true
	next := int32(1)
	known := false
	for _, o := range e.table.SortOrders {
		if sameSort(o.Fields, fields) {
			p.update("set-default-sort-order", object{"sort-order-id": o.ID})
			return nil
		}
		known = known || o.ID == 0
		next = max(next, o.ID+1)
	}
	if len(fields) == 0 {
		next = 0
	}
	raw, err := (&SortOrder{ID: next, Fields: fields}).document()
	if err != nil {
		return err
	}
	p.update("add-sort-order", object{"sort-order": raw})
	p.update("set-default-sort-order", object{"sort-order-id": -1})
	return nil
}

func sameRef(a, b meta.Ref) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func (e *editor) planRefs(p *Plan) {
	for _, name := range slices.Sorted(maps.Keys(e.refs)) {
		r := e.refs[name]
		have, exists := e.table.Refs[name]
		switch {
		case r == nil && exists:
			p.want.refs[name] = nil
			p.update("remove-snapshot-ref", object{"ref-name": name})
		case r != nil && (!exists || !sameRef(have, *r)):
			p.want.refs[name] = r
			o := object{"ref-name": name, "type": r.Type, "snapshot-id": r.SnapshotID}
			if r.MaxRefAgeMS != nil {
				o["max-ref-age-ms"] = *r.MaxRefAgeMS
			}
			if r.MaxSnapshotAgeMS != nil {
				o["max-snapshot-age-ms"] = *r.MaxSnapshotAgeMS
			}
			if r.MinSnapshotsToKeep != nil {
				o["min-snapshots-to-keep"] = *r.MinSnapshotsToKeep
			}
			p.update("set-snapshot-ref", o)
		}
	}
}

// require pins what the plan was made on (UpdateRequirements of the reference implementation).
func (e *editor) require(p *Plan) {
	if p.Unchanged() {
		return
	}
	p.requires("assert-table-uuid", object{"uuid": e.table.UUID})
	if p.want.schema != nil || e.spec != nil || e.orderSet { // the others refer to its columns
		p.requires("assert-current-schema-id", object{"current-schema-id": e.table.CurrentSchemaID})
	}
	if p.want.schema != nil {
		p.requires("assert-last-assigned-field-id", object{"last-assigned-field-id": e.table.saidColumn})
		// A column may be gone from the schema that the spec or the order has come to use meanwhile.
		p.requires("assert-default-sort-order-id", object{"default-sort-order-id": e.table.DefaultSortOrderID})
	} else if e.orderSet {
		p.requires("assert-default-sort-order-id", object{"default-sort-order-id": e.table.DefaultSortOrderID})
	}
	if p.want.specSet || p.want.schema != nil {
		p.requires("assert-default-spec-id", object{"default-spec-id": e.table.DefaultSpecID})
	}
	if p.want.specSet && e.table.saidPartition != nil {
		p.requires("assert-last-assigned-partition-id", object{"last-assigned-partition-id": *e.table.saidPartition})
	}
	for name := range e.refs {
		e.pinned[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(e.pinned)) {
		if !e.pinned[name] {
			continue
		}
		var id any
		if r, ok := e.table.Refs[name]; ok {
			id = r.SnapshotID
		}
		p.requires("assert-ref-snapshot-id", object{"ref": name, "snapshot-id": id})
	}
}

// Made reports whether the table is as the plan wanted it: for a request whose answer was lost.
func (p *Plan) Made(t *Table) bool {
	w := &p.want
	switch {
	case t.FormatVersion < w.version,
		w.schema != nil && !t.schema().same(w.schema),
		w.specSet && !sameFields(t.spec().Fields, w.spec),
		w.orderSet && !sameSort(t.order().Fields, w.order):
		return false
	}
	for k, v := range w.set {
		if have, ok := t.Properties[k]; !ok || have != v {
			return false
		}
	}
	for _, k := range w.unset {
		if _, ok := t.Properties[k]; ok {
			return false
		}
	}
	for name, r := range w.refs {
		if have, ok := t.Refs[name]; ok != (r != nil) || ok && !sameRef(have, *r) {
			return false
		}
	}
	for _, id := range w.removed {
		if t.Snapshot(id) != nil {
			return false
		}
	}
	return true
}

// Holds reports whether the table is still as the plan found it, as far as the requirements say: then the very same request may be sent again.
func (p *Plan) Holds(t *Table) error {
	for _, r := range p.Requirements {
		o, _ := r.(object)
		ok := true
		switch o["type"] {
		case "assert-table-uuid":
			ok = o["uuid"] == t.UUID
		case "assert-current-schema-id":
			ok = o["current-schema-id"] == t.CurrentSchemaID
		case "assert-last-assigned-field-id":
			ok = o["last-assigned-field-id"] == t.saidColumn
		case "assert-default-spec-id":
			ok = o["default-spec-id"] == t.DefaultSpecID
		case "assert-last-assigned-partition-id":
			ok = t.saidPartition != nil && o["last-assigned-partition-id"] == *t.saidPartition
		case "assert-default-sort-order-id":
			ok = o["default-sort-order-id"] == t.DefaultSortOrderID
		case "assert-ref-snapshot-id":
			have, exists := t.Refs[o["ref"].(string)]
			ok = exists == (o["snapshot-id"] != nil) && (!exists || o["snapshot-id"] == have.SnapshotID)
		}
		if !ok {
			return fmt.Errorf("%v does not hold any more", o["type"])
		}
	}
	return nil
}
