package analyze

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// S70: whatever is not a query over named tables and files is refused by name, before anything is opened.
func TestAnalyze_Refuses(t *testing.T) {
	for sql, part := range map[string]string{
		"SELECT content FROM read_text('/etc/passwd')":                        "read_text",
		"SELECT * FROM read_blob('/etc/passwd')":                              "read_blob",
		"SELECT * FROM glob('/etc/*')":                                        "glob",
		"SELECT * FROM sniff_csv('/etc/passwd')":                              "sniff_csv",
		"SELECT * FROM parquet_metadata('x.parquet')":                         "parquet_metadata",
		"SELECT * FROM parquet_kv_metadata('x.parquet')":                      "parquet_kv_metadata",
		"SELECT * FROM read_duckdb('x.db')":                                   "read_duckdb",
		"SELECT * FROM duckdb_settings()":                                     "duckdb_settings",
		"SELECT * FROM duckdb_secrets()":                                      "duckdb_secrets",
		"SELECT * FROM duckdb_tables":                                         "duckdb_tables",
		"SELECT * FROM information_schema.tables":                             "information_schema.tables",
		"SELECT * FROM system.information_schema.tables":                      "information_schema.tables",
		"SELECT * FROM pg_catalog.pg_class":                                   "pg_catalog.pg_class",
		"SELECT * FROM sqlite_master":                                         "sqlite_master",
		"SELECT * FROM pragma_version()":                                      "pragma_version",
		"SELECT * FROM query('SELECT 1')":                                     "query",
		"SELECT * FROM query_table('a.csv')":                                  "query_table",
		"SELECT * FROM enable_logging(storage='file', storage_path='/tmp/x')": "enable_logging",
		"SELECT * FROM json_execute_serialized_sql('x')":                      "json_execute_serialized_sql",
		"SELECT * FROM range(3) WHERE 1 IN (SELECT 1 FROM read_text('x'))":    "read_text",
		"WITH c AS (SELECT * FROM read_text('x')) SELECT * FROM c":            "read_text",
		"SELECT 1 UNION ALL SELECT size FROM read_blob('x')":                  "read_blob",
		"SELECT (SELECT content FROM read_text('x'))":                         "read_text",
		"SELECT * FROM unnest((SELECT list(content) FROM read_text('x')))":    "read_text",
		"SELECT getenv('HOME')":                                               "getenv",
		"SELECT current_setting('allowed_paths')":                             "current_setting",
		"SELECT getvariable('x')":                                             "getvariable",
		"SELECT write_log('x')":                                               "write_log",
		"SELECT sum(length(getenv('HOME'))) OVER () FROM range(3)":            "getenv",
		"SHOW TABLES":                       "SHOW",
		"DESCRIBE SELECT 1":                 "DESCRIBE",
		"SUMMARIZE SELECT 1":                "SUMMARIZE",
		"FROM (SHOW TABLES)":                "SHOW",
		"SELECT 1; SELECT 2":                "found 2",
		"":                                  "empty",
		" -- nothing":                       "empty",
		"INSERT INTO t VALUES (1)":          "SELECT or VALUES",
		"COPY (SELECT 1) TO '/tmp/x'":       "SELECT or VALUES",
		"ATTACH '/tmp/x'":                   "SELECT or VALUES",
		"INSTALL httpfs":                    "SELECT or VALUES",
		"SET threads=1":                     "SELECT or VALUES",
		"PRAGMA version":                    "SELECT or VALUES",
		"EXPORT DATABASE '/tmp/x'":          "SELECT or VALUES",
		"CALL pragma_version()":             "SELECT or VALUES",
		"CREATE MACRO f() AS 1":             "SELECT or VALUES",
		"EXPLAIN SELECT 1":                  "SELECT or VALUES",
		"PIVOT t ON a USING sum(b)":         "SELECT or VALUES",
		"FROM (PIVOT t ON a USING sum(b))":  "IN ('a', 'b')",
		"SELECT ?":                          "parameters",
		"SELECT $1":                         "parameters",
		"SELEC 1":                           "line 1, column 1",
		"SELECT\n  1 +\nFROM t":             "line 3",
		"SELECT * FROM t AT (VERSION => 1)": "AT is not supported",
		"SELECT * FROM read_csv('a.csv', delim = (SELECT ';'))":                       "constants",
		"SELECT * FROM read_csv(getenv('HOME'))":                                      "constants",
		"SELECT * FROM read_parquet()":                                                "no file",
		"SELECT * FROM read_parquet(3)":                                               "file name",
		"SELECT * FROM read_parquet('a', 'b')":                                        "one list",
		"SELECT * FROM read_parquet('a', filename=true, FILENAME=false)":              "twice",
		"SELECT * FROM read_csv('a.csv') WITH ORDINALITY":                             "ORDINALITY",
		"SELECT * FROM no_such_function('a')":                                         "no_such_function",
		"SELECT no_such_function(1)":                                                  "no_such_function",
		"SELECT nope":                                                                 "nope",
		"SELECT * FROM range(3) LIMIT (SELECT count(*) FROM read_text('/etc/hosts'))": "read_text",
	} {
		out := run(t, sql)
		require.NotNil(t, out.Error, sql)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, out.Error.Class, "%s: %v", sql, out.Error)
		require.Contains(t, out.Error.Message+" "+out.Error.Hint, part, sql)
		require.NotContains(t, out.Error.Message, "signet_source", sql)
		require.Equal(t, "r", out.RequestId)
		require.Empty(t, out.Unresolved, sql)
	}
}
