package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// nullPartition is Hive's name of the partition of NULL.
const nullPartition = "__HIVE_DEFAULT_PARTITION__"

// texts are the types whose values have one text each, as Hive writes them.
var texts = map[planv1.TypeKind]func(*planv1.Value) string{
	planv1.TypeKind_TYPE_KIND_BOOLEAN: func(v *planv1.Value) string { return strconv.FormatBool(v.GetBoolean()) },
	planv1.TypeKind_TYPE_KIND_INT8:    integer, planv1.TypeKind_TYPE_KIND_INT16: integer,
	planv1.TypeKind_TYPE_KIND_INT32: integer, planv1.TypeKind_TYPE_KIND_INT64: integer,
	planv1.TypeKind_TYPE_KIND_STRING: (*planv1.Value).GetString_,
	planv1.TypeKind_TYPE_KIND_DATE: func(v *planv1.Value) string {
		return time.Unix(v.GetInteger()*24*60*60, 0).UTC().Format(time.DateOnly)
	},
}

func integer(v *planv1.Value) string { return strconv.FormatInt(v.GetInteger(), 10) }

// partitionFields takes columns, without transforms, and only those whose values have one text each: a partition is told by its text.
func partitionFields(def *sinkv1.TableDefinition) ([]*planv1.PartitionField, error) {
	var out []*planv1.PartitionField
	for _, p := range def.GetPartition() {
		columns := def.GetSchema().GetFields()
		at := slices.IndexFunc(columns, func(f *planv1.Field) bool { return f.GetName() == p.GetColumn() })
		if at < 0 || p.GetTransform() != planv1.TransformKind_TRANSFORM_KIND_IDENTITY || texts[columns[at].GetType().GetKind()] == nil {
			return nil, sdk.Refuse(sdk.Permanent, "partition %s: Hive's partitions are columns of type BOOLEAN, TINYINT to BIGINT, VARCHAR or DATE, without a transform", p.GetColumn())
		}
		f := columns[at]
		out = append(out, &planv1.PartitionField{
			FieldId: 1000 + int32(len(out)), Name: f.GetName(), SourceId: f.GetId(), Transform: p.GetTransform(), ResultType: f.GetType(), //nolint:gosec // few
		})
	}
	return out, nil
}

// partitionText is a file's partition as Hive names directories: day=2001-01-02/origin=JFK.
func partitionText(fields []*planv1.PartitionField, values []*planv1.Value) (string, error) {
	if len(fields) != len(values) {
		return "", fmt.Errorf("a file has %d partition values, the table %d partition columns", len(values), len(fields))
	}
	var parts []string
	for i, f := range fields {
		text := nullPartition
		if values[i].GetKind() != nil {
			text = url.PathEscape(texts[f.GetResultType().GetKind()](values[i]))
		}
		parts = append(parts, url.PathEscape(f.GetName())+"="+text)
	}
	return strings.Join(parts, "/"), nil
}
