package iceberg

import (
	"encoding/json"

	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// request is what CommitTable gets: requirements and updates as Iceberg's REST protocol writes them.
type request struct {
	requirements []any
	updates      []any
}

func (r *request) encode() (requirements, updates []byte, err error) {
	if requirements, err = json.Marshal(r.requirements); err != nil {
		return nil, nil, err
	}
	updates, err = json.Marshal(r.updates)
	return requirements, updates, err
}

type object map[string]any

// onHead asserts that the table is still the one, in the state, that the request was built on.
func (r *request) onHead(t *table, branch string) error {
	head, err := t.BranchID(branch)
	r.requirements = append(r.requirements,
		object{"type": "assert-table-uuid", "uuid": t.UUID},
		object{"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": head},
		// A column may become required without the head moving.
		object{"type": "assert-current-schema-id", "current-schema-id": t.CurrentSchemaID},
	)
	return err
}

// snapshot adds a snapshot and points the branch to it, with the retention that the branch has.
func (r *request) snapshot(s *meta.Snapshot, branch string, now meta.Ref) {
	now.SnapshotID, now.Type = s.ID, "branch"
	r.updates = append(r.updates, object{"action": "add-snapshot", "snapshot": s}, struct {
		Action string `json:"action"`
		Name   string `json:"ref-name"`
		meta.Ref
	}{"set-snapshot-ref", branch, now})
}

// stage adds a snapshot that no branch gets.
func (r *request) stage(s *meta.Snapshot) {
	r.updates = append(r.updates, object{"action": "add-snapshot", "snapshot": s})
}

func (r *request) setProperties(p map[string]string) {
	r.updates = append(r.updates, object{"action": "set-properties", "updates": p})
}

// create makes the table of a plan, in the order in which the parts depend on each other. -1 is the part that was added last.
func (r *request) create(p *plan) {
	r.requirements = append(r.requirements, object{"type": "assert-create"})
	r.updates = append(r.updates,
		object{"action": "assign-uuid", "uuid": p.GetTableUuid()},
		object{"action": "upgrade-format-version", "format-version": p.GetFormatVersion()},
		object{"action": "add-schema", "schema": p.SchemaJSON, "last-column-id": p.schema.Highest()},
		object{"action": "set-current-schema", "schema-id": -1},
		object{"action": "add-spec", "spec": p.SpecJSON},
		object{"action": "set-default-spec", "spec-id": -1},
		object{"action": "add-sort-order", "sort-order": p.Create.SortOrder},
		object{"action": "set-default-sort-order", "sort-order-id": -1},
		object{"action": "set-location", "location": p.Location},
	)
}
