package sql

import planv1 "github.com/signet-io/signet/api/plan/v1"

// transforms by the names that DuckDB, Spark and Trino give them.
var transforms = map[string]planv1.TransformKind{
	"IDENTITY": planv1.TransformKind_TRANSFORM_KIND_IDENTITY,
	"BUCKET":   planv1.TransformKind_TRANSFORM_KIND_BUCKET,
	"TRUNCATE": planv1.TransformKind_TRANSFORM_KIND_TRUNCATE,
	"YEAR":     planv1.TransformKind_TRANSFORM_KIND_YEAR, "YEARS": planv1.TransformKind_TRANSFORM_KIND_YEAR,
	"MONTH": planv1.TransformKind_TRANSFORM_KIND_MONTH, "MONTHS": planv1.TransformKind_TRANSFORM_KIND_MONTH,
	"DAY": planv1.TransformKind_TRANSFORM_KIND_DAY, "DAYS": planv1.TransformKind_TRANSFORM_KIND_DAY,
	"DATE": planv1.TransformKind_TRANSFORM_KIND_DAY,
	"HOUR": planv1.TransformKind_TRANSFORM_KIND_HOUR, "HOURS": planv1.TransformKind_TRANSFORM_KIND_HOUR,
	"VOID": planv1.TransformKind_TRANSFORM_KIND_VOID,
}

type term struct {
	column    Ident
	transform planv1.TransformKind
	param     int32
}

// term reads a column or a transform of one: bucket(16, id) and bucket(id, 16) are the same.
func (p *parser) term() (term, error) {
	t := p.peek()
	if t.Kind != KindIdent || !p.peekAt(1).is("(") {
		id, err := p.columnRef()
		return term{column: id, transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}, err
	}
	kind, ok := transforms[keyword(t)]
	if !ok {
		return term{}, p.fail("unknown transform "+p.show(t), "identity, bucket, truncate, year, month, day, hour and void exist")
	}
	p.pos += 2
	out := term{transform: kind}
	takesParam := kind == planv1.TransformKind_TRANSFORM_KIND_BUCKET || kind == planv1.TransformKind_TRANSFORM_KIND_TRUNCATE
	var err error
	if takesParam && p.peek().Kind == KindNumber {
		if out.param, err = p.transformParam(kind); err != nil {
			return term{}, err
		}
		if err := p.expect(",", "for example bucket(16, id)"); err != nil {
			return term{}, err
		}
	}
	if out.column, err = p.columnRef(); err != nil {
		return term{}, err
	}
	if takesParam && out.param == 0 {
		if err := p.expect(",", "for example bucket(16, id) or truncate(4, name)"); err != nil {
			return term{}, err
		}
		if out.param, err = p.transformParam(kind); err != nil {
			return term{}, err
		}
	}
	return out, p.expect(")", "")
}

func (p *parser) transformParam(kind planv1.TransformKind) (int32, error) {
	what := "a width"
	if kind == planv1.TransformKind_TRANSFORM_KIND_BUCKET {
		what = "a number of buckets"
	}
	return p.number(what, 1, 1<<31-1)
}

func (p *parser) columnRef() (Ident, error) {
	id, err := p.ident("a column name")
	for err == nil && p.nested && p.accept(".") {
		var part Ident
		part, err = p.ident("a column name")
		id.Text += "." + part.Text
	}
	if err == nil && p.peek().is(".") {
		return id, p.fail("fields inside structs are not supported here yet", "use a column of the table")
	}
	return id, err
}

func (p *parser) partitionTerm(c *CreateTable) error {
	t, err := p.term()
	if err != nil {
		return err
	}
	if !p.peek().isAny(",", ")") && p.peek().isName() {
		return p.fail("a partition column has no type here", "define the column in the list of columns, name it in PARTITIONED BY")
	}
	c.Partition = append(c.Partition, PartitionTerm{Column: t.column, Transform: t.transform, Param: t.param})
	return nil
}

func (p *parser) sortTerm(out *[]SortTerm) error {
	t, err := p.term()
	if err != nil {
		return err
	}
	if t.transform == planv1.TransformKind_TRANSFORM_KIND_VOID {
		return newError(p.text, t.column.Offset, "void cannot order rows", "")
	}
	s := SortTerm{Column: t.column, Transform: t.transform, Param: t.param}
	if !p.accept("ASC") {
		s.Descending = p.accept("DESC")
	}
	s.NullsFirst = !s.Descending
	if p.accept("NULLS") {
		switch {
		case p.accept("FIRST"):
			s.NullsFirst = true
		case p.accept("LAST"):
			s.NullsFirst = false
		default:
			return p.unexpected("FIRST or LAST", "")
		}
	}
	*out = append(*out, s)
	return nil
}
