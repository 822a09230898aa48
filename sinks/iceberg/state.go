package iceberg

import (
	"encoding/json"
	"errors"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// state is WriteSpec.sink_state: what Stage and Commit need of the table as PrepareWrite saw it, so that they agree with it whatever has become of the table.
type state struct {
	V            int             `json:"v"` // of this document
	Location     string          `json:"location"`
	SchemaJSON   json.RawMessage `json:"schema"`
	SpecJSON     json.RawMessage `json:"spec"` // REST document
	ManifestSize int64           `json:"manifest-size"`
	Mode         int32           `json:"mode,omitempty"`      // sink.v1.WriteMode; 0: APPEND or CREATE
	Operation    string          `json:"operation,omitempty"` // delete, update, merge
	Isolation    string          `json:"isolation,omitempty"` // of row-level writes
	BaseSequence int64           `json:"base-sequence,omitempty"`
	CheckPaths   bool            `json:"check-paths,omitempty"` // of files that are added
	Create       *creation       `json:"create,omitempty"`
	Replace      *replacement    `json:"replace,omitempty"`
}

// creation is the table that a CREATE TABLE AS SELECT will create.
type creation struct {
	SortOrder  json.RawMessage   `json:"sort-order"`
	Properties map[string]string `json:"properties"`
}

const stateVersion = 1

// plan is a write spec with its state, read back and checked against each other.
type plan struct {
	*planv1.WriteSpec
	state
	schema    *meta.Schema
	partition *meta.Spec
}

func (st state) encode() ([]byte, error) {
	st.V = stateVersion
	return json.Marshal(st)
}

var errState = errors.New("the write spec was not made by this sink, or has been changed")

func readPlan(w *planv1.WriteSpec) (*plan, error) {
	p := &plan{WriteSpec: w}
	if err := json.Unmarshal(w.GetSinkState(), &p.state); err != nil || p.V != stateVersion {
		return nil, fmt.Errorf("%w: its state cannot be read (%w)", errState, err)
	}
	var err error
	if p.schema, err = meta.ParseSchema(p.SchemaJSON); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	if p.partition, err = meta.ParseSpec(p.SpecJSON); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	switch v := w.GetFormatVersion(); {
	case v < 1 || v > 3:
		err = fmt.Errorf("%w: format version %d", errState, v)
	case p.schema.ID != w.GetSchemaId() || p.partition.ID != w.GetSpecId():
		err = fmt.Errorf("%w: schema %d and spec %d, in the state %d and %d", errState, w.GetSchemaId(), w.GetSpecId(), p.schema.ID, p.partition.ID)
	case p.GetCreatesTable() != (p.Create != nil):
		err = fmt.Errorf("%w: it is half of a CREATE TABLE AS SELECT", errState)
	case (p.Replace != nil) != (sinkv1.WriteMode(p.Mode) == sinkv1.WriteMode_WRITE_MODE_REPLACE):
		err = fmt.Errorf("%w: it is half of a CREATE OR REPLACE TABLE", errState)
	}
	return p, err
}
