package catalogtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/signet-io/signet/catalog"
)

// SchemaJSON is a small schema with a required and an optional column.
const SchemaJSON = `{"type":"struct","schema-id":0,"fields":[
	{"id":1,"name":"id","required":true,"type":"long"},
	{"id":2,"name":"name","required":false,"type":"string"}]}`

// Spec is a CreateSpec with SchemaJSON.
func Spec() catalog.CreateSpec { return catalog.CreateSpec{Schema: json.RawMessage(SchemaJSON)} }

// SnapshotID makes up an id, positive as all of Iceberg's are.
func SnapshotID() int64 { return rand.Int64N(1<<62) + 1 }

// Append returns the requirements and updates that append a snapshot of that id to the table as it was loaded. Its manifest list
// does not exist: no catalog looks at it.
func Append(t *catalog.Table, id int64) (requirements, updates []byte) {
	var parent any
	if s := t.Metadata.CurrentSnapshot(); s != nil {
		parent = s.SnapshotID
	}
	reqs := []map[string]any{
		{"type": "assert-table-uuid", "uuid": t.UUID},
		{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
	}
	snap := snapshot(t.Location, id, t.Metadata.LastSequenceNumber()+1)
	if parent != nil {
		snap["parent-snapshot-id"] = parent
	}
	if t.Metadata.Version() >= 3 {
		snap["first-row-id"], snap["added-rows"] = t.Metadata.NextRowID(), 1
	}
	return encode(reqs), encode([]map[string]any{addSnapshot(snap), setMain(id)})
}

// Staged returns the requirements and updates that create a table and append a first snapshot in one step. An empty location
// leaves that to the catalog.
func Staged(tableUUID, location string, id int64) (requirements, updates []byte) {
	if tableUUID == "" {
		tableUUID = uuid.NewString()
	}
	ups := []map[string]any{
		{"action": "assign-uuid", "uuid": tableUUID},
		{"action": "upgrade-format-version", "format-version": 2},
		{"action": "add-schema", "schema": json.RawMessage(SchemaJSON), "last-column-id": 2},
		{"action": "set-current-schema", "schema-id": -1},
		{"action": "add-spec", "spec": map[string]any{"spec-id": 0, "fields": []any{}}},
		{"action": "set-default-spec", "spec-id": -1},
		{"action": "add-sort-order", "sort-order": map[string]any{"order-id": 0, "fields": []any{}}},
		{"action": "set-default-sort-order", "sort-order-id": -1},
		{"action": "set-properties", "updates": map[string]string{"made": "staged"}},
		addSnapshot(snapshot("file:///nowhere", id, 1)), setMain(id),
	}
	if location != "" {
		ups = append(ups, map[string]any{"action": "set-location", "location": location})
	}
	return encode([]map[string]any{{"type": "assert-create"}}), encode(ups)
}

// SetProperties returns a request that sets properties, if the table is still the one of that UUID.
func SetProperties(t *catalog.Table, props map[string]string) (requirements, updates []byte) {
	return encode([]map[string]any{{"type": "assert-table-uuid", "uuid": t.UUID}}),
		encode([]map[string]any{{"action": "set-properties", "updates": props}})
}

func snapshot(location string, id, sequence int64) map[string]any {
	return map[string]any{
		"snapshot-id": id, "sequence-number": sequence, "timestamp-ms": time.Now().UnixMilli(), "schema-id": 0,
		"manifest-list": fmt.Sprintf("%s/metadata/snap-%d.avro", location, id),
		"summary":       map[string]string{"operation": "append", "added-records": "1"},
	}
}

func addSnapshot(snap map[string]any) map[string]any {
	return map[string]any{"action": "add-snapshot", "snapshot": snap}
}

func setMain(id int64) map[string]any {
	return map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id}
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers only
	}
	return b
}
