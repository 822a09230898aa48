package analyze

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/internal/valueslist"
)

// What is read without DuckDB is what DuckDB reads: columns, types, text and values.
func TestValuesList_IsWhatDuckDBReads(t *testing.T) {
	for _, sql := range []string{
		"VALUES (1, 'one row')", "values\t(1)\n,(2) ;", " VALUES ( - 1 )", "VALUES (-1, 'it''s', NULL, true), (5000000000, NULL, NULL, FALSE)",
		"VALUES (-2147483648, 2147483647, -2147483647, 2147483648)", "VALUES (9223372036854775807, -9223372036854775807, -0, 007)",
		"VALUES ('', '''', 'a\nb', 'ü€𝄞', '--', '/*', ';')", "VALUES (NULL, 1), (NULL, NULL)", "VALUES(nUlL),(tRuE)", "VALUES (1), (NULL), (-3)",
		"VALUES ('2020-01-01', 'true')", "VALUES (NULL)", "VALUES (2147483647), (2147483648)",
	} {
		l, read := valueslist.Parse(sql)
		if strings.Contains(sql, "- 1") {
			require.False(t, read, sql)
			continue
		}
		require.True(t, read, sql)
		out := ok(t, sql)
		require.Equal(t, out.GetSql(), l.Text)
		requireColumns(t, out.GetColumns(), l.Literals(), sql)
		requireColumns(t, out.GetStaged().GetStages()[0].GetColumns(), l.Columns(), sql)
		require.Equal(t, rowsOf(t, sql), listed(l), sql)
	}
}

func requireColumns(t *testing.T, want, got []*planv1.Column, sql string) {
	t.Helper()
	require.Len(t, got, len(want), sql)
	for i := range want {
		require.True(t, proto.Equal(want[i], got[i]), "%s: column %d: %v, wanted %v", sql, i, got[i], want[i])
	}
}

// rowsOf are the rows as DuckDB has them.
func rowsOf(t *testing.T, sql string) (out []string) {
	t.Helper()
	inst, err := testPool.Open(t.Context(), duckdb.Access{TempDir: t.TempDir(), KeepOrder: true})
	require.NoError(t, err)
	defer inst.Close()
	rows, err := inst.Conn().QueryContext(t.Context(), sql)
	require.NoError(t, err)
	defer rows.Close()
	cols, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values, dest := make([]any, len(cols)), make([]any, len(cols))
		for i := range values {
			dest[i] = &values[i]
		}
		require.NoError(t, rows.Scan(dest...))
		out = append(out, fmt.Sprint(values))
	}
	require.NoError(t, rows.Err())
	return out
}

func listed(l *valueslist.List) (out []string) {
	for _, row := range l.Rows {
		var values []any
		for _, v := range row {
			switch v.Kind {
			case valueslist.Null:
				values = append(values, nil)
			case valueslist.Integer:
				values = append(values, v.Integer)
			case valueslist.String:
				values = append(values, v.Text)
			case valueslist.Boolean:
				values = append(values, v.Integer == 1)
			}
		}
		out = append(out, fmt.Sprint(values))
	}
	return out
}

func TestValuesList_LeavesTheRestToDuckDB(t *testing.T) {
	for _, sql := range []string{
		"", "VALUES", "VALUES ()", "VALUES (1", "VALUES (1,)", "VALUES (1) (2)", "VALUES (1), (1, 2)", "VALUES (1), ('a')", "VALUES (1.5)", "VALUES (1e3)", "VALUES (+1)",
		"VALUES (--1\n1)", "VALUES (1) -- c", "VALUES (1 /* c */)", "VALUES (x)", "VALUES (1 + 1)", "VALUES ('a' 'b')", "VALUES ('a'::VARCHAR)", "VALUES (E'a')", "VALUES ($$a$$)",
		"VALUES (X'00')", "VALUES (DATE '2020-01-01')", "VALUES (9223372036854775808)", "VALUES (-9223372036854775808)", "VALUES (1_000)", "VALUES (0x10)", "VALUES (DEFAULT)",
		"VALUES (?)", "VALUES ($1)", "VALUES (1) ORDER BY 1", "VALUES (1); VALUES (2)", "VALUES (1);;", "VALUESx (1)", "SELECT 1", "VALUES ('a", "VALUES ('a\x00b')", "VALUES ('\xff')",
		"VALUES (NULLx)", "VALUES (TRUE), (1)", "VALUES (1)\u00a0", "VALUES (NULL || 'a')", "VALUES ([1])", "VALUES ((1))", strings.Repeat(" ", 65<<10) + "VALUES (1)",
		"VALUES (1)" + strings.Repeat(", (1)", 1000),
	} {
		_, read := valueslist.Parse(sql)
		require.False(t, read, sql)
	}
}
