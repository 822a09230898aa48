package log

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// checkpointRows is how many actions make a row group: what is held in columns at a time.
const checkpointRows = 32768

var (
	textType    = arrow.BinaryTypes.String
	numberType  = arrow.PrimitiveTypes.Int64
	integerType = arrow.PrimitiveTypes.Int32
	boolType    = arrow.FixedWidthTypes.Boolean
	textsType   = arrow.MapOf(textType, textType)
	listType    = arrow.ListOf(textType)
	vectorType  = structOf("storageType", textType, "pathOrInlineDv", textType, "offset", integerType, "sizeInBytes", integerType, "cardinality", numberType,
		"maxRowIndex", numberType)
)

// structOf takes names and types in turn. Every field may be null, as the protocol has it.
func structOf(pairs ...any) *arrow.StructType {
	fields := make([]arrow.Field, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, arrow.Field{Name: pairs[i].(string), Type: pairs[i+1].(arrow.DataType), Nullable: true})
	}
	return arrow.StructOf(fields...)
}

// checkpointColumns are the columns of a checkpoint by the settings of its table ("Checkpoint Schema").
type checkpointColumns struct {
	schema     *arrow.Schema
	statsText  bool
	partitions *structColumns // nil: not written
	statistics *structColumns // nil: not written
}

func columnsOf(s *Snapshot) (*checkpointColumns, error) {
	c := &checkpointColumns{statsText: true}
	if v, set := s.Metadata.Configuration["delta.checkpoint.writeStatsAsJson"]; set {
		c.statsText = isTrue(v)
	}
	add := []any{
		"path", textType, "partitionValues", textsType, "size", numberType, "modificationTime", numberType, "dataChange", boolType, "tags", textsType,
		"deletionVector", vectorType, "baseRowId", numberType, "defaultRowCommitVersion", numberType, "clusteringProvider", textType,
	}
	if c.statsText {
		add = append(add, "stats", textType)
	}
	if isTrue(s.Metadata.Configuration["delta.checkpoint.writeStatsAsStruct"]) {
		var err error
		if c.partitions, c.statistics, err = parsedColumns(s.Metadata); err != nil {
			return nil, err
		}
	}
	if c.partitions != nil {
		add = append(add, "partitionValues_parsed", c.partitions.kind)
	}
	if c.statistics != nil {
		add = append(add, "stats_parsed", c.statistics.kind)
	}
	columns := structOf(
		"txn", structOf("appId", textType, "version", numberType, "lastUpdated", numberType),
		"add", structOf(add...),
		"remove", structOf("path", textType, "deletionTimestamp", numberType, "dataChange", boolType, "extendedFileMetadata", boolType, "partitionValues", textsType,
			"size", numberType, "deletionVector", vectorType, "baseRowId", numberType, "defaultRowCommitVersion", numberType),
		"metaData", structOf("id", textType, "name", textType, "description", textType, "format", structOf("provider", textType, "options", textsType),
			"schemaString", textType, "partitionColumns", listType, "configuration", textsType, "createdTime", numberType),
		"protocol", structOf("minReaderVersion", integerType, "minWriterVersion", integerType, "readerFeatures", listType, "writerFeatures", listType),
		"domainMetadata", structOf("domain", textType, "configuration", textType, "removed", boolType),
	)
	c.schema = arrow.NewSchema(columns.Fields(), nil)
	return c, nil
}

// writeParquet writes actions as a checkpoint.
func writeParquet(w io.Writer, s *Snapshot, actions []Action) (err error) {
	columns, err := columnsOf(s)
	if err != nil {
		return err
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy), parquet.WithVersion(parquet.V1_0), parquet.WithStats(true))
	out, err := pqarrow.NewFileWriter(columns.schema, struct{ io.Writer }{w}, props, pqarrow.NewArrowWriterProperties())
	if err != nil {
		return err
	}
	for rows := range slices.Chunk(actions, checkpointRows) {
		record, err := columns.record(rows)
		if err != nil {
			return err
		}
		err = out.Write(record)
		record.Release()
		if err != nil {
			return err
		}
	}
	return out.Close()
}

func (c *checkpointColumns) record(actions []Action) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, c.schema)
	defer b.Release()
	writers := make([]*rowWriter, len(b.Fields()))
	for i := range writers {
		writers[i] = &rowWriter{b: b.Field(i).(*array.StructBuilder)}
	}
	for i := range actions {
		a := &actions[i]
		for column, w := range writers {
			name := c.schema.Field(column).Name
			if !c.action(w, name, a) {
				w.b.AppendNull() // and not a struct of nulls, which readers would take for an action
			}
			if w.err != nil {
				return nil, fmt.Errorf("%s: %w", name, w.err)
			}
		}
	}
	return b.NewRecordBatch(), nil
}

