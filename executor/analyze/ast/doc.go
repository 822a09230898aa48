// Package ast holds the JSON that DuckDB's json_serialize_sql makes of a statement, in the order and with the numbers in which it came, so that it can be
// changed and handed back to json_deserialize_sql.
//
// Invariants: constants stay unparsed bytes, so a VALUES list of a million rows costs a slice header per constant; what is not changed is
// written back byte for byte.
package ast
