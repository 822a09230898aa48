package icefile

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// partitionField is what the Avro schema needs to know of a field of the spec.
type partitionField struct {
	id   int32
	name string
	typ  *planv1.Type
}

func f(name, typ string, id int) string {
	return fmt.Sprintf(`{"name":%q,"type":%s,"field-id":%d}`, name, typ, id)
}

func opt(name, typ string, id int) string {
	return fmt.Sprintf(`{"name":%q,"type":["null",%s],"default":null,"field-id":%d}`, name, typ, id)
}

func withDefault(name, typ string, id, value int) string {
	return fmt.Sprintf(`{"name":%q,"type":%s,"default":%d,"field-id":%d}`, name, typ, value, id)
}

func optMap(name, valueType string, id, key, value int) string {
	return opt(name, fmt.Sprintf(`{"type":"array","items":{"type":"record","name":"k%d_v%d","fields":[%s,%s]},"logicalType":"map"}`,
		key, value, f("key", `"int"`, key), f("value", valueType, value)), id)
}

func optList(name, elementType string, id, element int) string {
	return opt(name, fmt.Sprintf(`{"type":"array","items":%s,"element-id":%d}`, elementType, element), id)
}

func record(name string, fields ...string) string {
	return fmt.Sprintf(`{"type":"record","name":%q,"fields":[%s]}`, name, strings.Join(fields, ","))
}

// entrySchema is the Avro schema of an Iceberg manifest. The encoder in entry.go follows its order.
func entrySchema(version int, partition []partitionField) (string, error) {
	tuple, err := tupleSchema(partition)
	return entrySchemaOf(version, ContentData, tuple), err
}

// entrySchemaOf is the schema with a given one of the partition record.
func entrySchemaOf(version int, content int32, tuple string) string {
	var file []string
	if version >= 2 {
		file = append(file, withDefault("content", `"int"`, 134, 0))
	}
	file = append(file, f("file_path", `"string"`, 100), f("file_format", `"string"`, 101), f("partition", tuple, 102),
		f("record_count", `"long"`, 103), f("file_size_in_bytes", `"long"`, 104))
	if version == 1 {
		file = append(file, withDefault("block_size_in_bytes", `"long"`, 105, defaultBlockSize))
	}
	file = append(file, optMap("column_sizes", `"long"`, 108, 117, 118), optMap("value_counts", `"long"`, 109, 119, 120),
		optMap("null_value_counts", `"long"`, 110, 121, 122), optMap("nan_value_counts", `"long"`, 137, 138, 139),
		optMap("lower_bounds", `"bytes"`, 125, 126, 127), optMap("upper_bounds", `"bytes"`, 128, 129, 130),
		opt("key_metadata", `"bytes"`, 131), optList("split_offsets", `"long"`, 132, 133))
	if version >= 2 {
		file = append(file, optList("equality_ids", `"int"`, 135, 136))
	}
	file = append(file, opt("sort_order_id", `"int"`, 140))
	if version >= 3 {
		file = append(file, opt("first_row_id", `"long"`, 142))
	}
	if version >= 3 || version == 2 && content == ContentDeletes {
		file = append(file, opt("referenced_data_file", `"string"`, 143))
	}
	if version >= 3 {
		file = append(file, opt("content_offset", `"long"`, 144), opt("content_size_in_bytes", `"long"`, 145))
	}
	entry := []string{f("status", `"int"`, 0)}
	if version == 1 {
		entry = append(entry, f("snapshot_id", `"long"`, 1))
	} else {
		entry = append(entry, opt("snapshot_id", `"long"`, 1), opt("sequence_number", `"long"`, 3), opt("file_sequence_number", `"long"`, 4))
	}
	return record("manifest_entry", append(entry, f("data_file", record("r2", file...), 2))...)
}

func tupleSchema(partition []partitionField) (string, error) {
	fields := make([]string, 0, len(partition))
	names, defined := avroNames(partition), map[string]bool{}
	for i, p := range partition {
		t, err := primitive(p, defined)
		if err != nil {
			return "", err
		}
		fields = append(fields, opt(names[i], t, int(p.id)))
	}
	return record("r102", fields...), nil
}

