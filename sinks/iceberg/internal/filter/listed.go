package filter

import (
	"encoding/binary"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// Held is a file as a whole Iceberg manifest has it. What cannot be decoded is not known.
func Held(e *icemanifest.Entry) File { return heldFile{e} }

// HeldPartition is a delete file, of which only the partition counts: its bounds say nothing about the table's columns.
func HeldPartition(e *icemanifest.Entry) File { return partitionOnly{heldFile{e}} }

type heldFile struct{ *icemanifest.Entry }

// Rows implements filter.File.
func (e heldFile) Rows() int64 { return e.Records }

// Partition implements filter.File.
func (e heldFile) Partition(id int32, t *planv1.Type) (*planv1.Value, bool) {
	has := false
	if r := e.Entry.Partition; r != nil {
		r.Each(func(i int, _ any) { has = has || i == int(id) })
	}
	v, err := icefile.PartitionValue(e.Entry.Partition, id, t)
	return v, has && err == nil
}

// Metrics implements filter.File.
func (e heldFile) Metrics(id int32, t *planv1.Type) *planv1.ColumnMetrics {
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

type partitionOnly struct{ heldFile }

// Metrics implements filter.File.
func (partitionOnly) Metrics(int32, *planv1.Type) *planv1.ColumnMetrics { return nil }
