// Package format prints query results: as a table for people, as JSON lines and as CSV for programs.
//
// Invariants:
//   - Every value is printed exactly: no digit of an integer, decimal, float, time or blob is lost or invented.
//   - NULL is told from every other value: NULL in tables, null in JSON, an empty unquoted field in CSV (an empty string is "").
//   - Text in tables cannot move the cursor or forge a row: control characters are escaped.
//   - Rows are written batch by batch; memory does not grow with the result.
//
// JSON: one object per row. Booleans, integers, floats and decimals without a fraction (DuckDB's HUGEINT among them) are JSON
// numbers or literals with all their digits. Decimals with a scale are strings, since most JSON readers would round them; so are NaN and the
// infinities. Dates and times are ISO 8601 strings, instants end in Z, UUIDs are text, binary is base64. Lists are arrays, structs
// objects; maps with text keys are objects, others arrays of {"key":…,"value":…}. A second column of one name gets _1, _2, …
//
// Tables and CSV print values as DuckDB casts them to VARCHAR, nested ones included; instants are in UTC.
package format