// primitive is the Avro type of a partition value. Fixed types are named, and a name may be defined once: later ones get the field's id appended
// rather than refer to the first, since not every reader resolves references.
func primitive(p partitionField, defined map[string]bool) (string, error) {
	named := func(name string, size int, rest string) string {
		if defined[name] {
			name = fmt.Sprintf("%s_%d", name, p.id)
		}
		defined[name] = true
		return fmt.Sprintf(`{"type":"fixed","name":%q,"size":%d%s}`, name, size, rest)
	}
	switch t := p.typ; t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		return `"boolean"`, nil
	case planv1.TypeKind_TYPE_KIND_INT32:
		return `"int"`, nil
	case planv1.TypeKind_TYPE_KIND_INT64:
		return `"long"`, nil
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		return `"float"`, nil
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		return `"double"`, nil
	case planv1.TypeKind_TYPE_KIND_STRING:
		return `"string"`, nil
	case planv1.TypeKind_TYPE_KIND_BINARY:
		return `"bytes"`, nil
	case planv1.TypeKind_TYPE_KIND_DATE:
		return `{"type":"int","logicalType":"date"}`, nil
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return `{"type":"long","logicalType":"time-micros"}`, nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:
		return `{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":false}`, nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return `{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true}`, nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return `{"type":"long","logicalType":"timestamp-nanos","adjust-to-utc":false}`, nil
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return `{"type":"long","logicalType":"timestamp-nanos","adjust-to-utc":true}`, nil
	case planv1.TypeKind_TYPE_KIND_UUID:
		return named("uuid_fixed", 16, `,"logicalType":"uuid"`), nil
	case planv1.TypeKind_TYPE_KIND_FIXED:
		return named(fmt.Sprintf("fixed_%d", t.GetLength()), int(t.GetLength()), ""), nil
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return named(fmt.Sprintf("decimal_%d_%d", t.GetPrecision(), t.GetScale()), decimalSize(t.GetPrecision()),
			fmt.Sprintf(`,"logicalType":"decimal","precision":%d,"scale":%d`, t.GetPrecision(), t.GetScale())), nil
	}
	return "", fmt.Errorf("partition field %q: values of type %s cannot be written", p.name, p.typ.GetKind())
}

// decimalSize is the number of bytes that hold every value of the precision.
func decimalSize(precision int32) int {
	// 10^p needs p*log2(10) bits, and one for the sign; 3322/1000 rounds up the right way for 1 to 38.
	return (int(precision)*3322/1000 + 1 + 1 + 7) / 8
}

// listSchema is the Avro schema of a manifest list. The encoder in list.go follows its order.
func listSchema(version int) string {
	summary := record("r508", f("contains_null", `"boolean"`, 509), opt("contains_nan", `"boolean"`, 518),
		opt("lower_bound", `"bytes"`, 510), opt("upper_bound", `"bytes"`, 511))
	fields := []string{f("manifest_path", `"string"`, 500), f("manifest_length", `"long"`, 501), f("partition_spec_id", `"int"`, 502)}
	if version >= 2 {
		fields = append(fields, withDefault("content", `"int"`, 517, 0), withDefault("sequence_number", `"long"`, 515, 0),
			withDefault("min_sequence_number", `"long"`, 516, 0))
	}
	count := f
	if version == 1 {
		count = opt
	}
	fields = append(fields, f("added_snapshot_id", `"long"`, 503),
		count("added_files_count", `"int"`, 504), count("existing_files_count", `"int"`, 505), count("deleted_files_count", `"int"`, 506))
	summaries := optList("partitions", summary, 507, 508)
	rows := []string{count("added_rows_count", `"long"`, 512), count("existing_rows_count", `"long"`, 513), count("deleted_rows_count", `"long"`, 514)}
	if version == 1 { // the order of the reference implementation
		fields = append(append(fields, summaries), rows...)
	} else {
		fields = append(append(fields, rows...), summaries)
	}
	fields = append(fields, opt("key_metadata", `"bytes"`, 519))
	if version >= 3 {
		fields = append(fields, opt("first_row_id", `"long"`, 520))
	}
	return record("manifest_file", fields...)
}
