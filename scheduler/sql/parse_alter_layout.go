package sql

import (
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

func lower(t Token) string { return strings.ToLower(t.Value) }

// nestedTerm is term, where a column may be a field inside a struct.
func (p *parser) nestedTerm() (term, error) {
	p.nested = true
	defer func() { p.nested = false }()
	return p.term()
}

func clauseOf(t term) *sinkv1.PartitionClause {
	return &sinkv1.PartitionClause{Column: t.column.Text, Transform: t.transform, Param: t.param}
}

// partitionTransform reads transform [AS name].
func (p *parser) partitionTransform() (*sinkv1.PartitionClause, error) {
	t, err := p.nestedTerm()
	if err != nil {
		return nil, err
	}
	c := clauseOf(t)
	if p.accept("AS") {
		id, err := p.ident("a name of the partition field")
		if err != nil {
			return nil, err
		}
		c.Name = id.Text
	}
	return c, nil
}

// dropField reads what a partition field is made of, or its name.
func (p *parser) dropField() (*sinkv1.DropPartitionField, error) {
	t, err := p.nestedTerm()
	if err != nil {
		return nil, err
	}
	if t.transform == planv1.TransformKind_TRANSFORM_KIND_IDENTITY {
		return &sinkv1.DropPartitionField{Which: &sinkv1.DropPartitionField_Name{Name: t.column.Text}}, nil
	}
	return &sinkv1.DropPartitionField{Which: &sinkv1.DropPartitionField_Term{Term: clauseOf(t)}}, nil
}

const propDistribution = "write.distribution-mode"

// writeAction reads WRITE [LOCALLY] ORDERED BY …, WRITE UNORDERED and WRITE DISTRIBUTED BY PARTITION [LOCALLY] [ORDERED BY …], as Spark has them:
// the words say the sort order, and how rows come to the writers.
func (p *parser) writeAction(a *AlterTable) error {
	mode := ""
	s := &sinkv1.SetSort{}
	set := false
	for n := 0; ; n++ {
		switch {
		case p.accept("LOCALLY"):
			if mode == "" {
				mode = "none"
			}
			continue
		case p.accept("DISTRIBUTED", "BY", "PARTITION"):
			mode = "hash"
			continue
		case p.accept("UNORDERED"):
			set = true
			if mode == "" {
				mode = "none"
			}
		case p.accept("ORDERED", "BY"), p.accept("SORTED", "BY"), p.accept("ORDER", "BY"):
			set = true
			if mode == "" {
				mode = "range"
			}
			if err := p.sortClauses(s); err != nil {
				return err
			}
		case n == 0 || mode != "hash":
			return p.unexpected("ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION", "for example WRITE ORDERED BY day DESC, id")
		}
		break
	}
	if set {
		a.add(&sinkv1.Change{Kind: &sinkv1.Change_SetSort{SetSort: s}})
	}
	a.add(&sinkv1.Change{Kind: &sinkv1.Change_SetProperties{SetProperties: &sinkv1.SetProperties{Properties: map[string]string{propDistribution: mode}}}})
	return nil
}

func (p *parser) sortClauses(s *sinkv1.SetSort) error {
	p.nested = true
	defer func() { p.nested = false }()
	var terms []SortTerm
	one := func() error { return p.sortTerm(&terms) }
	if p.peek().is("(") {
		if err := p.list(one); err != nil {
			return err
		}
	} else {
		for {
			if err := one(); err != nil {
				return err
			}
			if !p.more() {
				break
			}
		}
	}
	for _, t := range terms {
		s.Sort = append(s.Sort, &sinkv1.SortClause{Column: t.Column.Text, Transform: t.Transform, Param: t.Param, Descending: t.Descending, NullsFirst: t.NullsFirst})
	}
	return nil
}

// propertyAction reads SET TBLPROPERTIES (…), UNSET TBLPROPERTIES [IF EXISTS] (…), and refuses what else engines set.
func (p *parser) propertyAction(a *AlterTable, verb Token) error {
	t := p.peek()
	switch {
	case t.is("LOCATION"):
		return p.fail("SET LOCATION is not supported: a table stays where it is", "")
	case t.isAny("IDENTIFIER", "SERDE", "SERDEPROPERTIES", "FILEFORMAT"):
		return p.fail(strings.ToUpper(verb.Value)+" "+keyword(t)+" is not supported", "")
	case p.accept("PARTITION", "SPEC"), t.is("PARTITIONING"):
		return p.failAt(t, "the partitioning is not set as a whole", "write ADD, DROP and REPLACE PARTITION FIELD")
	}
	if !p.accept("TBLPROPERTIES") && !p.accept("PROPERTIES") {
		return p.unexpected("TBLPROPERTIES", "for example SET TBLPROPERTIES ('write.parquet.compression-codec' = 'zstd')")
	}
	if verb.is("UNSET") {
		u := &sinkv1.UnsetProperties{IfExists: p.accept("IF", "EXISTS")}
		err := p.list(func() error {
			key, err := p.propertyKey()
			u.Names = append(u.Names, key)
			return err
		})
		a.add(&sinkv1.Change{Kind: &sinkv1.Change_UnsetProperties{UnsetProperties: u}})
		return err
	}
	s := &sinkv1.SetProperties{Properties: map[string]string{}}
	one := func() error {
		at := p.peek()
		key, err := p.propertyKey()
		if err != nil {
			return err
		}
		if err := p.expect("=", "for example 'write.parquet.compression-codec' = 'zstd'"); err != nil {
			return err
		}
		if _, twice := s.Properties[key]; twice {
			return p.failAt(at, "the property "+QuoteString(key)+" is given twice", "")
		}
		s.Properties[key], err = p.propertyValue()
		return err
	}
	a.add(&sinkv1.Change{Kind: &sinkv1.Change_SetProperties{SetProperties: s}})
	if p.peek().is("(") {
		return p.list(one)
	}
	for {
		if err := one(); err != nil {
			return err
		}
		if !p.more() {
			return nil
		}
	}
}

// propertyKey reads a property's name: a string, or words with dots.
func (p *parser) propertyKey() (string, error) {
	at := p.peek()
	if at.Kind == KindString {
		p.pos++
		if at.Value == "" {
			return "", p.failAt(at, "a property name must not be empty", "")
		}
		return at.Value, nil
	}
	if !at.isName() {
		return "", p.unexpected("a property name", "for example 'write.parquet.compression-codec'")
	}
	path, err := p.path()
	if err == nil && p.peek().is("-") {
		err = p.failAt(at, "a property name with a dash needs quotes", "for example 'write.target-file-size-bytes'")
	}
	return strings.Join(path, "."), err
}

// refAction reads what follows CREATE [OR REPLACE] and REPLACE: BRANCH or TAG, a name, and what it keeps.
func (p *parser) refAction(a *AlterTable, verb Token) error {
	s := &sinkv1.SetRef{}
	switch {
	case verb.is("REPLACE") && p.accept("PARTITION", "FIELD"):
		return p.replaceField(a)
	case verb.is("REPLACE") && p.peek().isAny("COLUMNS", "COLUMN"):
		return p.fail("REPLACE COLUMNS is not supported", "write ADD, DROP and ALTER COLUMN")
	case verb.is("REPLACE"):
		s.OrReplace, s.MustExist = true, true
	case p.accept("OR", "REPLACE"):
		s.OrReplace = true
	}
	t := p.peek()
	if !p.accept("BRANCH") && !p.accept("TAG") {
		return p.unexpected("BRANCH or TAG", "for example CREATE BRANCH audit AS OF VERSION 123")
	}
	s.Tag = t.is("TAG")
	exists := p.peek()
	if s.IfNotExists = p.accept("IF", "NOT", "EXISTS"); s.IfNotExists && s.OrReplace {
		return p.failAt(exists, "OR REPLACE and IF NOT EXISTS exclude each other", "")
	}
	id, err := p.ident("the name of the " + lower(t))
	if err != nil {
		return err
	}
	s.Name = id.Text
	if err := p.refOptions(s); err != nil {
		return err
	}
	a.add(&sinkv1.Change{Kind: &sinkv1.Change_SetRef{SetRef: s}})
	return nil
}

func (p *parser) refOptions(s *sinkv1.SetRef) error {
	if p.accept("AS", "OF", "VERSION") || p.accept("FOR", "VERSION", "AS", "OF") {
		t := p.peek()
		switch {
		case t.Kind == KindNumber:
			if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
				return p.unexpected("a snapshot id", "")
			}
			s.Snapshot = t.Value
		case t.Kind == KindString && t.Value != "":
			if _, err := strconv.ParseInt(t.Value, 10, 64); err == nil {
				s.Snapshot = t.Value
			} else {
				s.From = t.Value
			}
		default:
			return p.unexpected("a snapshot id, or the name of a branch or tag as a string", "")
		}
		p.pos++
	}
	if p.accept("RETAIN") {
		age, err := p.duration()
		if err != nil {
			return err
		}
		s.MaxRefAgeMillis = &age
	}
	if !p.accept("WITH", "SNAPSHOT", "RETENTION") {
		return nil
	}
	if p.peekAt(1).isAny("SNAPSHOTS", "SNAPSHOT") {
		n, err := p.number("a number of snapshots", 1, 1<<31-1)
		if err != nil {
			return err
		}
		p.pos++
		s.MinSnapshotsToKeep = &n
		if p.peek().Kind != KindNumber {
			return nil
		}
	}
	age, err := p.duration()
	s.MaxSnapshotAgeMillis = &age
	return err
}

var units = map[string]int64{"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000}

// duration reads 7 DAYS as milliseconds.
func (p *parser) duration() (int64, error) {
	n, err := p.number("a number", 1, 1<<31-1)
	if err != nil {
		return 0, err
	}
	unit, ok := units[strings.TrimSuffix(keyword(p.peek()), "S")]
	if !ok {
		return 0, p.unexpected("DAYS, HOURS or MINUTES", "for example 7 DAYS")
	}
	p.pos++
	return int64(n) * unit, nil
}

// replaceField reads REPLACE PARTITION FIELD old WITH new [AS name].
func (p *parser) replaceField(a *AlterTable) error {
	d, err := p.dropField()
	if err != nil {
		return err
	}
	if err := p.expect("WITH", "for example REPLACE PARTITION FIELD day(ts) WITH month(ts)"); err != nil {
		return err
	}
	c, err := p.partitionTransform()
	a.add(&sinkv1.Change{Kind: &sinkv1.Change_ReplacePartitionField{ReplacePartitionField: &sinkv1.ReplacePartitionField{Drop: d, Add: c}}})
	return err
}
