// Package tpch has the 22 queries of TPC-H with their validation parameters, and tables like TPC-H's for them: not the benchmark's own rows, but the same
// schema, keys and value domains, made by DuckDB alone and the same every time.
package tpch
