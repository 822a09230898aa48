package write

import (
	"context"
	"fmt"
	"strconv"

	driver "github.com/duckdb/duckdb-go/v2"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
)

// colStats is what DuckDB returns about one leaf of one file. Absent numbers are -1.
type colStats struct {
	size, values, nulls int64
	min, max            *string
	hasNaN              *bool
	nans                int64 // counted afterwards

	// spliced: the file's rows were copied, and what is known of them comes from the footers of their files. There are no texts of bounds then.
	spliced   bool
	bounded   bool // all values are between low and high; there may be none
	low, high *planv1.Bound
}

// written is one file in scratch.
type written struct {
	path      string
	rows      int64
	size      int64
	stats     map[string]*colStats // by leaf.key
	partition []*planv1.Value
	offsets   []int64
	stored    *splice.Made // by the store, when it is placed; path is a sketch of it then, if there is a file at all
}

// runCopy executes a COPY with RETURN_STATS, routed by keys, and answers the files that have rows.
func runCopy(ctx context.Context, inst *duckdb.Instance, query string, keys []key) ([]*written, error) {
	rows, err := inst.Conn().QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var files []*written
	for rows.Next() {
		var name string
		var count, size, footer int64
		var stats, values any
		if err := rows.Scan(&name, &count, &size, &footer, &stats, &values); err != nil {
			return nil, fmt.Errorf("read the statistics of a COPY: %w", err)
		}
		if count == 0 { // rolled output may end with one
			continue
		}
		f := &written{path: name, rows: count, size: size, stats: readStats(stats)}
		if f.partition, err = readKeys(keys, values); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, f)
	}
	return files, rows.Err()
}

func readStats(v any) map[string]*colStats {
	out := map[string]*colStats{}
	for name, value := range entries(v) {
		s := &colStats{size: -1, values: -1, nulls: -1, nans: -1}
		for k, text := range entries(value) {
			t, ok := text.(string)
			if !ok {
				continue
			}
			switch k {
			case "column_size_bytes":
				s.size = number(t)
			case "num_values":
				s.values = number(t)
			case "null_count":
				s.nulls = number(t)
			case "min":
				s.min = &t
			case "max":
				s.max = &t
			case "has_nan":
				b, err := strconv.ParseBool(t)
				if err == nil {
					s.hasNaN = &b
				}
			}
		}
		out[name] = s
	}
	return out
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// entries walks one of DuckDB's maps, whose keys are strings.
func entries(v any) map[string]any {
	var m driver.OrderedMap
	switch t := v.(type) {
	case driver.OrderedMap:
		m = t
	case *driver.OrderedMap:
		m = *t
	default:
		return nil
	}
	out := make(map[string]any, m.Len())
	values := m.Values()
	for n, k := range m.Keys() {
		if name, ok := k.(string); ok {
			out[name] = values[n]
		}
	}
	return out
}

// readKeys is the partition of a file, one value per field of the spec.
func readKeys(keys []key, v any) ([]*planv1.Value, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values := entries(v)
	out := make([]*planv1.Value, len(keys))
	for n, k := range keys {
		out[n] = &planv1.Value{}
		if k.Void {
			continue
		}
		value, ok := values[k.alias]
		if !ok {
			return nil, fmt.Errorf("DuckDB returned no value of partition field %q", k.name)
		}
		text, ok := value.(string)
		if !ok {
			continue // NULL
		}
		parsed, err := k.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("partition field %q: %w", k.name, err)
		}
		out[n] = parsed
	}
	return out, nil
}
