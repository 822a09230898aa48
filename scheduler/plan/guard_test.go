package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func guardRequest(t *testing.T, condition string) (Request, Stage) {
	t.Helper()
	p, err := BindCondition(conditionOf(t, condition), conditionSchema(), "t", "REPLACE WHERE")
	require.NoError(t, err)
	var out []*planv1.OutputColumn
	var columns []*planv1.Column
	for i, f := range conditionSchema().Fields {
		cast, err := CastType(f.Type)
		require.NoError(t, err)
		out = append(out, &planv1.OutputColumn{Field: f, Input: int32(i), CastType: cast})
		columns = append(columns, &planv1.Column{Name: f.Name, EngineType: cast})
	}
	return Request{Output: out, Guard: &Guard{Predicate: p, Text: "REPLACE WHERE " + condition}}, Stage{sql: "SELECT * FROM q", columns: columns}
}

// The check stands in the select list: in a WHERE clause an optimizer could evaluate it for rows that the query leaves out.
func TestGuard_StandsInTheSelectList(t *testing.T) {
	r, st := guardRequest(t, "s = 'x' AND i > 1")
	b := &builder{req: r}
	require.NoError(t, b.guard(&st))
	require.Contains(t, st.sql, "SELECT CASE WHEN (c11 = CAST('x' AS VARCHAR) AND c1 > CAST('1' AS INTEGER)) THEN c0 ELSE error('REPLACE WHERE s = ''x'' AND i > 1: the query gives a row with ' || "+
		"'s = ' || coalesce(CAST(c11 AS VARCHAR), 'NULL') || ', ' || 'i = ' || coalesce(CAST(c1 AS VARCHAR), 'NULL')) END AS c0, c1, c2")
	require.NotContains(t, st.sql, "WHERE c")
	require.Len(t, st.columns, len(r.Output))
	require.Equal(t, []string{"every row is checked against REPLACE WHERE s = 'x' AND i > 1"}, st.Notes)
}

// Values that the cast to the column's type refuses pass: the cast names column and value.
func TestGuard_LeavesBadValuesToTheCast(t *testing.T) {
	r, st := guardRequest(t, "i = 1")
	st.columns[1].EngineType = "VARCHAR"
	require.NoError(t, (&builder{req: r}).guard(&st))
	require.Contains(t, st.sql, "CASE WHEN (TRY_CAST(c1 AS INTEGER) = CAST('1' AS INTEGER)) OR (c1 IS NOT NULL AND TRY_CAST(c1 AS INTEGER) IS NULL) THEN")
}

func TestGuard_FieldsOfStructsAndColumnsWithoutInput(t *testing.T) {
	r, st := guardRequest(t, `st."In ner" = 1 AND i IS NULL AND s = 'x'`)
	r.Output[1].Input, r.Output[11].Input = -1, -1
	r.Output[11].Field.WriteDefault = &planv1.Value{Kind: &planv1.Value_String_{String_: "y"}}
	require.NoError(t, (&builder{req: r}).guard(&st))
	require.Contains(t, st.sql, "(struct_extract(c15, 'In ner') = CAST('1' AS BIGINT) AND CAST(NULL AS INTEGER) IS NULL AND CAST('y' AS VARCHAR) = CAST('x' AS VARCHAR))")
}

func TestGuard_NoneChangesNothing(t *testing.T) {
	st := Stage{sql: "SELECT 1"}
	require.NoError(t, (&builder{}).guard(&st))
	require.Equal(t, Stage{sql: "SELECT 1"}, st)
}
