package glue

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"

	"github.com/signet-io/signet/catalog/internal/pointer"
)

// What all engines write into a table of Glue.
const (
	paramType     = "table_type"
	paramLocation = "metadata_location"
	paramPrevious = "previous_metadata_location"
	icebergType   = "ICEBERG"
	externalTable = "EXTERNAL_TABLE"

	columnID       = "iceberg.field.id"
	columnOptional = "iceberg.field.optional"
	columnCurrent  = "iceberg.field.current"
)

// Characters that Glue takes.
const (
	maxDescription = 2048
	maxComment     = 255
)

func isIceberg(t *types.Table) bool { return strings.EqualFold(t.Parameters[paramType], icebergType) }

// locations are the places of a table's files, as Glue knows them.
func locations(t *types.Table) []string {
	var out []string
	if t.StorageDescriptor != nil && aws.ToString(t.StorageDescriptor.Location) != "" {
		out = append(out, strings.TrimRight(*t.StorageDescriptor.Location, "/"))
	}
	file := t.Parameters[paramLocation]
	if i := strings.LastIndex(file, "/metadata/"); i > 0 {
		out = append(out, file[:i])
	}
	return out
}

// made is a new table of Glue.
func made(name string, next pointer.Next) *types.TableInput {
	return filled(&types.TableInput{Name: aws.String(name), StorageDescriptor: &types.StorageDescriptor{}}, next, "")
}

// changed is a table as it is in Glue, but for what is of Iceberg.
func changed(was *types.Table, next pointer.Next) *types.TableInput {
	in := &types.TableInput{
		Name: was.Name, Description: was.Description, LastAccessTime: was.LastAccessTime, LastAnalyzedTime: was.LastAnalyzedTime, Owner: was.Owner,
		Parameters: was.Parameters, PartitionKeys: was.PartitionKeys, Retention: was.Retention, TargetTable: was.TargetTable,
		ViewExpandedText: was.ViewExpandedText, ViewOriginalText: was.ViewOriginalText, StorageDescriptor: &types.StorageDescriptor{},
	}
	if was.StorageDescriptor != nil {
		*in.StorageDescriptor = *was.StorageDescriptor
	}
	return filled(in, next, was.Parameters[paramLocation])
}

func filled(in *types.TableInput, next pointer.Next, previous string) *types.TableInput {
	in.TableType = aws.String(externalTable)
	in.Parameters = maps.Clone(in.Parameters)
	if in.Parameters == nil {
		in.Parameters = map[string]string{}
	}
	in.Parameters[paramType], in.Parameters[paramLocation] = icebergType, next.Location
	if previous != "" {
		in.Parameters[paramPrevious] = previous
	}
	if comment, ok := next.Metadata.Properties()["comment"]; ok {
		in.Description = aws.String(line(comment, maxDescription))
	}
	in.StorageDescriptor.Location = aws.String(next.Metadata.Location())
	in.StorageDescriptor.Columns = columns(next.Metadata, in.StorageDescriptor.Columns)
	return in
}

// columns are those of the current schema, and behind them those of earlier ones, as Java's and PyIceberg's catalogs write them. They are for whoever looks at the table in Glue: nobody
// reads the table by them. Comments that somebody wrote in Glue stay.
func columns(meta table.Metadata, was []types.Column) []types.Column {
	comments := map[string]*string{}
	for _, c := range was {
		if id := c.Parameters[columnID]; id != "" && c.Comment != nil {
			comments[id] = c.Comment
		}
	}
	var out []types.Column
	seen := map[string]bool{}
	add := func(s *iceberg.Schema, current bool) {
		for _, f := range s.Fields() {
			if seen[f.Name] {
				continue
			}
			seen[f.Name] = true
			id := strconv.Itoa(f.ID)
			c := types.Column{Name: aws.String(f.Name), Type: aws.String(hiveType(f.Type)), Comment: comments[id], Parameters: map[string]string{
				columnID: id, columnOptional: strconv.FormatBool(!f.Required), columnCurrent: strconv.FormatBool(current),
			}}
			if f.Doc != "" {
				c.Comment = aws.String(line(f.Doc, maxComment))
			}
			out = append(out, c)
		}
	}
	current := meta.CurrentSchema()
	add(current, true)
	for _, s := range meta.Schemas() {
		if s.ID != current.ID {
			add(s, false)
		}
	}
	return out
}

// line is a text as Glue takes it: of one line, and so many characters at most.
func line(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	if r := []rune(text); len(r) > limit {
		text = string(r[:limit])
	}
	return text
}

// hiveType is the nearest of Hive's types, as Java's IcebergToGlueConverter chooses it.
func hiveType(t iceberg.Type) string {
	switch t := t.(type) {
	case iceberg.DecimalType:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision(), t.Scale())
	case iceberg.FixedType:
		return "binary"
	case *iceberg.StructType:
		parts := make([]string, len(t.FieldList))
		for i, f := range t.FieldList {
			parts[i] = f.Name + ":" + hiveType(f.Type)
		}
		return "struct<" + strings.Join(parts, ",") + ">"
	case *iceberg.ListType:
		return "array<" + hiveType(t.Element) + ">"
	case *iceberg.MapType:
		return "map<" + hiveType(t.KeyType) + "," + hiveType(t.ValueType) + ">"
	}
	return cmp.Or(hiveTypes[t.String()], "string")
}

var hiveTypes = map[string]string{
	"boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double", "date": "date", "binary": "binary",
	"timestamp": "timestamp", "timestamptz": "timestamp",
}
