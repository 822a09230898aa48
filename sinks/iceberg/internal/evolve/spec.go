package evolve

import (
	"encoding/json"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// firstPartitionID is where ids of partition fields begin.
const firstPartitionID = 1000

// Spec is one partition spec.
type Spec struct {
	ID     int32       `json:"spec-id"`
	Fields []SpecField `json:"fields"`
}

// SpecField is one field of a partition spec.
type SpecField struct {
	SourceID  int32   `json:"source-id"`
	SourceIDs []int32 `json:"source-ids,omitempty"`
	FieldID   *int32  `json:"field-id,omitempty"`
	Name      string  `json:"name"`
	Transform string  `json:"transform"`
}

const voidTransform = "void"

func (f *SpecField) id() int32 { return *f.FieldID }

func (f *SpecField) same(o *SpecField) bool {
	return f.SourceID == o.SourceID && f.id() == o.id() && f.Name == o.Name && f.Transform == o.Transform && slices.Equal(f.SourceIDs, o.SourceIDs)
}

func sameFields(a, b []SpecField) bool {
	return slices.EqualFunc(a, b, func(x, y SpecField) bool { return x.same(&y) })
}

// specEdit changes the partition spec as the reference implementation does (BaseUpdatePartitionSpec).
type specEdit struct {
	base    []SpecField
	deleted map[int32]bool
	renamed map[int32]string
	added   []SpecField
}

// specs lets changes of the spec work on it, the first time.
func (e *editor) specs() *specEdit {
	if e.spec == nil {
		e.spec = &specEdit{base: e.table.spec().Fields, deleted: map[int32]bool{}, renamed: map[int32]string{}}
	}
	return e.spec
}

func clauseTransform(c *sinkv1.PartitionClause) meta.Transform {
	t := meta.Transform{Kind: c.GetTransform(), Param: c.GetParam()}
	if t.Kind == planv1.TransformKind_TRANSFORM_KIND_UNSPECIFIED {
		t.Kind = planv1.TransformKind_TRANSFORM_KIND_IDENTITY
	}
	return t
}

// source finds the column of a partition or sort clause, and checks that the transform fits it.
func (e *editor) source(column string, t meta.Transform, what string) (*place, error) {
	p, err := e.schema.find(column)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if p.repeated() {
		return nil, fmt.Errorf("%s: column %s lies inside a list or map", what, p.path)
	}
	typ, err := planType(p.Type)
	if err != nil {
		return nil, fmt.Errorf("%s: column %s: %w", what, p.path, err)
	}
	if _, err := t.Result(typ); err != nil {
		return nil, fmt.Errorf("%s: column %s: %w", what, p.path, err)
	}
	return p, nil
}

// planType is a primitive type of the table as the contract has it.
func planType(t *Type) (*planv1.Type, error) {
	switch t.Name {
	case structName:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT}, nil
	case listName:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST}, nil
	case mapName:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP}, nil
	}
	return meta.ParseType(t.Name)
}

func (e *editor) addPartition(c *sinkv1.PartitionClause) error {
	s, t := e.specs(), clauseTransform(c)
	src, err := e.source(c.GetColumn(), t, "partition field")
	if err != nil {
		return err
	}
	text := t.String()
	for i := range s.base {
		f := &s.base[i]
		if f.SourceID != src.ID || f.Transform != text {
			continue
		}
		if !s.deleted[f.id()] {
			if e.again && (c.GetName() == "" || c.GetName() == f.Name) {
				return nil
			}
			return fmt.Errorf("partition field %s is there already: it is %s of column %s", f.Name, f.Transform, src.path)
		}
		delete(s.deleted, f.id()) // dropped and added in one statement: it stays, perhaps under another name
		if c.GetName() != "" && c.GetName() != f.Name {
			s.renamed[f.id()] = c.GetName()
		}
		return e.checkPartitionName(c.GetName(), src.ID)
	}
	for i := range s.added {
		if f := &s.added[i]; f.SourceID == src.ID && (f.Transform == text || timeTransform(f.Transform) && timeTransform(text)) {
			return fmt.Errorf("partition field %s of column %s is redundant beside %s, which this statement adds too", text, src.path, f.Transform)
		}
	}
	f := e.recycle(src, text, c.GetName())
	if f.Name == "" {
		f.Name = partitionName(src.path, t)
	}
	if err := e.freeName(s, f.Name); err != nil {
		return err
	}
	if err := e.checkPartitionName(f.Name, src.ID); err != nil {
		return err
	}
	s.added = append(s.added, f)
	return nil
}

// recycle gives a partition field that a former spec had its id back, in format versions that keep ids; otherwise the next free id.
func (e *editor) recycle(src *place, text, name string) SpecField {
	if e.version() >= 2 {
		for _, spec := range e.table.Specs {
			for _, f := range spec.Fields {
				if f.SourceID == src.ID && f.Transform == text && (name == "" || f.Name == name) && !e.specs().has(f.id()) {
					return SpecField{SourceID: src.ID, FieldID: f.FieldID, Name: f.Name, Transform: text}
				}
			}
		}
	}
	e.lastPartition++
	id := e.lastPartition
	return SpecField{SourceID: src.ID, FieldID: &id, Name: name, Transform: text}
}

// has: a void field of the time as version 1 keeps the id of what it was.
func (s *specEdit) has(id int32) bool {
	return slices.ContainsFunc(s.base, func(f SpecField) bool { return f.id() == id })
}

