package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// ErrInvalid is wrapped by errors about a metadata.json that contradicts the specification.
var ErrInvalid = errors.New("invalid table metadata")

// MainBranch is the branch that readers see.
const MainBranch = "main"

// Ref is a branch or a tag. Its retention is repeated when the branch moves.
type Ref struct {
	SnapshotID         int64  `json:"snapshot-id"`
	Type               string `json:"type"`
	MinSnapshotsToKeep *int32 `json:"min-snapshots-to-keep,omitempty"`
	MaxSnapshotAgeMS   *int64 `json:"max-snapshot-age-ms,omitempty"`
	MaxRefAgeMS        *int64 `json:"max-ref-age-ms,omitempty"`
}

// Snapshot is one snapshot of a table.
type Snapshot struct {
	ID             int64             `json:"snapshot-id"`
	ParentID       *int64            `json:"parent-snapshot-id,omitempty"`
	SequenceNumber int64             `json:"sequence-number,omitempty"`
	TimestampMS    int64             `json:"timestamp-ms"`
	ManifestList   string            `json:"manifest-list,omitempty"`
	Manifests      []string          `json:"manifests,omitempty"` // format version 1, before there were lists
	Summary        map[string]string `json:"summary,omitempty"`
	SchemaID       *int32            `json:"schema-id,omitempty"`
	FirstRowID     *int64            `json:"first-row-id,omitempty"`
	AddedRows      *int64            `json:"added-rows,omitempty"`
	KeyID          string            `json:"key-id,omitempty"`
}

// Metadata is a metadata.json. Its parts are read when they are asked for. It is not changed after Parse and may be shared.
type Metadata struct {
	FormatVersion      int
	UUID               string
	Location           string // without a trailing slash
	LastSequenceNumber int64
	LastUpdatedMS      int64
	NextRowID          int64
	CurrentSchemaID    int32
	DefaultSpecID      int32
	DefaultSortOrderID int32
	LastColumnID       int32
	LastPartitionID    int32
	Properties         map[string]string
	Refs               map[string]Ref
	Encrypted          bool // it names encryption keys

	schemas    map[int32]json.RawMessage
	specs      map[int32]json.RawMessage
	sortOrders map[int32]json.RawMessage
	snapshots  []json.RawMessage
	current    *int64
	log        json.RawMessage
}

type jsonMetadata struct {
	FormatVersion      int               `json:"format-version"`
	UUID               string            `json:"table-uuid"`
	Location           string            `json:"location"`
	LastSequenceNumber int64             `json:"last-sequence-number"`
	LastUpdatedMS      int64             `json:"last-updated-ms"`
	NextRowID          int64             `json:"next-row-id"`
	CurrentSchemaID    int32             `json:"current-schema-id"`
	Schemas            []json.RawMessage `json:"schemas"`
	Schema             json.RawMessage   `json:"schema"`
	DefaultSpecID      int32             `json:"default-spec-id"`
	Specs              []jsonSpec        `json:"partition-specs"`
	Spec               json.RawMessage   `json:"partition-spec"`
	DefaultSortOrderID int32             `json:"default-sort-order-id"`
	SortOrders         []json.RawMessage `json:"sort-orders"`
	Properties         map[string]string `json:"properties"`
	LastColumnID       int32             `json:"last-column-id"`
	LastPartitionID    *int32            `json:"last-partition-id"`
	CurrentSnapshotID  *int64            `json:"current-snapshot-id"`
	Snapshots          []json.RawMessage `json:"snapshots"`
	SnapshotLog        json.RawMessage   `json:"snapshot-log"`
	Refs               map[string]Ref    `json:"refs"`
	EncryptionKeys     []json.RawMessage `json:"encryption-keys"`
}

type jsonSpec struct {
	ID     int32           `json:"spec-id"`
	Fields json.RawMessage `json:"fields"`
}

