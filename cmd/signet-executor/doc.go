// Signet-executor runs tasks for a Signet scheduler: it reads the inputs of a query with DuckDB and writes data files. It holds no catalog
// credential and cannot commit.
//
// The join token is read from a file (--token-file) or from SIGNET_JOIN_TOKEN, never from the command line. Every flag can also be set by a
// variable: --memory by SIGNET_EXECUTOR_MEMORY, and so on; a flag wins.
//
// What tasks leave for those of later stages is served at --exchange-listen, by default to this machine only; any other address needs a
// certificate.
//
// SIGTERM makes it leave in order: tasks get --drain to finish, and others to fetch what they left. A drain that the scheduler asks for does the
// same without that limit. Exit status: 0 after either, 1 after a failure, 2 for wrong usage.
package main