// freeName makes way for a field: one that is dropped gives its name up.
func (e *editor) freeName(s *specEdit, name string) error {
	for i := range s.added {
		if s.added[i].Name == name {
			return fmt.Errorf("two partition fields would be named %q", name)
		}
	}
	for i := range s.base {
		f := &s.base[i]
		if now, ok := s.renamed[f.id()]; ok && now == name {
			return fmt.Errorf("two partition fields would be named %q", name)
		} else if ok || f.Name != name {
			continue
		}
		if !s.deleted[f.id()] && f.Transform != voidTransform {
			return fmt.Errorf("a partition field is named %q already; give another name with AS", name)
		}
		s.renamed[f.id()] = fmt.Sprintf("%s_%d", f.Name, f.id())
	}
	return nil
}

// checkPartitionName refuses a name that a column has, unless it is the source of the field.
func (e *editor) checkPartitionName(name string, source int32) error {
	for _, c := range e.schema.Fields {
		if name != "" && c.Name == name && c.ID != source {
			return fmt.Errorf("the partition field would be named %q, which is a column of the table; give another name with AS", name)
		}
	}
	return nil
}

func timeTransform(text string) bool {
	return slices.Contains([]string{"year", "month", "day", "hour"}, text)
}

// partitionName is the name that the reference implementation gives a field that is added to a table.
func partitionName(path string, t meta.Transform) string {
	switch t.Kind {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		return path
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET:
		return fmt.Sprintf("%s_bucket_%d", path, t.Param)
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return fmt.Sprintf("%s_trunc_%d", path, t.Param)
	case planv1.TransformKind_TRANSFORM_KIND_VOID:
		return path + "_null"
	}
	return path + "_" + t.String()
}

func (e *editor) dropPartition(d *sinkv1.DropPartitionField) error {
	s := e.specs()
	f, what, err := e.partitionField(d)
	if err != nil {
		return err
	}
	if f == nil {
		if e.again {
			return nil
		}
		return fmt.Errorf("the table is not partitioned by %s; its partition fields are %s", what, fieldList(s.base))
	}
	for i := range s.added {
		if s.added[i].SourceID == f.SourceID && s.added[i].Transform == f.Transform {
			return fmt.Errorf("partition field %s is added and dropped in one statement", f.Name)
		}
	}
	if s.deleted[f.id()] {
		return fmt.Errorf("partition field %s is dropped twice", f.Name)
	}
	s.deleted[f.id()] = true
	return nil
}

// partitionField finds a field of the spec by its name or by what it is made of. A void one is no field any more.
func (e *editor) partitionField(d *sinkv1.DropPartitionField) (*SpecField, string, error) {
	s := e.specs()
	if term := d.GetTerm(); term != nil {
		src, err := e.schema.find(term.GetColumn())
		if err != nil {
			return nil, "", fmt.Errorf("partition field: %w", err)
		}
		text := clauseTransform(term).String()
		for i := range s.base {
			if f := &s.base[i]; f.SourceID == src.ID && f.Transform == text && text != voidTransform {
				return f, "", nil
			}
		}
		return nil, fmt.Sprintf("%s of column %s", text, src.path), nil
	}
	name := d.GetName()
	if f := s.named(name); f != nil {
		return f, "", nil
	}
	if src, err := e.schema.find(name); err == nil { // a column stands for its identity
		for i := range s.base {
			if f := &s.base[i]; f.SourceID == src.ID && f.Transform == "identity" {
				return f, "", nil
			}
		}
	}
	return nil, name, nil
}

func (s *specEdit) named(name string) *SpecField {
	for i := range s.base {
		if f := &s.base[i]; f.Name == name && f.Transform != voidTransform {
			return f
		}
	}
	return nil
}

func fieldList(fields []SpecField) string {
	text := ""
	for _, f := range fields {
		if f.Transform != voidTransform {
			text += ", " + f.Name
		}
	}
	if text == "" {
		return "none"
	}
	return text[2:]
}

// result is the spec after the changes. Format version 1 has no field ids to rely on: a field that goes leaves a void one in its place.
func (e *editor) specResult() []SpecField {
	s := e.spec
	var out []SpecField
	for _, f := range s.base {
		if name, ok := s.renamed[f.id()]; ok {
			f.Name = name
		}
		switch {
		case !s.deleted[f.id()]:
			out = append(out, f)
		case e.table.FormatVersion < 2:
			f.Transform = voidTransform
			out = append(out, f)
		}
	}
	return append(out, s.added...)
}

// checkSpec refuses partition fields that the changed schema leaves without their column (C27).
func (e *editor) checkSpec(fields []SpecField) error {
	for _, f := range fields {
		if f.Transform == voidTransform {
			continue
		}
		for _, id := range append([]int32{f.SourceID}, f.SourceIDs...) {
			if e.schema.byID(id) == nil && e.table.schema().byID(id) != nil {
				return fmt.Errorf("column %s is the source of partition field %s; drop the partition field first", e.table.schema().byID(id).path, f.Name)
			}
		}
	}
	return nil
}

// document is a spec as REST requests carry it.
func (s *Spec) document() (json.RawMessage, error) {
	c := *s
	if c.Fields == nil {
		c.Fields = []SpecField{}
	}
	return json.Marshal(&c)
}
