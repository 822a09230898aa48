//go:build !linux

package duckdb

// lowerPriority does nothing where priorities belong to processes.
func lowerPriority() {}
