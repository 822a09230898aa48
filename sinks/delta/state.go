package delta

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
)

// errState: a write spec is none that PrepareWrite has made.
var errState = errors.New("the write spec is not one that this sink has prepared")

// state is what a write spec carries for Stage and Commit. Specs of appends that may share a commit are equal, so that it holds nothing of the moment.
type state struct {
	Mode        sinkv1.WriteMode  `json:"mode"`
	Operation   string            `json:"operation,omitempty"` // of a row-level write
	Location    string            `json:"location"`
	SchemaText  string            `json:"schema"`
	PartitionBy []string          `json:"partition,omitempty"`
	Statistics  map[string]string `json:"statistics,omitempty"` // properties by which statistics are chosen
	Clustered   [][]string        `json:"clustered,omitempty"`  // columns that statistics have in any case
	Define      *definition       `json:"define,omitempty"`     // the table that the commit creates, or replaces the present one by
}

// plan is a write spec with its state, read.
type plan struct {
	*planv1.WriteSpec
	state
	schema  *schema.Schema
	columns partition.Columns
}

func readPlan(spec *planv1.WriteSpec) (*plan, error) {
	p := &plan{WriteSpec: spec}
	if err := json.Unmarshal(spec.GetSinkState(), &p.state); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	var err error
	if p.schema, err = schema.Parse(p.SchemaText); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	if p.columns, err = partition.Of(p.schema, p.PartitionBy); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	if schemaID(p.SchemaText) != spec.GetSchemaId() || specID(p.PartitionBy) != spec.GetSpecId() || len(spec.GetPartition()) != len(p.PartitionBy) {
		return nil, fmt.Errorf("%w: schema %d and spec %d are not those of its state", errState, spec.GetSchemaId(), spec.GetSpecId())
	}
	return p, nil
}

// schemaID is the same for the same schema, and hardly for another one: Delta has no numbers for them.
func schemaID(text string) int32 { return hashed([]byte(text)) }

// specID is the same for partitioning by the same columns; 0: by none.
func specID(columns []string) int32 {
	if len(columns) == 0 {
		return 0
	}
	text, _ := json.Marshal(columns) // of strings
	return hashed(text)
}

func hashed(b []byte) int32 {
	sum := sha256.Sum256(b)
	return int32(binary.BigEndian.Uint32(sum[:])>>1) | 1 // positive
}

// supported are the write modes.
var supported = []sinkv1.WriteMode{
	sinkv1.WriteMode_WRITE_MODE_APPEND, sinkv1.WriteMode_WRITE_MODE_CREATE, sinkv1.WriteMode_WRITE_MODE_OVERWRITE, sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL,
	sinkv1.WriteMode_WRITE_MODE_REWRITE, sinkv1.WriteMode_WRITE_MODE_REPLACE,
}

func (p *plan) replaces() bool {
	return p.Mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL || p.Mode == sinkv1.WriteMode_WRITE_MODE_REWRITE
}

// rearranges reports whether the rows are those that were there.
func (p *plan) rearranges() bool { return p.Mode == sinkv1.WriteMode_WRITE_MODE_REWRITE }

func (p *plan) overwrites() bool {
	return p.Mode == sinkv1.WriteMode_WRITE_MODE_OVERWRITE || p.Mode == sinkv1.WriteMode_WRITE_MODE_REPLACE
}

// landable refuses a table under whose present schema the files that were written cannot stand: they have the columns that there were when the write was
// planned. Columns that came since and may be NULL are no harm, as files without them hold NULLs.
func (p *plan) landable(m *log.Metadata) error {
	if !slices.Equal(m.PartitionColumns, p.PartitionBy) {
		return fmt.Errorf("it is partitioned by %q now, and the files were written for %q; run the statement again", m.PartitionColumns, p.PartitionBy)
	}
	if m.SchemaString == p.SchemaText {
		return nil
	}
	now, err := schema.Parse(m.SchemaString)
	if err != nil {
		return err
	}
	return compatible(now.Fields, p.schema.Fields, nil)
}

func compatible(now, then []schema.Field, path []string) error {
	at := func(name string) string { return schema.PathString(append(path[:len(path):len(path)], name)) }
	rest := slices.Clone(then)
	for _, f := range now {
		i := slices.IndexFunc(rest, func(o schema.Field) bool { return o.Name == f.Name })
		if i < 0 {
			if !f.Nullable {
				return fmt.Errorf("column %s, which must not be NULL, was added since the files were written; run the statement again", at(f.Name))
			}
			continue
		}
		old := rest[i]
		rest = slices.Delete(rest, i, i+1)
		switch {
		case old.Nullable && !f.Nullable:
			return fmt.Errorf("column %s has become NOT NULL since the files were written; run the statement again", at(f.Name))
		case old.Type.Kind == schema.Struct && f.Type.Kind == schema.Struct:
			if err := compatible(f.Type.Fields, old.Type.Fields, append(path[:len(path):len(path)], f.Name)); err != nil {
				return err
			}
		case !old.Type.Equal(f.Type):
			return fmt.Errorf("column %s has become %s since files with %s were written; run the statement again", at(f.Name), f.Type, old.Type)
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("column %s is gone since the files were written; run the statement again", at(rest[0].Name))
	}
	return nil
}
