package delta

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

// definition is a table that a statement defines.
type definition struct {
	Metadata log.Metadata
	Protocol log.Protocol
	Upgrades bool // the table that it replaces has another protocol
}

// define makes a Delta table of what CREATE TABLE asked for, with a fresh id.
func define(d *sinkv1.TableDefinition, now time.Time) (*definition, error) {
	if len(d.GetSort()) > 0 {
		return nil, fmt.Errorf("Delta tables have no sort order; leave SORTED BY out, or sort the rows in the SELECT") //nolint:staticcheck // a proper name
	}
	s, err := defineSchema(d.GetSchema().GetFields())
	if err != nil {
		return nil, err
	}
	if err := checkProperties(d.GetProperties()); err != nil {
		return nil, err
	}
	columns, err := partitionColumns(s, d.GetPartition())
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	created := now.UnixMilli()
	out := &definition{Metadata: log.Metadata{
		ID: id.String(), Format: log.Format{Provider: "parquet", Options: map[string]string{}}, SchemaString: s.String(), PartitionColumns: columns,
		Configuration: maps.Clone(d.GetProperties()), CreatedTime: &created,
	}}
	if out.Metadata.Configuration == nil {
		out.Metadata.Configuration = map[string]string{}
	}
	out.Protocol, _, err = transaction.Protocol(nil, &out.Metadata)
	return out, err
}

// partitionColumns are those that a statement names. Delta has no other transform than the column's value itself.
func partitionColumns(s *schema.Schema, clauses []*sinkv1.PartitionClause) ([]string, error) {
	out := []string{}
	for _, c := range clauses {
		if t := c.GetTransform(); t != planv1.TransformKind_TRANSFORM_KIND_IDENTITY && t != planv1.TransformKind_TRANSFORM_KIND_UNSPECIFIED {
			name := strings.ToLower(strings.TrimPrefix(t.String(), "TRANSFORM_KIND_"))
			return nil, fmt.Errorf("PARTITIONED BY %s(%s): Delta partitions by columns alone; add a column with the value to the SELECT and partition by it", name, c.GetColumn())
		}
		f, ok := s.Field(c.GetColumn())
		if !ok {
			return nil, fmt.Errorf("PARTITIONED BY %s: the table has no such column", c.GetColumn())
		}
		if slices.Contains(out, f.Name) {
			return nil, fmt.Errorf("PARTITIONED BY %s: the column is named twice", c.GetColumn())
		}
		out = append(out, f.Name)
	}
	_, err := s.Partition(out)
	return out, err
}

// redefine makes what CREATE OR REPLACE asked for the definition of a table that is there: it keeps its id and its history, and no feature of its protocol goes.
func redefine(t *log.Snapshot, d *sinkv1.TableDefinition, now time.Time) (*definition, error) {
	out, err := define(d, now)
	if err != nil {
		return nil, err
	}
	out.Metadata.ID, out.Metadata.CreatedTime, out.Metadata.Name = t.Metadata.ID, t.Metadata.CreatedTime, t.Metadata.Name
	out.Metadata.Configuration = maps.Clone(d.GetProperties())
	out.Protocol, out.Upgrades, err = transaction.Protocol(&t.Protocol, &out.Metadata)
	return out, err
}
