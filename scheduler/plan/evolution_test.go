package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func evolvedSchema() *planv1.Schema {
	f := func(id int32, name string, t *planv1.Type) *planv1.Field {
		return &planv1.Field{Id: id, Name: name, Type: t}
	}
	return &planv1.Schema{Fields: []*planv1.Field{
		f(1, "id", kindType(planv1.TypeKind_TYPE_KIND_INT32)), f(2, "r", kindType(planv1.TypeKind_TYPE_KIND_FLOAT32)),
		f(3, "n", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2}), f(4, "s", kindType(planv1.TypeKind_TYPE_KIND_STRING)),
		f(5, "st", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{f(6, "a", kindType(planv1.TypeKind_TYPE_KIND_INT32))}}),
	}}
}

func TestEvolve(t *testing.T) {
	for _, c := range []struct {
		name, engine string
		want         []string
	}{
		{"id", "INTEGER", nil},
		{"ID", "SMALLINT", nil},
		{"id", "BIGINT", []string{"column id becomes BIGINT, from INTEGER"}},
		{"id", "UINTEGER", []string{"column id becomes BIGINT, from INTEGER"}},
		{"id", "HUGEINT", nil}, // checked value by value
		{"id", "VARCHAR", nil}, // refused by MapColumns
		{"r", "DOUBLE", []string{"column r becomes DOUBLE, from FLOAT"}},
		{"n", "DECIMAL(18,2)", []string{"column n becomes DECIMAL(18,2), from DECIMAL(9,2)"}},
		{"n", "DECIMAL(9,1)", []string{"column n becomes DECIMAL(10,2), from DECIMAL(9,2)"}},
		{"n", "DECIMAL(9,3)", nil},
		{"s", "BIGINT", nil},
		{"x y", "TIMESTAMP_S", []string{`adds column "x y" TIMESTAMP`}},
		{"l", "STRUCT(a INTEGER)[]", []string{"adds column l STRUCT(a INTEGER)[]"}},
		{"st", "STRUCT(A BIGINT, b VARCHAR)", []string{"column st.a becomes BIGINT, from INTEGER", "adds column st.b VARCHAR"}},
	} {
		e, err := Evolve(Target{Table: "t", Schema: evolvedSchema(), ByName: true}, []*planv1.Column{{Name: c.name, EngineType: c.engine}})
		require.NoError(t, err, c.name+" "+c.engine)
		require.Equal(t, c.want, e.Text, c.name+" "+c.engine)
	}
	_, err := Evolve(Target{Table: "t", Schema: evolvedSchema(), ByName: true}, []*planv1.Column{{Name: "i", EngineType: "INTERVAL"}})
	require.ErrorContains(t, err, "column i: no table stores the type INTERVAL")
}

// What the schema will be takes what the query gives.
func TestEvolution_Apply(t *testing.T) {
	query := []*planv1.Column{
		{Name: "id", EngineType: "BIGINT"}, {Name: "new", EngineType: "STRUCT(a INTEGER)[]"}, {Name: "st", EngineType: "STRUCT(a INTEGER, b VARCHAR)"},
	}
	target := Target{Table: "t", Schema: evolvedSchema(), ByName: true}
	_, err := MapColumns(target, query)
	require.Error(t, err)
	e, err := Evolve(target, query)
	require.NoError(t, err)
	require.Len(t, e.Changes, 3)
	target.Schema = e.Apply(target.Schema)
	out, err := MapColumns(target, query)
	require.NoError(t, err)
	require.Equal(t, "BIGINT", out[0].CastType)
	require.Equal(t, "new", out[5].Field.Name)
	ids := map[int32]bool{}
	var walk func([]*planv1.Field)
	walk = func(fields []*planv1.Field) {
		for _, f := range fields {
			require.False(t, ids[f.Id], "id %d twice", f.Id)
			require.NotZero(t, f.Id)
			ids[f.Id] = true
			walk(f.Type.Fields)
		}
	}
	walk(target.Schema.Fields)
	again, err := Evolve(target, query)
	require.NoError(t, err)
	require.Empty(t, again.Changes)
	require.Len(t, evolvedSchema().Fields, 5)
}
