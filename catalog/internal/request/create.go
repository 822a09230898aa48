package request

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog"
)

// NewMetadata is the metadata of an empty table. What makes no sense is ErrPermanent.
func NewMetadata(spec catalog.CreateSpec, location string) (table.Metadata, error) {
	schema := &iceberg.Schema{}
	if err := json.Unmarshal(spec.Schema, schema); err != nil {
		return nil, fmt.Errorf("schema: %w: %w", catalog.ErrPermanent, err)
	}
	partition := iceberg.UnpartitionedSpec
	if len(spec.PartitionSpec) > 0 {
		partition = &iceberg.PartitionSpec{}
		if err := json.Unmarshal(spec.PartitionSpec, partition); err != nil {
			return nil, fmt.Errorf("partition spec: %w: %w", catalog.ErrPermanent, err)
		}
	}
	order := table.UnsortedSortOrder
	if len(spec.SortOrder) > 0 {
		if err := json.Unmarshal(spec.SortOrder, &order); err != nil {
			return nil, fmt.Errorf("sort order: %w: %w", catalog.ErrPermanent, err)
		}
	}
	props := iceberg.Properties(maps.Clone(spec.Properties))
	meta, err := table.NewMetadata(schema, partition, order, location, props)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	return meta, nil
}