// action writes an action into the column of its kind; false: it is of another one.
func (c *checkpointColumns) action(w *rowWriter, name string, a *Action) bool {
	switch {
	case name == "txn" && a.Txn != nil:
		w.row().text(a.Txn.AppID).number(&a.Txn.Version).number(a.Txn.LastUpdated)
	case name == "domainMetadata" && a.DomainMetadata != nil:
		d := a.DomainMetadata
		w.row().text(d.Domain).text(d.Configuration).boolean(&d.Removed)
	case name == "protocol" && a.Protocol != nil:
		p := a.Protocol
		w.row().integer(int32(p.MinReaderVersion)).integer(int32(p.MinWriterVersion)).list(p.ReaderFeatures).list(p.WriterFeatures)
	case name == "metaData" && a.Metadata != nil:
		m := a.Metadata
		columns := m.PartitionColumns
		if columns == nil {
			columns = []string{}
		}
		w.row().text(m.ID).optional(m.Name).optional(m.Description).inner(func(w *rowWriter) { w.text(m.Format.Provider).texts(pointers(m.Format.Options), true) }).
			text(m.SchemaString).list(columns).texts(pointers(m.Configuration), true).number(m.CreatedTime)
	case name == "remove" && a.Remove != nil:
		m := a.Remove
		extended := m.ExtendedFileMetadata != nil && *m.ExtendedFileMetadata
		w.row().text(rawPath(m.Path, m.RawPath)).number(m.DeletionTimestamp).boolean(new(bool)).boolean(m.ExtendedFileMetadata).texts(m.PartitionValues, extended).
			number(m.Size).vector(m.DeletionVector).number(m.BaseRowID).number(m.DefaultRowCommitVersion)
	case name == "add" && a.Add != nil:
		f := a.Add
		w.row().text(rawPath(f.Path, f.RawPath)).texts(f.PartitionValues, true).number(&f.Size).number(&f.ModificationTime).boolean(new(bool)).texts(f.Tags, false).
			vector(f.DeletionVector).number(f.BaseRowID).number(f.DefaultRowCommitVersion).optional(f.ClusteringProvider)
		if c.statsText {
			w.optional(f.Stats)
		}
		if c.partitions != nil {
			w.partitions(c.partitions, f)
		}
		if c.statistics != nil {
			w.statistics(c.statistics, f)
		}
	default:
		return false
	}
	return true
}

func pointers(m map[string]string) map[string]*string {
	out := make(map[string]*string, len(m))
	for k, v := range m {
		out[k] = &v
	}
	return out
}

// rowWriter appends to the fields of a struct one after the other. The first error stays.
type rowWriter struct {
	b    *array.StructBuilder
	next int
	err  error
}

func (w *rowWriter) row() *rowWriter {
	w.b.Append(true)
	w.next = 0
	return w
}

func (w *rowWriter) field() array.Builder {
	w.next++
	return w.b.FieldBuilder(w.next - 1)
}

func (w *rowWriter) text(s string) *rowWriter {
	w.field().(*array.StringBuilder).Append(s)
	return w
}

func (w *rowWriter) optional(s *string) *rowWriter {
	if s == nil {
		w.field().AppendNull()
		return w
	}
	return w.text(*s)
}

func (w *rowWriter) number(n *int64) *rowWriter {
	if b := w.field().(*array.Int64Builder); n != nil {
		b.Append(*n)
	} else {
		b.AppendNull()
	}
	return w
}

func (w *rowWriter) integer(n int32) *rowWriter {
	w.field().(*array.Int32Builder).Append(n)
	return w
}

func (w *rowWriter) boolean(v *bool) *rowWriter {
	if b := w.field().(*array.BooleanBuilder); v != nil {
		b.Append(*v)
	} else {
		b.AppendNull()
	}
	return w
}

func (w *rowWriter) list(v []string) *rowWriter {
	b := w.field().(*array.ListBuilder)
	if v == nil {
		b.AppendNull()
		return w
	}
	b.Append(true)
	for _, s := range v {
		b.ValueBuilder().(*array.StringBuilder).Append(s)
	}
	return w
}

// texts writes a map in the order of its names. None is null unless always.
func (w *rowWriter) texts(m map[string]*string, always bool) *rowWriter {
	b := w.field().(*array.MapBuilder)
	if m == nil && !always {
		b.AppendNull()
		return w
	}
	b.Append(true)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		b.KeyBuilder().(*array.StringBuilder).Append(name)
		if v := m[name]; v != nil {
			b.ItemBuilder().(*array.StringBuilder).Append(*v)
		} else {
			b.ItemBuilder().AppendNull()
		}
	}
	return w
}

func (w *rowWriter) inner(write func(*rowWriter)) *rowWriter {
	in := &rowWriter{b: w.field().(*array.StructBuilder)}
	write(in.row())
	return w
}

func (w *rowWriter) vector(d *DeletionVector) *rowWriter {
	if d == nil {
		w.field().AppendNull()
		return w
	}
	return w.inner(func(in *rowWriter) {
		in.text(d.StorageType).text(d.PathOrInlineDv)
		if b := in.field().(*array.Int32Builder); d.Offset != nil {
			b.Append(*d.Offset)
		} else {
			b.AppendNull()
		}
		in.integer(d.SizeInBytes).number(&d.Cardinality).number(d.MaxRowIndex)
	})
}
