package meta

import planv1 "github.com/signet-io/signet/api/plan/v1"

// ParseType reads a primitive type as Iceberg's documents write it.
func ParseType(name string) (*planv1.Type, error) { return parsePrimitive(name) }
