// Package sql reads the statements that Signet handles itself: the heads of INSERT and CREATE TABLE, and the small ones such as
// SHOW and DROP. Queries are DuckDB's: their text is cut out and kept byte for byte, never rebuilt.
//
// Invariants:
//   - Parse and Split never panic and read each byte a bounded number of times, whatever the text (fuzzed).
//   - Every error is an *Error: it has the line and column, shows the place, and says what to write instead where we know.
//   - A statement we know but do not run is refused by its name, not as a syntax error.
//   - Query.Text is text[Query.Offset : Query.Offset+len(Query.Text)]: an offset that DuckDB reports can be mapped back.
//   - An identifier keeps the case in which it was written. Names are matched exactly first, then without regard to case where
//     that is unambiguous (Find); quoting changes neither rule, it only allows more characters.
//   - What a clause cannot be honoured with is refused, never dropped in silence (VARCHAR(20), PRIMARY KEY, USING, LOCATION).
//
// The package imports no I/O, clock or network.
package sql
