// Package scope decides which files of an Iceberg table an overwrite may remove, by the write spec that the statement was planned with and by what its tasks
// have written. The host holds a commit against it, so that a sink which chooses other files than the statement asked for is refused: it is the same reading of partition
// values and bounds as the sink's, in another process.
package scope

import (
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/filter"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// Scope is what an overwrite covers. It is not safe for concurrent use.
type Scope struct {
	spec    *planv1.WriteSpec
	schema  *meta.Schema
	filter  *filter.Filter
	wrote   bool
	written map[string]bool // partitions of spec that rows were written to
	bounds  map[int32]*filter.Bound
}

// New reads the scope of a write spec.
func New(spec *planv1.WriteSpec) (*Scope, error) {
	s := &Scope{spec: spec, written: map[string]bool{}, bounds: map[int32]*filter.Bound{}}
	var err error
	if s.schema, err = meta.NewSchema(spec.GetSchemaId(), spec.GetSchema().GetFields()); err != nil {
		return nil, err
	}
	s.filter, err = filter.New(s.schema, spec.GetScope().GetFilter())
	return s, err
}

// Wrote notes that rows were written to a partition.
func (s *Scope) Wrote(tuple []*planv1.Value) error {
	if len(tuple) != len(s.spec.GetPartition()) {
		return fmt.Errorf("a file has %d partition values, and spec %d has %d fields", len(tuple), s.spec.GetSpecId(), len(s.spec.GetPartition()))
	}
	s.wrote, s.written[icefile.TupleKey(s.spec.GetPartition(), tuple)] = true, true
	return nil
}

// Covers reports whether all rows of a data file are in the scope, or all rows that a delete file may be about. partition is the file's partition spec as table
// metadata has it, in JSON.
func (s *Scope) Covers(e *icemanifest.Entry, specID int32, partition []byte) (bool, error) {
	switch k := s.spec.GetScope().GetKind().(type) {
	case *planv1.Scope_All:
		return k.All, nil
	case *planv1.Scope_Partitions:
		if !k.Partitions || len(s.spec.GetPartition()) == 0 { // the table is one partition
			return k.Partitions && s.wrote, nil
		}
		return s.inWritten(e, specID)
	case *planv1.Scope_Filter:
		b, err := s.bound(specID, partition)
		if err != nil {
			return false, err
		}
		if e.Content != icemanifest.Data {
			return b.Outcomes(filter.HeldPartition(e)) == filter.True, nil
		}
		return b.Strict(filter.Held(e)), nil
	}
	return false, nil
}

func (s *Scope) inWritten(e *icemanifest.Entry, specID int32) (bool, error) {
	if specID != s.spec.GetSpecId() {
		return false, nil
	}
	values := make([]*planv1.Value, len(s.spec.GetPartition()))
	for i, f := range s.spec.GetPartition() {
		var err error
		if values[i], err = icefile.PartitionValue(e.Partition, f.GetFieldId(), f.GetResultType()); err != nil {
			return false, fmt.Errorf("file %s: partition field %q: %w", e.Path, f.GetName(), err)
		}
	}
	return s.written[icefile.TupleKey(s.spec.GetPartition(), values)], nil
}

func (s *Scope) bound(specID int32, partition []byte) (*filter.Bound, error) {
	if b := s.bounds[specID]; b != nil {
		return b, nil
	}
	spec, err := meta.ParseSpec(partition)
	if err != nil {
		return nil, fmt.Errorf("partition spec %d: %w", specID, err)
	}
	s.bounds[specID] = s.filter.Bind(spec)
	return s.bounds[specID], nil
}
