package write

import (
	"context"

	"github.com/duckdb/duckdb-go/v2/mapping"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// describe binds the query and answers its columns. Unlike duckdb.Describe it keeps the shape of nested types that no table can store as
// they are, such as {'a': NULL}: field names must be compared before the cast forgets them.
func describe(ctx context.Context, inst *duckdb.Instance, sql string) ([]*planv1.Column, error) {
	var cols []*planv1.Column
	err := inst.WithSelect(ctx, sql, func(_ mapping.Connection, stmt mapping.PreparedStatement) error {
		n := mapping.PreparedStatementColumnCount(stmt)
		cols = make([]*planv1.Column, n)
		for i := range n {
			lt := mapping.PreparedStatementColumnLogicalType(stmt, i)
			_, engine := duckdb.TypeOf(lt)
			cols[i] = &planv1.Column{Name: mapping.PreparedStatementColumnName(stmt, i), Type: shapeOf(lt), EngineType: engine}
			mapping.DestroyLogicalType(&lt)
		}
		return nil
	})
	return cols, err
}

func shapeOf(lt mapping.LogicalType) *planv1.Type {
	child := func(name string, t mapping.LogicalType) *planv1.Field {
		defer mapping.DestroyLogicalType(&t)
		return &planv1.Field{Name: name, Type: shapeOf(t)}
	}
	switch mapping.GetTypeId(lt) {
	case mapping.TypeStruct:
		t := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT}
		for i := range mapping.StructTypeChildCount(lt) {
			t.Fields = append(t.Fields, child(mapping.StructTypeChildName(lt, i), mapping.StructTypeChildType(lt, i)))
		}
		return t
	case mapping.TypeList:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{child("element", mapping.ListTypeChildType(lt))}}
	case mapping.TypeArray:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{child("element", mapping.ArrayTypeChildType(lt))}}
	case mapping.TypeMap:
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{
			child("key", mapping.MapTypeKeyType(lt)), child("value", mapping.MapTypeValueType(lt)),
		}}
	default:
		t, _ := duckdb.TypeOf(lt)
		return t
	}
}
