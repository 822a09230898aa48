package evolve

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// container finds the struct below which a field is put.
func (e *editor) container(parent []string) (siblings *[]*Column, prefix string, err error) {
	if len(parent) == 0 {
		return &e.schema.Fields, "", nil
	}
	p, err := e.schema.find(strings.Join(parent, "."))
	if err != nil {
		return nil, "", err
	}
	// As in the reference implementation, a list or a map stands for the struct that it holds.
	into := p
	switch p.Type.Name {
	case listName:
		into = &place{Column: p.Type.Fields[0], path: p.path + ".element", parent: p}
	case mapName:
		into = &place{Column: p.Type.Fields[1], path: p.path + ".value", parent: p}
	}
	if into.Type.Name != structName {
		return nil, "", fmt.Errorf("column %s is %s, and only a struct takes fields", p.path, typeText(p.Type))
	}
	return &into.Type.Fields, into.path + ".", nil
}

func (e *editor) addColumn(a *sinkv1.AddColumn) error {
	f := a.GetField()
	siblings, prefix, err := e.container(a.GetParent())
	if err != nil {
		return fmt.Errorf("add column: %w", err)
	}
	path := prefix + f.GetName()
	if f.GetName() == "" {
		return fmt.Errorf("add column: a column needs a name")
	}
	if err := e.fits(f.GetType(), path); err != nil {
		return err
	}
	if i := sibling(*siblings, f.GetName()); i >= 0 {
		have := (*siblings)[i]
		switch {
		case a.GetIfNotExists():
			return nil
		case e.again && have.Name == f.GetName() && sameShape(have.Type, f.GetType()) && have.Doc == f.GetDoc():
			return nil
		case have.Name != f.GetName():
			return fmt.Errorf("column %s: the table has %s, which differs in case only; most engines cannot tell them apart", path, prefix+have.Name)
		}
		return fmt.Errorf("column %s exists already", path)
	}
	c := &Column{Name: f.GetName(), Required: f.GetRequired(), Doc: f.GetDoc(), ID: e.nextColumn()}
	c.Type = fromPlan(f.GetType(), e.nextColumn)
	if err := e.checkInner(c, path); err != nil {
		return err
	}
	if c.WriteDefault, err = e.defaultOf(f.GetType(), f.GetWriteDefault(), path); err != nil {
		return err
	}
	if c.InitialDefault, err = e.defaultOf(f.GetType(), a.GetInitialDefault(), path); err != nil {
		return err
	}
	if c.Required && c.InitialDefault == nil && e.hasRows() {
		return fmt.Errorf("column %s cannot be added as NOT NULL: rows that are there have no value for it; give it a DEFAULT (format version 3), or leave NOT NULL out", path)
	}
	*siblings = append(*siblings, c)
	return e.move(siblings, c, path, a.GetFirst(), a.GetAfter())
}

func (e *editor) nextColumn() int32 {
	e.lastColumn++
	return e.lastColumn
}

// hasRows reports whether the table may have rows in some snapshot; then the references may not move under the plan.
func (e *editor) hasRows() bool {
	if len(e.table.Snapshots) > 0 {
		return true
	}
	e.pinned[meta.MainBranch] = true
	return false
}

