package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
	"github.com/stretchr/testify/require"
)

// schema reads "id BIGINT NOT NULL, name VARCHAR" by way of CREATE TABLE.
func schema(t *testing.T, columns string) *planv1.Schema {
	t.Helper()
	s, err := sql.Parse("CREATE TABLE t (" + columns + ")")
	require.NoError(t, err)
	out := &planv1.Schema{}
	for i, c := range s.(*sql.CreateTable).Columns {
		out.Fields = append(out.Fields, &planv1.Field{Id: int32(i + 1), Name: c.Name.Text, Type: c.Type, Required: c.Required})
	}
	return out
}

// columns reads "a=INTEGER", "b='VARCHAR" (a quote: a string literal).
func columns(specs ...string) []*planv1.Column {
	var out []*planv1.Column
	for _, s := range specs {
		name, typ, _ := strings.Cut(s, "=")
		c := &planv1.Column{Name: name, EngineType: typ}
		if rest, ok := strings.CutPrefix(typ, "'"); ok {
			c.EngineType, c.StringLiteral = rest, true
		}
		out = append(out, c)
	}
	return out
}

func inputs(cols []*planv1.OutputColumn) string {
	var parts []string
	for _, c := range cols {
		parts = append(parts, fmt.Sprintf("%s:%d:%s", c.GetField().GetName(), c.GetInput(), c.GetCastType()))
	}
	return strings.Join(parts, " ")
}

const x1 = "id BIGINT, dat TIMESTAMP, y BIGINT, m BIGINT"

func TestMapColumns_ValuesLandUnderTheListedName_X1(t *testing.T) {
	query := columns("a=TIMESTAMP", "b=INTEGER", "c=INTEGER", "d=INTEGER")
	got, err := MapColumns(Target{Table: "t", Schema: schema(t, x1), List: []string{"dat", "m", "y", "id"}}, query)
	require.NoError(t, err)
	require.Equal(t, "id:3:BIGINT dat:0:TIMESTAMP y:2:BIGINT m:1:BIGINT", inputs(got))
}

func TestMapColumns_ByName_X1(t *testing.T) {
	query := columns("dat=TIMESTAMP", "M=INTEGER", "y=INTEGER")
	got, err := MapColumns(Target{Table: "t", Schema: schema(t, x1), ByName: true}, query)
	require.NoError(t, err)
	require.Equal(t, "id:-1:BIGINT dat:0:TIMESTAMP y:2:BIGINT m:1:BIGINT", inputs(got))
}

func TestMapColumns_OddNames_X1(t *testing.T) {
	names := []string{"order", "values", "authorization", "größe", "日本", `a"b`, "with space"}
	s := &planv1.Schema{}
	var query []*planv1.Column
	for i, n := range names {
		s.Fields = append(s.Fields, &planv1.Field{Id: int32(i), Name: n, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}})
		query = append(query, &planv1.Column{Name: n, EngineType: "INTEGER"})
	}
	reversed := make([]string, len(names))
	for i, n := range names {
		reversed[len(names)-1-i] = n
	}
	got, err := MapColumns(Target{Table: "t", Schema: s, List: reversed}, query)
	require.NoError(t, err)
	for i, c := range got {
		require.Equal(t, int32(len(names)-1-i), c.GetInput())
	}
}

// X3: columns that differ in case only are told apart by exact names, and never guessed.
func TestMapColumns_CasePair_X3(t *testing.T) {
	s := schema(t, "a INT, A INT")
	pair := columns("A=INTEGER", "a=INTEGER")
	for _, target := range []Target{{Table: "t", Schema: s, List: []string{"A", "a"}}, {Table: "t", Schema: s, ByName: true}} {
		got, err := MapColumns(target, pair)
		require.NoError(t, err)
		require.Equal(t, "a:1:INTEGER A:0:INTEGER", inputs(got))
	}
	_, err := MapColumns(Target{Table: "t", Schema: schema(t, "ab INT, x INT"), ByName: true}, columns("AB=INTEGER", "Ab=INTEGER"))
	require.ErrorContains(t, err, "AB (1) and Ab (2) both go to column ab of t")
	_, err = MapColumns(Target{Table: "t", Schema: schema(t, "aB INT, Ab INT"), List: []string{"ab", "AB"}}, pair)
	require.ErrorContains(t, err, "column ab could be any of aB, Ab of t")
}

