// Package valueslist reads statements that are a VALUES list of plain constants and nothing else, as INSERT statements often are: integers, strings,
// TRUE, FALSE and NULL. Such a statement needs no engine to be understood: the scheduler knows its columns without asking an executor, and the executor
// writes its rows without DuckDB.
//
// What it reads it reads exactly as DuckDB does: the same columns of the same types with the same values, which a test in executor/analyze holds. What it
// does not know for certain (other literals, expressions, comments, columns of mixed types) it does not read at all, and DuckDB has the word.
package valueslist