// Parse reads a metadata.json of format version 1, 2 or 3.
func Parse(raw []byte) (*Metadata, error) {
	var j jsonMetadata
	if !j.unmarshalApart(raw) {
		j = jsonMetadata{}
		if err := json.Unmarshal(raw, &j); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if j.FormatVersion < 1 || j.FormatVersion > 3 {
		return nil, fmt.Errorf("table format version %d is %w: Signet knows 1 to 3", j.FormatVersion, ErrUnsupported)
	}
	m := &Metadata{
		FormatVersion: j.FormatVersion, UUID: j.UUID, Location: strings.TrimRight(j.Location, "/"), LastSequenceNumber: j.LastSequenceNumber,
		LastUpdatedMS: j.LastUpdatedMS, NextRowID: j.NextRowID, CurrentSchemaID: j.CurrentSchemaID, DefaultSpecID: j.DefaultSpecID,
		DefaultSortOrderID: j.DefaultSortOrderID, Properties: j.Properties, Refs: j.Refs, Encrypted: len(j.EncryptionKeys) > 0,
		schemas: map[int32]json.RawMessage{}, specs: map[int32]json.RawMessage{}, sortOrders: map[int32]json.RawMessage{},
		snapshots: j.Snapshots, current: j.CurrentSnapshotID, log: j.SnapshotLog, LastColumnID: j.LastColumnID, LastPartitionID: firstPartitionID - 1,
	}
	if j.LastPartitionID != nil {
		m.LastPartitionID = *j.LastPartitionID
	}
	if id, err := uuid.Parse(m.UUID); err != nil || m.Location == "" {
		return nil, fmt.Errorf("%w: it must have a table-uuid and a location", ErrInvalid)
	} else {
		m.UUID = id.String()
	}
	if m.current != nil && *m.current == -1 { // what early versions wrote for "none"
		m.current = nil
	}
	return m, m.collect(&j)
}

func (m *Metadata) collect(j *jsonMetadata) error {
	if len(j.Schemas) == 0 && len(j.Schema) > 0 { // format version 1
		j.Schemas = []json.RawMessage{j.Schema}
	}
	for i, raw := range j.Schemas {
		var id struct {
			ID *int32 `json:"schema-id"`
		}
		if err := json.Unmarshal(raw, &id); err != nil {
			return fmt.Errorf("%w: schema %d: %w", ErrInvalid, i, err)
		}
		if id.ID == nil {
			id.ID = &m.CurrentSchemaID
		}
		m.schemas[*id.ID] = raw
	}
	if len(j.Specs) == 0 && len(j.Spec) > 0 {
		j.Specs = []jsonSpec{{ID: m.DefaultSpecID, Fields: j.Spec}}
	}
	for _, s := range j.Specs {
		m.specs[s.ID] = s.Fields
	}
	for i, raw := range j.SortOrders {
		var id struct {
			ID int32 `json:"order-id"`
		}
		if err := json.Unmarshal(raw, &id); err != nil {
			return fmt.Errorf("%w: sort order %d: %w", ErrInvalid, i, err)
		}
		m.sortOrders[id.ID] = raw
	}
	return nil
}

// Schema returns the schema of that id, or nil if the table has none.
func (m *Metadata) Schema(id int32) (*Schema, error) {
	raw, ok := m.schemas[id]
	if !ok {
		return nil, nil //nolint:nilnil // absence is an answer here, not a failure
	}
	s, err := ParseSchema(raw)
	if err != nil {
		return nil, err
	}
	s.ID = id
	return s, nil
}

// CurrentSchema returns the table's current schema.
func (m *Metadata) CurrentSchema() (*Schema, error) {
	s, err := m.Schema(m.CurrentSchemaID)
	if s == nil && err == nil {
		err = fmt.Errorf("%w: no schema has the current-schema-id %d", ErrInvalid, m.CurrentSchemaID)
	}
	return s, err
}

// Spec returns the partition spec of that id, or nil if the table has none.
func (m *Metadata) Spec(id int32) (*Spec, error) {
	raw, ok := m.specs[id]
	if !ok {
		return nil, nil //nolint:nilnil // absence is an answer here, not a failure
	}
	return parseSpec(id, raw)
}

// DefaultSpec returns the spec that new files are written with.
func (m *Metadata) DefaultSpec() (*Spec, error) {
	s, err := m.Spec(m.DefaultSpecID)
	if s == nil && err == nil {
		err = fmt.Errorf("%w: no partition spec has the default-spec-id %d", ErrInvalid, m.DefaultSpecID)
	}
	return s, err
}

// SortOrder returns the default sort order; a table without one is unsorted.
func (m *Metadata) SortOrder() (*SortOrder, error) {
	raw, ok := m.sortOrders[m.DefaultSortOrderID]
	if !ok {
		return &SortOrder{}, nil
	}
	return parseSortOrder(raw)
}

// HeadID is the snapshot that main points to, or nil for a table without data.
func (m *Metadata) HeadID() *int64 {
	if r, ok := m.Refs[MainBranch]; ok {
		return &r.SnapshotID
	}
	return m.current
}

// Head is the snapshot that main points to, or nil.
func (m *Metadata) Head() (*Snapshot, error) {
	id := m.HeadID()
	if id == nil {
		return nil, nil //nolint:nilnil // absence is an answer here, not a failure
	}
	s, err := m.Snapshot(*id)
	if s == nil && err == nil {
		err = fmt.Errorf("%w: the current snapshot %d is not in the list of snapshots", ErrInvalid, *id)
	}
	return s, err
}

// BranchID is the snapshot that a branch points to, or nil for the main branch of a table without data. Empty is the main branch. Branches must exist, and
// tags are none.
func (m *Metadata) BranchID(name string) (*int64, error) {
	if name == "" || name == MainBranch {
		return m.HeadID(), nil
	}
	ref, ok := m.Refs[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("branch %q does not exist; create it with ALTER TABLE ... CREATE BRANCH", name)
	case ref.Type != "branch":
		return nil, fmt.Errorf("%q is a %s, and only branches are written to", name, ref.Type)
	}
	return &ref.SnapshotID, nil
}

// Branch is the snapshot that a branch points to, or nil.
func (m *Metadata) Branch(name string) (*Snapshot, error) {
	id, err := m.BranchID(name)
	if id == nil || err != nil {
		return nil, err
	}
	s, err := m.Snapshot(*id)
	if s == nil && err == nil {
		err = fmt.Errorf("%w: snapshot %d of branch %q is not in the list of snapshots", ErrInvalid, *id, name)
	}
	return s, err
}

// Snapshot returns the snapshot of that id, or nil.
func (m *Metadata) Snapshot(id int64) (*Snapshot, error) {
	s, err := m.find(strconv.FormatInt(id, 10), func(s *Snapshot) bool { return s.ID == id })
	return s, err
}

// FindMarked returns the newest snapshot whose summary names the marker under the key, as one item of a comma-separated list, or nil.
func (m *Metadata) FindMarked(key, marker string) (*Snapshot, error) {
	return m.find(marker, func(s *Snapshot) bool {
		for item := range strings.SplitSeq(s.Summary[key], ",") {
			if item == marker {
				return true
			}
		}
		return false
	})
}

// Summarized returns the newest snapshot whose summary says value of key, or nil.
func (m *Metadata) Summarized(key, value string) (*Snapshot, error) {
	return m.find(value, func(s *Snapshot) bool { return s.Summary[key] == value })
}

// find decodes only the snapshots whose text holds the needle, which must be written in JSON as it is.
func (m *Metadata) find(needle string, match func(*Snapshot) bool) (*Snapshot, error) {
	for i := len(m.snapshots) - 1; i >= 0; i-- {
		if !bytes.Contains(m.snapshots[i], []byte(needle)) {
			continue
		}
		var s Snapshot
		if err := json.Unmarshal(m.snapshots[i], &s); err != nil {
			return nil, fmt.Errorf("%w: snapshot: %w", ErrInvalid, err)
		}
		if match(&s) {
			return &s, nil
		}
	}
	return nil, nil //nolint:nilnil // absence is an answer here, not a failure
}
