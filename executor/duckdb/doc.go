// Package duckdb gives each task and each analysis a DuckDB of its own that sees its inputs and its scratch directory and nothing else.
//
// Invariants:
//
//   - An Instance that may touch any file serves one task or one analysis and is closed after it; nothing of it is reused. Only instances that may touch
//     nothing (Pool.Bare) parse and bind for several analyses.
//   - Open answers only with a locked instance: the allowed paths and directories are set, then external access is turned off, then the
//     configuration is locked. None of the three can be undone in DuckDB.
//   - No extension is installed or loaded by name: autoinstall and autoload are off before the first statement.
//   - The time zone is UTC, so results do not depend on the machine.
//   - BindSources gives every task the same column names and types, whatever its share of the files.
//   - A query's text is one SELECT or VALUES statement, or it is refused before it is run.
//   - A file that is not as it was pinned fails with its name, before the read or after it.
package duckdb
