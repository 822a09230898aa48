package sinktest

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// tableOf makes a fresh table of an id and a column v of the type. It gives nothing where the sink refuses, or the options leave the type out.
func (b *bench) tableOf(t *planv1.Type, name string, partitioned bool) *planv1.WriteSpec {
	if why := b.opts.Without[name]; why != "" {
		b.note("%s: left out: %s", name, why)
		return nil
	}
	b.fresh()
	d := &sinkv1.TableDefinition{
		Schema:     &planv1.Schema{Fields: []*planv1.Field{{Name: "id", Type: typ(planv1.TypeKind_TYPE_KIND_INT64)}, {Name: "v", Type: t}}},
		Properties: b.opts.Properties,
	}
	if partitioned {
		d.Partition = []*sinkv1.PartitionClause{{Column: "v", Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}
	}
	err := b.tryCreate(d)
	if errors.Is(sdk.FromStatus(err), sdk.ErrPermanent) {
		b.that(len(b.host.Objects()) == 0, "CreateTable refuses a column of type %s, and leaves %v behind", name, b.host.Objects())
		b.note("%s: refused by CreateTable: %s", name, said(err))
		return nil
	}
	b.ok(err, "CreateTable with a column of type "+name)
	spec := b.prepare()
	v := spec.GetSchema().GetFields()[1].GetType()
	if integer(t.GetKind()) && integer(v.GetKind()) && v.GetKind() > t.GetKind() {
		b.note("%s: stored as %s", name, v.GetKind())
		return spec
	}
	b.that(proto.Equal(plain(v), plain(t)), "a column of type %v becomes one of type %v", t, v)
	return spec
}

// integer types are numbered by their width.
func integer(k planv1.TypeKind) bool {
	return k >= planv1.TypeKind_TYPE_KIND_INT8 && k <= planv1.TypeKind_TYPE_KIND_INT64
}

// plain is a type without the ids of nested fields.
func plain(t *planv1.Type) *planv1.Type {
	t = proto.CloneOf(t)
	for _, f := range t.GetFields() {
		f.Id, f.Type = 0, plain(f.GetType())
	}
	return t
}

// valuesBounds: column bounds are what files are left out by, so that a wrong one loses rows.
func valuesBounds(b *bench) {
	b.needs(sinkv1.Capability_CAPABILITY_CREATE_TABLE)
	b.needs(sinkv1.Capability_CAPABILITY_PLAN_SCAN)
	tried := 0
	for _, t := range columnTypes() {
		spec := b.tableOf(t.typ, t.name, false)
		if spec == nil {
			continue
		}
		tried++
		v := spec.GetSchema().GetFields()[1].GetId()
		j := newJob(spec, "values", 1, len(t.values)+2)
		for i, f := range j.tasks[0] {
			m := &planv1.ColumnMetrics{FieldId: v, SizeBytes: proto.Int64(50), ValueCount: proto.Int64(rowsPerFile), NullCount: proto.Int64(0)}
			switch {
			case i < len(t.values):
				m.Lower, m.Upper = &planv1.Bound{Value: t.values[i], Exact: true}, &planv1.Bound{Value: t.values[i], Exact: true}
			case i == len(t.values): // NULLs alone: there are no bounds
				m.NullCount = proto.Int64(rowsPerFile)
			default: // the smallest value, and NaN among them where the type has it
				m.Lower, m.Upper = &planv1.Bound{Value: t.values[0], Exact: true}, &planv1.Bound{Value: t.values[0], Exact: true}
			}
			if t.nan != nil {
				m.NanCount = proto.Int64(0)
				if i > len(t.values) {
					m.NanCount = proto.Int64(1)
				}
			}
			f.Columns = []*planv1.ColumnMetrics{m}
		}
		b.land(spec, j)
		b.holds(j)
		for i, value := range t.values {
			b.finds(j, i, comparison(v, planv1.CompareOp_COMPARE_OP_EQ, value), fmt.Sprintf("%s: v = %v", t.name, value))
		}
		b.finds(j, len(t.values), &planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: v}}}, t.name+": v IS NULL")
		if t.nan != nil {
			b.finds(j, len(t.values)+1, comparison(v, planv1.CompareOp_COMPARE_OP_GT, t.values[1]), t.name+": v > x, with a NaN among the file's values, which is larger than every number")
		}
	}
	b.that(tried > 0, "CreateTable refuses every type")
}

func comparison(field int32, op planv1.CompareOp, v *planv1.Value) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: &planv1.Comparison{FieldId: field, Op: op, Values: []*planv1.Value{v}}}}
}

// finds: a scan with a filter may leave out files, but never this one.
func (b *bench) finds(j *job, i int, filter *planv1.Predicate, what string) {
	found, _ := b.scan(func(r *sinkv1.PlanScanRequest) { r.Filter = filter })
	f := found[j.tasks[0][i].GetPath()]
	b.that(f != nil, "PlanScan with the filter %s leaves out a file that has such rows: they are lost", what)
	b.that(f.GetRecordCount() == rowsPerFile, "PlanScan with the filter %s counts %d rows in a file of %d", what, f.GetRecordCount(), rowsPerFile)
}

