// Package stages divides a bound query into stages whose tasks run side by side and exchange rows (StagedQuery).
//
// A query's tree becomes relational algebra over columns with names of their own (name#17), so that an expression keeps its meaning wherever it is
// evaluated. The algebra becomes fragments: SELECTs over what the tasks of one stage read. A fragment whose rows have to be moved becomes a stage, and
// the next fragment reads that. Types come from DuckDB, which binds every stage; every stage's text is DuckDB's rendering of a tree, and parses to
// that tree again.
//
// Invariants:
//
//   - The stages give what the query gives: the same rows, names and types, whatever the number of tasks and partitions is. Sums of
//     floating-point numbers may differ in their last bits. What cannot be told apart from a guess is not staged, and the reason is in the user's words.
//   - A stage shares one source, or outputs of stages that are all hashed by keys of the same types in the same order and cut into the same number of partitions;
//     everything else it reads whole. The rows of its tasks, put one behind the other, are its rows.
//   - What several tasks read whole is the same for all of them: rows that another computation might give otherwise (LIMIT, order-dependent aggregates,
//     floating-point sums) are computed by one stage, not by each task for itself.
//   - Repeatable stages give the same rows in the same partitions when a task runs again over the same input. The last bits of floating-point sums do not count,
//     unless a partition depends on them.
//   - A join by broadcast gives the rows of the stage that it stands for: it is offered only where no row's partner, and no later step of that stage, depends on
//     how the rows are divided.
package stages