func TestMapColumns_Refusals(t *testing.T) {
	s := schema(t, "id BIGINT NOT NULL, carrier VARCHAR, price DECIMAL(10,2), at TIMESTAMP, z TIMESTAMPTZ, u UUID")
	one := columns("a=INTEGER")
	for name, c := range map[string]struct {
		target Target
		query  []*planv1.Column
		want   []string
	}{
		"too few":        {Target{}, columns("a=INTEGER", "b=VARCHAR"), []string{"t has 6 columns and the query gives 2: nothing is given for price, at, z, u", "BY NAME"}},
		"too many":       {Target{}, columns("a=INTEGER", "b=VARCHAR", "c=INTEGER", "d=DATE", "e=DATE", "f=UUID", "extra=INTEGER"), []string{"nothing takes extra"}},
		"list too long":  {Target{List: []string{"id", "carrier"}}, one, []string{"the list names 2 columns and the query gives 1", "carrier"}},
		"list too short": {Target{List: []string{"id"}}, columns("a=INTEGER", "b=INTEGER"), []string{"the list names 1 column and the query gives 2: nothing takes b"}},
		"duplicate":      {Target{List: []string{"id", "ID"}}, columns("a=INTEGER", "b=INTEGER"), []string{"the list names column id twice, as id and as ID"}},
		"unknown":        {Target{List: []string{"carier"}}, one, []string{"column carier is not in t", "did you mean carrier?"}},
		"unknown far":    {Target{List: []string{"weather"}}, one, []string{"column weather is not in t", "its columns are id, carrier"}},
		"by name":        {Target{ByName: true}, columns("id=INTEGER", "prize=INTEGER"), []string{"the query's column prize is not in t", "did you mean price?"}},
		"required":       {Target{List: []string{"carrier"}}, columns("a=VARCHAR"), []string{"column id of t is required and the INSERT gives it no value"}},
		"required name":  {Target{ByName: true}, columns("carrier=VARCHAR"), []string{"column id of t is required"}},
		"null":           {Target{List: []string{"id"}}, columns(`a="NULL"`), []string{"column id of t is required and the query gives NULL"}},
		"cast":           {Target{List: []string{"id", "carrier"}}, columns("a=DOUBLE", "b c=INTEGER"), []string{"column id of t is BIGINT and the query gives DOUBLE", "CAST(a AS BIGINT)", "column carrier of t is VARCHAR and the query gives INTEGER", "CAST(… AS VARCHAR), around expression 2 of the query"}},
		"constant":       {Target{List: []string{"id", "carrier"}}, columns("1.0=DECIMAL(2,1)", "col1=INTEGER"), []string{"CAST(… AS BIGINT), around expression 1 of the query"}},
		"values":         {Target{List: []string{"id"}}, columns("col0=DECIMAL(4,3)"), []string{"CAST(… AS BIGINT), around expression 1 of the query"}},
		"zone":           {Target{List: []string{"id", "at"}}, columns("a=INTEGER", "x=TIMESTAMP WITH TIME ZONE"), []string{"column at of t is TIMESTAMP", "x AT TIME ZONE 'UTC'"}},
		"string column":  {Target{List: []string{"id"}}, columns("a=VARCHAR"), []string{"BIGINT and the query gives VARCHAR", "CAST(a AS BIGINT)"}},
		"interval":       {Target{List: []string{"id"}}, columns("a=INTERVAL"), []string{"the query gives INTERVAL"}},
		"broken type":    {Target{List: []string{"id"}}, columns("a=STRUCT("), []string{"column a of the query"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.target.Table, c.target.Schema = "t", s
			_, err := MapColumns(c.target, c.query)
			var e *Error
			require.True(t, errors.As(err, &e), "%v", err)
			require.NotEmpty(t, e.Columns)
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

func TestMapColumns_LiteralsAndDefaults(t *testing.T) {
	s := schema(t, "id BIGINT NOT NULL, d DATE, u UUID, f FIXED(4), n DECIMAL(5,1), b BOOLEAN, s STRUCT(a INT)")
	s.Fields[0].WriteDefault = &planv1.Value{Kind: &planv1.Value_Integer{Integer: 7}}
	got, err := MapColumns(Target{Table: "t", Schema: s, List: []string{"d", "u", "f", "n", "b"}},
		columns("a='VARCHAR", "b='VARCHAR", "c='VARCHAR", "d='VARCHAR", "e='VARCHAR"))
	require.NoError(t, err)
	require.Equal(t, `id:-1:BIGINT d:0:DATE u:1:UUID f:2:BLOB n:3:DECIMAL(5,1) b:4:BOOLEAN s:-1:STRUCT("a" INTEGER)`, inputs(got))

	_, err = MapColumns(Target{Table: "t", Schema: s, List: []string{"s"}}, columns("a='VARCHAR"))
	require.ErrorContains(t, err, "column s of t is STRUCT(a INTEGER) and the query gives VARCHAR")
	_, err = MapColumns(Target{Table: "t", Schema: s, List: []string{"s"}}, columns("a=STRUCT(b INTEGER)"))
	require.ErrorContains(t, err, "the table's struct has no field b")
}

func TestMapColumns_UnwritableTableType(t *testing.T) {
	_, err := MapColumns(Target{Table: "t", Schema: schema(t, "z TIMESTAMPTZ_NS")}, columns("a=TIMESTAMP WITH TIME ZONE"))
	require.ErrorContains(t, err, "column z of t cannot be written: the engine has no type for TIMESTAMPTZ_NS")
}

// Errors stay readable for wide tables.
func TestMapColumns_ManyErrorsAreBounded(t *testing.T) {
	var defs, query []string
	for i := range 5000 {
		defs = append(defs, fmt.Sprintf("c%d INT", i))
		query = append(query, fmt.Sprintf("c%d=VARCHAR", i))
	}
	_, err := MapColumns(Target{Table: "t", Schema: schema(t, strings.Join(defs, ","))}, columns(query...))
	require.Less(t, len(err.Error()), 10_000)
}
