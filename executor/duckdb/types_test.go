package duckdb

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// A type that DuckDB lacks, or that is malformed, has a name all the same.
func TestTypeName_OfEveryKind(t *testing.T) {
	for kind := range planv1.TypeKind_name {
		for fields := range 3 {
			typ := &planv1.Type{Kind: planv1.TypeKind(kind), Fields: make([]*planv1.Field, fields)}
			for n := range typ.Fields {
				typ.Fields[n] = &planv1.Field{Name: "f", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS}}
			}
			require.NotEmpty(t, TypeName(typ))
		}
	}
	_, err := SQLType(&planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS})
	require.EqualError(t, err, "DuckDB has no type for TIMESTAMPTZ_NS")
}
