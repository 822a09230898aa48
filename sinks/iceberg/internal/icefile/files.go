package icefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/internal/avro"
)

// ReadFiles decodes what scans need of an Iceberg manifest: Detail and, if they are asked for, Metrics.
func ReadFiles(raw []byte, metrics bool, visit func(*Entry) error) error {
	f, err := avro.Open(raw)
	if err != nil {
		return err
	}
	f.Schema.Keep(nil, []int{0, 1, 2, 3}, "status", "snapshot_id", "data_file", "sequence_number")
	ids := []int{134, 100, 101, 102, 103, 104, 131, 132, 135, 142, 143, 144, 145}
	names := []string{
		"content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "key_metadata", "split_offsets", "equality_ids", "first_row_id",
		"referenced_data_file", "content_offset", "content_size_in_bytes",
	}
	if metrics {
		ids = append(ids, 108, 109, 110, 125, 128, 137)
		names = append(names, "column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds", "nan_value_counts")
	}
	f.Schema.Keep([]int{2}, ids, names...)
	return f.Records(func(r *avro.Record) error {
		e, err := readEntry(r)
		if err != nil {
			return err
		}
		e.record = r
		return visit(e)
	})
}

// PartitionKey is the same text for entries of one spec exactly if their partition values are equal.
func (e *Entry) PartitionKey() string {
	var parts []string
	if e.partition != nil {
		e.partition.Each(func(id int, v any) {
			parts = append(parts, fmt.Sprintf("%08d:%T:%q", id, v, fmt.Sprint(v)))
		})
	}
	slices.Sort(parts)
	return strings.Join(parts, ";")
}