// fits makes a type one that Iceberg has in this format version, or refuses it.
func (e *editor) fits(t *planv1.Type, path string) error {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_UNSPECIFIED:
		return fmt.Errorf("column %s: its type cannot be stored in an Iceberg table", path)
	case planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16:
		e.warn("column %s: Iceberg has no type for small integers; it is stored as int", path)
		t.Kind = planv1.TypeKind_TYPE_KIND_INT32
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		if t.GetPrecision() < 1 || t.GetPrecision() > 38 || t.GetScale() < 0 || t.GetScale() > t.GetPrecision() {
			return fmt.Errorf("column %s: decimal(%d, %d): the precision must be 1 to 38, and the scale at most the precision", path, t.GetPrecision(), t.GetScale())
		}
	case planv1.TypeKind_TYPE_KIND_FIXED:
		if t.GetLength() < 1 {
			return fmt.Errorf("column %s: fixed[%d]: the length must be positive", path, t.GetLength())
		}
	}
	if v := meta.MinVersion(t); v > e.version() {
		return fmt.Errorf("column %s: type %s needs table format version %d, and the table has %d; ALTER TABLE … SET TBLPROPERTIES ('format-version' = '%d') upgrades it", path, meta.TypeName(t), v, e.version(), v)
	}
	for _, f := range t.GetFields() {
		if err := e.fits(f.GetType(), path+"."+f.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// checkInner refuses names inside a new nested column that are empty or come twice.
func (e *editor) checkInner(c *Column, path string) error {
	if c.Type.Name == structName && len(c.Type.Fields) == 0 {
		return fmt.Errorf("column %s: a struct needs at least one field", path)
	}
	for i, f := range c.Type.Fields {
		switch {
		case f.Name == "":
			return fmt.Errorf("column %s: a field needs a name", path)
		case sibling(c.Type.Fields[:i], f.Name) >= 0:
			return fmt.Errorf("column %s has the field %s twice", path, f.Name)
		}
		if err := e.checkInner(f, path+"."+f.Name); err != nil {
			return err
		}
	}
	return nil
}

// sibling finds a name among fields of one level, exactly or else but for its case.
func sibling(fields []*Column, name string) int {
	if i := slices.IndexFunc(fields, func(c *Column) bool { return c.Name == name }); i >= 0 {
		return i
	}
	return slices.IndexFunc(fields, func(c *Column) bool { return strings.EqualFold(c.Name, name) })
}

// move puts a column to its place among its siblings.
func (e *editor) move(siblings *[]*Column, c *Column, path string, first bool, after string) error {
	if !first && after == "" {
		return nil
	}
	at := 0
	if after != "" {
		if i := sibling(*siblings, after); i < 0 || (*siblings)[i] == c {
			return fmt.Errorf("column %s: there is no column %s beside it to stand AFTER", path, after)
		}
	}
	*siblings = slices.DeleteFunc(*siblings, func(x *Column) bool { return x == c })
	if after != "" {
		at = sibling(*siblings, after) + 1
	}
	*siblings = slices.Insert(*siblings, at, c)
	return nil
}

// field finds a column that may be dropped, renamed or moved: not the element of a list, nor the key or value of a map.
func (e *editor) field(path []string, what string) (*place, error) {
	p, err := e.schema.find(strings.Join(path, "."))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if p.parent != nil && p.parent.Type.Name != structName {
		return nil, fmt.Errorf("%s: %s is the %s of a %s, not a column", what, p.path, p.Name, p.parent.Type.Name)
	}
	return p, nil
}

func (e *editor) dropColumn(d *sinkv1.DropColumn) error {
	p, err := e.field(d.GetPath(), "drop column")
	if missing(err) && (d.GetIfExists() || e.again) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(*p.siblings) == 1 {
		if p.parent == nil {
			return fmt.Errorf("column %s is the table's only one", p.path)
		}
		return fmt.Errorf("column %s is the only field of %s; drop that", p.path, p.parent.path)
	}
	gone := map[int32]string{}
	walk(&[]*Column{p.Column}, p.parent, func(q *place) { gone[q.ID] = q.path })
	for _, id := range e.schema.Identifiers {
		if path, ok := gone[id]; ok {
			return fmt.Errorf("column %s identifies the table's rows (it is an identifier field)", path)
		}
	}
	*p.siblings = slices.DeleteFunc(*p.siblings, func(c *Column) bool { return c == p.Column })
	for _, s := range e.table.Specs {
		for _, f := range s.Fields {
			if path, ok := gone[f.SourceID]; ok && s.ID != e.table.DefaultSpecID && f.Transform != voidTransform && len(e.table.Snapshots) > 0 {
				e.warn("column %s is the source of partition field %s of the former partition spec %d; some engines cannot read files that were written under it any more", path, f.Name, s.ID)
			}
		}
	}
	return nil
}

func (e *editor) renameColumn(r *sinkv1.RenameColumn) error {
	p, err := e.field(r.GetPath(), "rename column")
	if missing(err) && e.again {
		last := len(r.GetPath()) - 1
		if _, err := e.field(append(slices.Clone(r.GetPath()[:last]), r.GetName()), ""); err == nil {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if r.GetName() == "" {
		return fmt.Errorf("rename column %s: a column needs a name", p.path)
	}
	for _, c := range *p.siblings {
		if c == p.Column || !strings.EqualFold(c.Name, r.GetName()) {
			continue
		}
		if c.Name == r.GetName() {
			return fmt.Errorf("rename column %s: there is a column %s already", p.path, c.Name)
		}
		return fmt.Errorf("rename column %s to %s: the table has %s, which differs in case only; most engines cannot tell them apart", p.path, r.GetName(), c.Name)
	}
	p.Name = r.GetName()
	return nil
}

func (e *editor) changeColumn(c *sinkv1.ChangeColumn) error {
	p, err := e.schema.find(strings.Join(c.GetPath(), "."))
	if err != nil {
		return fmt.Errorf("change column: %w", err)
	}
	if c.GetType() != nil {
		if err := e.changeType(p, c.GetType()); err != nil {
			return err
		}
	}
	if c.Doc != nil {
		if _, err := e.field(c.GetPath(), "comment"); err != nil {
			return err
		}
		p.Doc = c.GetDoc()
	}
	if err := e.nullability(p, c); err != nil {
		return err
	}
	if err := e.changeDefault(p, c); err != nil {
		return err
	}
	if !c.GetFirst() && c.GetAfter() == "" {
		return nil
	}
	if _, err := e.field(c.GetPath(), "move column"); err != nil {
		return err
	}
	return e.move(p.siblings, p.Column, p.path, c.GetFirst(), c.GetAfter())
}

func (e *editor) nullability(p *place, c *sinkv1.ChangeColumn) error {
	key := p.parent != nil && p.parent.Type.Name == mapName && p.Name == "key"
	switch {
	case c.GetOptional() && c.GetRequired():
		return fmt.Errorf("column %s: SET NOT NULL and DROP NOT NULL exclude each other", p.path)
	case c.GetOptional() && key:
		return fmt.Errorf("column %s: the key of a map is never NULL", p.path)
	case c.GetOptional() && slices.Contains(e.schema.Identifiers, p.ID):
		return fmt.Errorf("column %s identifies the table's rows (it is an identifier field) and is never NULL", p.path)
	case c.GetOptional():
		p.Required = false
	case c.GetRequired() && !p.Required:
		if e.hasRows() {
			return fmt.Errorf("column %s: SET NOT NULL is refused: rows that are there may hold NULL; write the table anew with CREATE TABLE AS", p.path)
		}
		p.Required = true
	}
	return nil
}

func (e *editor) changeDefault(p *place, c *sinkv1.ChangeColumn) error {
	switch {
	case c.GetDropDefault():
		p.WriteDefault = nil
	case c.GetWriteDefault().GetKind() != nil:
		t, err := planType(p.Type)
		if err != nil {
			return fmt.Errorf("column %s: %w", p.path, err)
		}
		if p.WriteDefault, err = e.defaultOf(t, c.GetWriteDefault(), p.path); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses what the changes together have made of the names.
func (e *editor) checkNames() error {
	raw, err := e.schema.MarshalJSON()
	if err != nil {
		return err
	}
	if s, err := meta.ParseSchema(raw); err == nil { // a table with a type that Signet does not know is not looked at
		if path := s.Ambiguous(); path != "" {
			return fmt.Errorf("two columns would have the path %s", path)
		}
	}
	old := e.table.schema()
	for _, f := range e.table.spec().Fields {
		for _, c := range e.schema.Fields {
			was := old.byID(c.ID)
			if c.Name == f.Name && c.ID != f.SourceID && f.Transform != voidTransform && (was == nil || was.Name != c.Name) {
				return fmt.Errorf("a partition field is named %s already; a column of that name would make the two the same for some engines", f.Name)
			}
		}
	}
	return nil
}

func sameShape(have *Type, want *planv1.Type) bool {
	zero := func() int32 { return 0 }
	w := fromPlan(want, zero)
	h := &Type{Name: have.Name, Fields: cloneColumns(have.Fields)}
	walk(&h.Fields, nil, func(p *place) { p.ID = 0 })
	x, errX := writeType(h)
	y, errY := writeType(w)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
