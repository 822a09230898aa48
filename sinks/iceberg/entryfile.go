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
		if b, ok := e.mapped(m.id, m.name, id, false); ok {
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
		if b, ok := e.mapped(m.id, m.name, id, true); ok {
			if v, ok := value.Parse(t, b); ok {
				*m.to = &planv1.Bound{Value: v}
			}
		}
	}
	return out
}

// mapped finds the value of a key in a map that is written as an array of pairs: a number as it is encoded, or the bytes.
func (e entryFile) mapped(id int, name string, key int32, isBytes bool) ([]byte, bool) {
	b, null, err := e.Encoded(id, name)
	if err != nil || null {
		return nil, false
	}
	long := func() (int64, bool) {
		v, n := binary.Varint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	for {
		n, ok := long()
		if !ok || n == 0 {
			return nil, false
		}
		if n < 0 { // the size of the block follows
			n = -n
			if _, ok := long(); !ok {
				return nil, false
			}
		}
		for ; n > 0; n-- {
			k, ok := long()
			if !ok {
				return nil, false
			}
			v := b
			size, ok := long()
			if !ok || isBytes && (size < 0 || size > int64(len(b))) {
				return nil, false
			}
			if isBytes {
				v, b = b[:size], b[size:]
			}
			if k == int64(key) {
				return v, true
			}
		}
	}
}

// partitionOnly is an entry whose bounds say nothing about the table's columns.
type partitionOnly struct{ entryFile }

// Metrics implements filter.File.
func (partitionOnly) Metrics(int32, *planv1.Type) *planv1.ColumnMetrics { return nil }
