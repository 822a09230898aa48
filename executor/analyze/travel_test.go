package analyze

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

// described lists the tables that a statement reads as table@version@micros.
func described(res *executorv1.AnalyzeResult) []string {
	var out []string
	for _, u := range res.GetUnresolved() {
		text := strings.Join(u.GetTable(), ".")
		if u.GetVersion() != "" {
			text += " version " + u.GetVersion()
		}
		if u.AsOfMicros != nil {
			text += " at " + clock{u.GetAsOfMicros()}.value("TIMESTAMP")
		}
		out = append(out, text)
	}
	return out
}

func TestTravel_FindsTheClauses(t *testing.T) {
	for sql, want := range map[string][]string{
		"SELECT * FROM t FOR VERSION AS OF 123":                                                                 {"t version 123"},
		"SELECT * FROM l.d.t VERSION AS OF 123 x WHERE x.a = 1":                                                 {"l.d.t version 123"},
		"SELECT * FROM l.d.t FOR SYSTEM_VERSION AS OF 'exp 1' AS x":                                             {"l.d.t version exp 1"},
		"SELECT * FROM t FOR TIMESTAMP AS OF '2026-01-31 12:00:00'":                                             {"t at 2026-01-31 12:00:00.000000"},
		"SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-31 12:00:00+02:00'":                           {"t at 2026-01-31 12:00:00.000000"},
		"SELECT * FROM t FOR TIMESTAMP AS OF TIMESTAMPTZ '2026-01-31 12:00:00+02:00'":                           {"t at 2026-01-31 10:00:00.000000"},
		"SELECT * FROM t TIMESTAMP AS OF DATE '2026-01-31'":                                                     {"t at 2026-01-31 00:00:00.000000"},
		"SELECT * FROM t FOR TIMESTAMP AS OF 1700000000":                                                        {"t at 2023-11-14 22:13:20.000000"},
		"SELECT * FROM t FOR TIMESTAMP AS OF (now() - INTERVAL 1 DAY)":                                          {"t at 2026-04-30 12:34:56.789000"},
		"SELECT * FROM t FOR TIMESTAMP AS OF current_timestamp":                                                 {"t at 2026-05-01 12:34:56.789000"},
		"SELECT * FROM t for version /* x */ as of 1 JOIN t USING (id) JOIN t FOR VERSION AS OF 2 z USING (id)": {"t version 1", "t", "t version 2"},
		"SELECT * FROM t FOR VERSION AS OF 1, t FOR VERSION AS OF 1 AS u":                                       {"t version 1"},
		"SELECT * FROM l.d.t.branch_audit b JOIN l.d.t.\"tag_v 1\" g USING (id)":                                {"l.d.t version audit", "l.d.t version v 1"},
		"SELECT * FROM d.t.branch_audit":                                                                        {"d.t.branch_audit"}, // it may be a table: who knows the catalogs decides
		"SELECT version AS of, 'FOR VERSION AS OF 1' FROM t -- FOR VERSION AS OF 2":                             {"t"},
		"SELECT l.d.t.branch_x FROM l.d.t":                                                                      {"l.d.t"},
		`SELECT "FOR" AS version, "a"."VERSION" AS of FROM "t ""1" FOR VERSION AS OF 1 a`:                          {`t "1 version 1`},
	} {
		res := ok(t, sql)
		require.Equal(t, want, described(res), sql)
	}
}

func TestTravel_RefusedClearly(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT * FROM t FOR VERSION AS OF":                          "is followed by no value",
		"SELECT * FROM t FOR VERSION AS OF x":                        "is followed by no value",
		"SELECT * FROM t FOR VERSION AS OF 1.5":                      "number or a name",
		"SELECT * FROM t FOR TIMESTAMP AS OF 'soon'":                 "is no time",
		"SELECT * FROM t FOR TIMESTAMP AS OF (SELECT max(x) FROM u)": "want one constant",
		"SELECT * FROM t FOR TIMESTAMP AS OF '0001-01-01'":           "in the year 1",
		"SELECT * FROM t FOR VERSION AS OF 1 FOR VERSION AS OF 2":    "not a table",
		"WITH c AS (SELECT 1) SELECT * FROM c FOR VERSION AS OF 1":   "is no table",
		"SELECT * FROM 'x.parquet' FOR VERSION AS OF 1":              "is no table",
		"SELECT * FROM (SELECT 1) x FOR VERSION AS OF 1":             "not a table",
		"SELECT * FROM t AT (VERSION => 1)":                          "AT is not supported",
	} {
		res := run(t, sql)
		require.NotNil(t, res.GetError(), sql)
		require.Contains(t, res.GetError().GetMessage(), want, sql)
	}
}
