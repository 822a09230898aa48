package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// request is a catalog request, parsed as far as it is vetted.
type request struct {
	requirements, updates json.RawMessage // compact, as they will be sent

	assertCreate bool
	assertUUID   string
	assertRef    string // the branch that is pinned
	parent       *int64

	actions    []string
	snapshot   *snapshot
	ref        *snapshotRef
	properties []map[string]string
	assignUUID string
	location   string
	version    int // format version asked for
}

// snapshot is the member of add-snapshot.
type snapshot struct {
	ID           int64             `json:"snapshot-id"`
	Parent       *int64            `json:"parent-snapshot-id"`
	Sequence     int64             `json:"sequence-number"`
	TimestampMs  int64             `json:"timestamp-ms"`
	ManifestList string            `json:"manifest-list"`
	Summary      map[string]string `json:"summary"`
	SchemaID     *int              `json:"schema-id"`
	FirstRowID   *int64            `json:"first-row-id"`
	AddedRows    *int64            `json:"added-rows"`
}

var snapshotMembers = []string{
	"snapshot-id", "parent-snapshot-id", "sequence-number", "timestamp-ms", "manifest-list", "summary", "schema-id", "first-row-id", "added-rows",
}

// snapshotRef is set-snapshot-ref.
type snapshotRef struct {
	Name       string `json:"ref-name"`
	Type       string `json:"type"`
	SnapshotID int64  `json:"snapshot-id"`
	MaxRefAge  *int64 `json:"max-ref-age-ms"`
	MaxSnapAge *int64 `json:"max-snapshot-age-ms"`
	MinToKeep  *int   `json:"min-snapshots-to-keep"`
}

// requirementMembers are the requirements that a request may carry. Those beyond UUID and head only make it stricter.
var requirementMembers = map[string][]string{
	"assert-create":                     {"type"},
	"assert-table-uuid":                 {"type", "uuid"},
	"assert-ref-snapshot-id":            {"type", "ref", "snapshot-id"},
	"assert-current-schema-id":          {"type", "current-schema-id"},
	"assert-default-spec-id":            {"type", "default-spec-id"},
	"assert-default-sort-order-id":      {"type", "default-sort-order-id"},
	"assert-last-assigned-field-id":     {"type", "last-assigned-field-id"},
	"assert-last-assigned-partition-id": {"type", "last-assigned-partition-id"},
}

// updateMembers are the updates that the broker knows. Which of them a request may carry depends on the write mode.
var updateMembers = map[string][]string{
	"assign-uuid":            {"action", "uuid"},
	"upgrade-format-version": {"action", "format-version"},
	"add-schema":             {"action", "schema", "last-column-id"},
	"set-current-schema":     {"action", "schema-id"},
	"add-spec":               {"action", "spec"},
	"add-partition-spec":     {"action", "spec"},
	"set-default-spec":       {"action", "spec-id"},
	"add-sort-order":         {"action", "sort-order"},
	"set-default-sort-order": {"action", "sort-order-id"},
	"set-location":           {"action", "location"},
	"set-properties":         {"action", "updates"},
	"add-snapshot":           {"action", "snapshot"},
	"set-snapshot-ref":       {"action", "ref-name", "type", "snapshot-id", "max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"},
}

// parseRequest refuses whatever it does not understand completely.
func parseRequest(requirements, updates []byte) (*request, error) {
	r := &request{}
	var err error
	if r.requirements, err = parseList(requirements, r.addRequirement); err != nil {
		return nil, invalid("requirements: %v", err)
	}
	if r.updates, err = parseList(updates, r.addUpdate); err != nil {
		return nil, invalid("updates: %v", err)
	}
	return r, nil
}

func parseList(doc []byte, add func(json.RawMessage) error) (json.RawMessage, error) {
	if err := uniqueMembers(doc); err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(doc, &items); err != nil {
		return nil, err
	}
	for _, it := range items {
		if err := add(it); err != nil {
			return nil, err
		}
	}
	return compact(doc)
}

// kindOf reads the member that names an item's kind and checks the item's members.
func kindOf(doc json.RawMessage, member string, known map[string][]string) (string, map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(doc, &all); err != nil {
		return "", nil, err
	}
	var kind string
	if err := json.Unmarshal(all[member], &kind); err != nil {
		return "", nil, fmt.Errorf("an item without %q", member)
	}
	allowed, ok := known[kind]
	if !ok {
		return "", nil, fmt.Errorf("%s %q is not allowed", member, kind)
	}
	m, err := members(doc, allowed...)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", kind, err)
	}
	return kind, m, nil
}

func (r *request) addRequirement(doc json.RawMessage) error {
	kind, m, err := kindOf(doc, "type", requirementMembers)
	if err != nil {
		return err
	}
	switch kind {
	case "assert-create":
		r.assertCreate = true
	case "assert-table-uuid":
		if r.assertUUID != "" {
			return fmt.Errorf("%s stands twice", kind)
		}
		if _, err := member(m, "uuid", &r.assertUUID); err != nil {
			return err
		}
		if _, err := uuid.Parse(r.assertUUID); err != nil {
			return fmt.Errorf("%s: %q is no UUID", kind, r.assertUUID)
		}
	case "assert-ref-snapshot-id":
		return r.addHead(m)
	}
	return nil
}

func (r *request) addHead(m map[string]json.RawMessage) error {
	var ref string
	if _, err := member(m, "ref", &ref); err != nil {
		return err
	}
	if ref == "" {
		return errors.New("assert-ref-snapshot-id of no ref")
	}
	if r.assertRef != "" {
		return errors.New("assert-ref-snapshot-id stands twice")
	}
	r.assertRef = ref
	var id int64
	ok, err := member(m, "snapshot-id", &id)
	if ok {
		r.parent = &id
	}
	return err
}

func (r *request) addUpdate(doc json.RawMessage) error {
	kind, m, err := kindOf(doc, "action", updateMembers)
	if err != nil {
		return err
	}
	if kind == "add-partition-spec" {
		kind = "add-spec"
	}
	if kind != "set-properties" && slices.Contains(r.actions, kind) {
		return fmt.Errorf("%s stands twice", kind)
	}
	r.actions = append(r.actions, kind)
	switch kind {
	case "add-snapshot":
		raw, ok := m["snapshot"]
		if !ok {
			return errors.New("add-snapshot without a snapshot")
		}
		if _, err := members(raw, snapshotMembers...); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		r.snapshot = &snapshot{}
		return json.Unmarshal(raw, r.snapshot)
	case "set-snapshot-ref":
		r.ref = &snapshotRef{}
		return json.Unmarshal(doc, r.ref)
	case "set-properties":
		var p map[string]string
		if _, err := member(m, "updates", &p); err != nil {
			return err
		}
		r.properties = append(r.properties, p)
	case "assign-uuid":
		_, err = member(m, "uuid", &r.assignUUID)
	case "set-location":
		_, err = member(m, "location", &r.location)
	case "upgrade-format-version":
		_, err = member(m, "format-version", &r.version)
	}
	return err
}

func sameUUID(a, b string) bool {
	x, errX := uuid.Parse(a)
	y, errY := uuid.Parse(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x == y
}
