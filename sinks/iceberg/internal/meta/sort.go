package meta

import (
	"encoding/json"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// SortOrder is one sort order of a table. Order 0 is unsorted.
type SortOrder struct {
	ID     int32
	Fields []*planv1.SortField
	JSON   json.RawMessage // the whole document
	texts  []string        // transforms as the table writes them
}

type jsonSortField struct {
	Transform string  `json:"transform"`
	SourceID  int32   `json:"source-id"`
	SourceIDs []int32 `json:"source-ids,omitempty"`
	Direction string  `json:"direction"`
	NullOrder string  `json:"null-order"`
}

type jsonSortOrder struct {
	ID     int32           `json:"order-id"`
	Fields []jsonSortField `json:"fields"`
}

func parseSortOrder(raw json.RawMessage) (*SortOrder, error) {
	var j jsonSortOrder
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, fmt.Errorf("sort order: %w", err)
	}
	o := &SortOrder{ID: j.ID, JSON: raw}
	for _, f := range j.Fields {
		t := ParseTransform(f.Transform)
		if f.SourceID == 0 && len(f.SourceIDs) == 1 {
			f.SourceID = f.SourceIDs[0]
		}
		o.Fields = append(o.Fields, &planv1.SortField{
			SourceId: f.SourceID, Transform: t.Kind, Param: t.Param,
			Descending: f.Direction == "desc", NullsFirst: f.NullOrder == "nulls-first",
		})
		o.texts = append(o.texts, f.Transform)
	}
	return o, nil
}

// Check says why rows of this schema cannot be sorted by the order, if they cannot.
func (o *SortOrder) Check(schema *Schema) error {
	for i, f := range o.Fields {
		node := schema.Node(f.GetSourceId())
		if node == nil {
			return fmt.Errorf("its column with field id %d is not in the schema", f.GetSourceId())
		}
		if f.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_UNSPECIFIED {
			return fmt.Errorf("transform %q is %w", o.texts[i], ErrUnsupported)
		}
		if _, err := (Transform{f.GetTransform(), f.GetParam()}).Result(node.Field.GetType()); err != nil {
			return fmt.Errorf("column %s: %w", node.Path, err)
		}
	}
	return nil
}

// SortClause asks for one field of a new table's sort order.
type SortClause struct {
	Clause
	Descending bool
	NullsFirst bool
}

// NewSortOrder makes the sort order of a new table: id 1, or 0 without clauses.
func NewSortOrder(schema *Schema, clauses []SortClause) (*SortOrder, error) {
	o := &SortOrder{}
	wire := jsonSortOrder{Fields: []jsonSortField{}}
	for _, c := range clauses {
		node, err := source(schema, c.Column, "sort")
		if err != nil {
			return nil, err
		}
		if _, err := c.Transform.Result(node.Field.GetType()); err != nil {
			return nil, fmt.Errorf("sort by column %s: %w", c.Column, err)
		}
		o.Fields = append(o.Fields, &planv1.SortField{
			SourceId: node.Field.GetId(), Transform: c.Transform.Kind, Param: c.Transform.Param, Descending: c.Descending, NullsFirst: c.NullsFirst,
		})
		j := jsonSortField{Transform: c.Transform.String(), SourceID: node.Field.GetId(), Direction: "asc", NullOrder: "nulls-last"}
		if c.Descending {
			j.Direction = "desc"
		}
		if c.NullsFirst {
			j.NullOrder = "nulls-first"
		}
		wire.Fields = append(wire.Fields, j)
		o.texts = append(o.texts, j.Transform)
	}
	if len(o.Fields) > 0 {
		o.ID = 1
	}
	wire.ID = o.ID
	text, err := json.Marshal(wire)
	o.JSON = text
	return o, err
}
