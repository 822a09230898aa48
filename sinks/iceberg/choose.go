package iceberg

import (
	"cmp"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/filter"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// choose says which entries go.
func (r *removal) choose(held *icemanifest.Manifest, m *icefile.Manifest, oldest int64) ([]bool, error) {
	goes := make([]bool, len(held.Entries))
	for i, e := range held.Entries {
		if !e.Live() {
			continue
		}
		key, err := r.partition(e, m.SpecID)
		if err != nil {
			return nil, err
		}
		if e.Content == icemanifest.Data {
			r.aim(e, held, m.SpecID, key)
			goes[i], err = r.dataFile(e, m.SpecID, key)
		} else {
			goes[i] = r.deleteFile(e, m.SpecID, key, oldest)
		}
		if err != nil {
			return nil, err
		}
		if goes[i] {
			r.took(e, m.SpecID, key)
		}
	}
	return goes, nil
}

// dataFile decides about a data file.
func (r *removal) dataFile(e *icemanifest.Entry, spec int32, key string) (bool, error) {
	b := r.a.batch
	if b.byPath() {
		_, ok := b.replaced[e.Path]
		return ok, nil
	}
	if b.everything() {
		return true, nil
	}
	switch scope := b.plan.GetScope().GetKind().(type) {
	case *planv1.Scope_Partitions:
		if len(b.plan.GetPartition()) == 0 { // the table is one partition
			return b.files > 0, nil
		}
		if spec != b.plan.GetSpecId() && b.files > 0 {
			return false, r.refuse("data file %s is of partition spec %d, and the rows were written for spec %d: which of its rows the overwrite covers cannot be told; "+
				"rewrite the table's data files, or overwrite with REPLACE WHERE", e.Path, spec, b.plan.GetSpecId())
		}
		return b.written[key], nil
	case *planv1.Scope_Filter:
		bound, err := r.bound(spec)
		if err != nil {
			return false, err
		}
		switch o := bound.Outcomes(filter.Held(e)); {
		case e.Records == 0 || o == filter.True:
			return true, nil
		case o&filter.True == 0:
			return false, nil
		}
		return false, r.refuse("data file %s: the condition may hold for some of its rows only, and an overwrite removes whole files; use a condition on partition columns, or DELETE and INSERT", e.Path)
	default:
		return false, r.refuse("an overwrite of scope %T", scope)
	}
}

// bound is the condition of the write for files of a partition spec.
func (r *removal) bound(specID int32) (*filter.Bound, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.bounds[specID]; b != nil {
		return b, nil
	}
	spec, err := r.base.Spec(specID)
	if err == nil && spec == nil {
		err = fmt.Errorf("a manifest names partition spec %d, which the table does not have", specID)
	}
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	if r.filter == nil { // by the columns as they were when the statement was planned: ids stay what they are
		if r.filter, err = filter.New(r.a.batch.plan.schema, r.a.batch.plan.GetScope().GetFilter()); err != nil {
			return nil, r.refuse("%v", err)
		}
	}
	b := r.filter.Bind(spec)
	r.bounds[specID] = b
	return b, nil
}

// covered reports whether a manifest may have a file that the condition covers.
func (r *removal) covered(m *icefile.Manifest) (bool, error) {
	if r.a.batch.plan.GetScope().GetFilter() == nil {
		return true, nil
	}
	b, err := r.bound(m.SpecID)
	if err != nil {
		return false, err
	}
	return b.Manifest(m), nil
}

// deleteFile decides about a delete file: it goes when all that it is about goes.
func (r *removal) deleteFile(e *icemanifest.Entry, spec int32, key string, oldest int64) bool {
	b := r.a.batch
	switch {
	case b.everything():
		return true
	case e.Referenced != "":
		if r.found[e.Referenced] != nil {
			return true
		}
		if b.merged[e.Path] == e.Referenced && r.targets[e.Referenced] != nil && e.Content == icemanifest.PositionDeletes { // so does a new delete file
			return true
		}
		if r.targets[e.Referenced] != nil && r.base.FormatVersion >= 3 { // the new deletion vector holds these rows too, and there may be one only
			return true
		}
	case b.byPath():
	case b.plan.GetScope().GetPartitions() && len(b.plan.GetPartition()) == 0:
		return b.files > 0
	case b.plan.GetScope().GetPartitions():
		if spec == b.plan.GetSpecId() && b.written[key] {
			return true
		}
	case b.plan.GetScope().GetFilter() != nil && e.Content == icemanifest.PositionDeletes:
		// A delete file has no bounds of the table's columns: only its partition counts.
		if bound, err := r.bound(spec); err == nil && bound.Outcomes(filter.HeldPartition(e)) == filter.True {
			return true
		}
	}
	return e.Sequence < oldest && e.Sequence > 0
}

// place names a partition of a spec.
func place(spec int32, key string) string { return fmt.Sprintf("%d/%s", spec, key) }

// partition is the key of an entry's partition; see icefile.TupleKey.
func (r *removal) partition(e *icemanifest.Entry, specID int32) (string, error) {
	fields, err := r.spec(specID)
	if err != nil {
		return "", err
	}
	values, err := r.values(e, specID)
	if err != nil {
		return "", err
	}
	return icefile.TupleKey(fields, values), nil
}

// values are an entry's partition values, by the fields of spec.
func (r *removal) values(e *icemanifest.Entry, specID int32) ([]*planv1.Value, error) {
	fields, err := r.spec(specID)
	if err != nil {
		return nil, err
	}
	values := make([]*planv1.Value, len(fields))
	for i, f := range fields {
		if values[i], err = icefile.PartitionValue(e.Partition, f.GetFieldId(), f.GetResultType()); err != nil {
			return nil, r.refuse("file %s: partition field %q: %v", e.Path, f.GetName(), err)
		}
	}
	return values, nil
}

// spec gives the fields of a partition spec with the types that their values have by the current schema. Fields whose column is gone have none: their
// values are not told apart.
func (r *removal) spec(id int32) ([]*planv1.PartitionField, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.specs[id]; ok {
		return f, nil
	}
	spec, err := r.base.Spec(id)
	if err == nil && spec == nil {
		err = fmt.Errorf("a manifest names partition spec %d, which the table does not have", id)
	}
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	schema, err := cmp.Or(r.a.before, r.base).CurrentSchema()
	if err != nil {
		return nil, r.refuse("%v", err)
	}
	fields := slices.DeleteFunc(spec.Describe(schema), func(f *planv1.PartitionField) bool { return f.GetResultType() == nil })
	r.specs[id] = fields
	return fields, nil
}
