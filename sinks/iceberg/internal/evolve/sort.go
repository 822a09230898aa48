package evolve

import (
	"encoding/json"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// SortOrder is one sort order. Order 0 is unsorted.
type SortOrder struct {
	ID     int32       `json:"order-id"`
	Fields []SortField `json:"fields"`
}

// SortField is one field of a sort order.
type SortField struct {
	Transform string  `json:"transform"`
	SourceID  int32   `json:"source-id"`
	SourceIDs []int32 `json:"source-ids,omitempty"`
	Direction string  `json:"direction"`
	NullOrder string  `json:"null-order"`
}

func sameSort(a, b []SortField) bool {
	return slices.EqualFunc(a, b, func(x, y SortField) bool {
		return x.Transform == y.Transform && x.SourceID == y.SourceID && x.Direction == y.Direction && x.NullOrder == y.NullOrder && slices.Equal(x.SourceIDs, y.SourceIDs)
	})
}

func (e *editor) setSort(s *sinkv1.SetSort) error {
	if e.orderSet {
		return fmt.Errorf("the sort order is set twice")
	}
	e.orderSet, e.order = true, nil
	for _, c := range s.GetSort() {
		t := meta.Transform{Kind: c.GetTransform(), Param: c.GetParam()}
		if t.Kind == planv1.TransformKind_TRANSFORM_KIND_UNSPECIFIED {
			t.Kind = planv1.TransformKind_TRANSFORM_KIND_IDENTITY
		}
		src, err := e.source(c.GetColumn(), t, "sort order")
		if err != nil {
			return err
		}
		f := SortField{Transform: t.String(), SourceID: src.ID, Direction: "asc", NullOrder: "nulls-last"}
		if c.GetDescending() {
			f.Direction = "desc"
		}
		if c.GetNullsFirst() {
			f.NullOrder = "nulls-first"
		}
		e.order = append(e.order, f)
	}
	return nil
}

// checkOrder refuses a sort order that the changed schema leaves without its column.
func (e *editor) checkOrder(fields []SortField) error {
	for _, f := range fields {
		if was := e.table.schema().byID(f.SourceID); e.schema.byID(f.SourceID) == nil && was != nil {
			return fmt.Errorf("the table's sort order uses column %s; change it first, with WRITE UNORDERED or WRITE ORDERED BY", was.path)
		}
	}
	return nil
}

func (o *SortOrder) document() (json.RawMessage, error) {
	c := *o
	if c.Fields == nil {
		c.Fields = []SortField{}
	}
	return json.Marshal(&c)
}
