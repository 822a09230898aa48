// Package inputs brings files from object stores to where DuckDB reads them: to paths of the local file system.
//
// A file is fetched once, into a cache below the executor's scratch directory, whoever needs it first; each task and each analysis gets it under a name of its own, a hard link in
// its own directory, which ends in the file's key, so that names and directories say what they say in the store.
//
// Invariants:
//
//   - What is handed on is a whole file: of the size that was planned, and of one version of the object, also when its body had to be resumed.
//   - A file that has changed since it was planned for is refused (S73).
//   - A name never leads out of the directory: keys with segments that mean something to a file system are refused.
//   - What the cache removes stays readable for those who have it.
package inputs
