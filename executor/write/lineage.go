package write

import planv1 "github.com/signet-io/signet/api/plan/v1"

// Fields of row lineage, which format version 3 of Iceberg reserves.
const (
	rowIDField       = 2147483540
	lastUpdatedField = 2147483539
)

// withLineage adds the last two columns of the query where they are the rows' lineage. It is written with the rows, NULL where the commit is to give it, and
// readers take it for the file's own.
func withLineage(w *planv1.WriteTask, inputs int) []*planv1.OutputColumn {
	if !w.GetRowLineage() {
		return w.GetColumns()
	}
	long := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}
	out := append([]*planv1.OutputColumn{}, w.GetColumns()...)
	return append(out,
		&planv1.OutputColumn{Field: &planv1.Field{Id: rowIDField, Name: "_row_id", Type: long}, Input: int32(inputs) - 2, CastType: "BIGINT"},
		&planv1.OutputColumn{Field: &planv1.Field{Id: lastUpdatedField, Name: "_last_updated_sequence_number", Type: long}, Input: int32(inputs) - 1, CastType: "BIGINT"},
	)
}