// valuesPartitions: a partition value comes back as what it was, and is no other's.
func valuesPartitions(b *bench) {
	b.needs(sinkv1.Capability_CAPABILITY_CREATE_TABLE)
	b.needs(sinkv1.Capability_CAPABILITY_PLAN_SCAN)
	if b.opts.NoPartitions != "" {
		b.skip(NotOffered, "%s", b.opts.NoPartitions)
	}
	tried := 0
	for _, t := range columnTypes() {
		if spec := b.tableOf(t.typ, t.name, true); spec != nil {
			tried++
			b.partitionsOf(spec, t)
		}
	}
	if tried == 0 {
		b.skip(NotOffered, "CreateTable refuses every partitioned table: %s", b.notes[len(b.notes)-1])
	}
}

func (b *bench) partitionsOf(spec *planv1.WriteSpec, t columnType) {
	b.that(len(spec.GetPartition()) == 1, "a table partitioned by one column has a write spec with %d partition fields", len(spec.GetPartition()))
	source := spec.GetPartition()[0].GetSourceId()
	values := append(slices.Clone(t.values), &planv1.Value{})
	if b.opts.EmptyIsNull {
		values = slices.DeleteFunc(values, func(v *planv1.Value) bool {
			return v.GetKind() != nil && v.GetString_() == "" && len(v.GetBinary()) == 0 && (t.name == "string" || t.name == "binary")
		})
	}
	if t.nan != nil {
		values = append(values, t.nan)
	}
	values = slices.DeleteFunc(values, func(v *planv1.Value) bool { return b.cannotStage(spec, t, v) })
	j := newJob(spec, "partitions", 2, len(values)) // two files in each partition
	for _, files := range j.tasks {
		for i, f := range files {
			f.Partition = []*planv1.Value{values[i]}
		}
	}
	b.land(spec, j)
	b.holds(j)
	found, first := b.scan(func(r *sinkv1.PlanScanRequest) { r.Partitions = true })
	constant := slices.Index(first.GetConstantIds(), source)
	names := map[string]int{}
	for i, value := range values {
		one, other := found[j.tasks[0][i].GetPath()], found[j.tasks[1][i].GetPath()]
		key := fmt.Sprint(one.GetSpecId(), "/", string(one.GetPartition()))
		b.that(string(one.GetPartition()) == string(other.GetPartition()), "%s: two files of partition %v are in different partitions", t.name, value)
		if before, taken := names[key]; taken {
			b.fail("%s: files of the partitions %v and %v are in the same partition", t.name, values[before], value)
		}
		names[key] = i
		if constant >= 0 {
			b.that(len(one.GetConstants()) > constant, "%s: constant_ids names the partition column, and file %s has no value for it", t.name, one.GetUri())
			b.that(proto.Equal(one.GetConstants()[constant], value), "%s: partition %v comes back as %v", t.name, value, one.GetConstants()[constant])
		}
		switch {
		case value.GetKind() == nil:
			b.finds(j, i, &planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: source}}}, t.name+": v IS NULL on the partition column")
		case value != t.nan:
			b.finds(j, i, comparison(source, planv1.CompareOp_COMPARE_OP_EQ, value), fmt.Sprintf("%s: v = %v on the partition column", t.name, value))
		}
	}
}

// cannotStage: a sink may refuse a partition value that its format has no way to write; it must not change it.
func (b *bench) cannotStage(spec *planv1.WriteSpec, t columnType, v *planv1.Value) bool {
	j := newJob(spec, "probe", 1, 1)
	j.tasks[0][0].Partition = []*planv1.Value{v}
	_, err := b.send(b.stream(spec, j))
	if errors.Is(sdk.FromStatus(err), sdk.ErrPermanent) {
		b.note("%s: partition %v refused by Stage: %s", t.name, v, said(err))
		return true
	}
	b.ok(err, "Stage")
	return false
}

// valuesNested: schemas come back as they were made, with ids on every level.
func valuesNested(b *bench) {
	b.needs(sinkv1.Capability_CAPABILITY_CREATE_TABLE)
	text, number := typ(planv1.TypeKind_TYPE_KIND_STRING), typ(planv1.TypeKind_TYPE_KIND_INT64)
	list := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Name: "element", Type: text}}}
	tried := 0
	for name, t := range map[string]*planv1.Type{
		"list":   list,
		"struct": {Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{{Name: "a", Type: number}, {Name: "b", Type: list}}},
		"map":    {Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{{Name: "key", Type: text, Required: true}, {Name: "value", Type: number}}},
	} {
		if spec := b.tableOf(t, name, false); spec != nil {
			tried++
			j := newJob(spec, name, 1, 1)
			b.land(spec, j)
			b.holds(j)
		}
	}
	if tried == 0 {
		b.skip(NotOffered, "CreateTable refuses lists, structs and maps")
	}
}
