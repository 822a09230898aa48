package iceberg

import (
	"encoding/binary"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/filter"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// entryFile shows an entry to filters. What cannot be decoded is not known.
type entryFile struct{ *icemanifest.Entry }

var _ filter.File = entryFile{}

// Rows implements filter.File.
func (e entryFile) Rows() int64 { return e.Records }

// Partition implements filter.File.
func (e entryFile) Partition(id int32, t *planv1.Type) (*planv1.Value, bool) {
	has := false
	if r := e.Entry.Partition; r != nil {
		r.Each(func(i int, _ any) { has = has || i == int(id) })
	}
	v, err := icefile.PartitionValue(e.Entry.Partition, id, t)
	return v, has && err == nil
}

// Metrics implements filter.File.
func (e entryFile) Metrics(id int32, t *planv1.Type) *planv1.ColumnMetrics {
	out := &planv1.ColumnMetrics{FieldId: id}
	for _, m := range []struct {
		id   int
		name string
		to   **int64
	}{{109, "value_counts", &out.ValueCount}, {110, "null_value_counts", &out.NullCount}, {137, "nan_value_counts", &out.NanCount}} {
		if b, ok := e.Mapped(m.id, m.name, id, false); ok {
			if n, size := binary.Varint(b); size > 0 {
				*m.to = &n
			}
		}
	}
	for _, m := range []struct {
		id   int
		name string
		to   **planv1.Bound
	}{{125, "lower_bounds", &out.Lower}, {128, "upper_bounds", &out.Upper}} {
		if b, ok := e.Mapped(m.id, m.name, id, true); ok {
			if v, ok := value.Parse(t, b); ok {
				*m.to = &planv1.Bound{Value: v}
			}
		}
	}
	return out
}

// partitionOnly is an entry whose bounds say nothing about the table's columns.
type partitionOnly struct{ entryFile }

// Metrics implements filter.File.
func (partitionOnly) Metrics(int32, *planv1.Type) *planv1.ColumnMetrics { return nil }
