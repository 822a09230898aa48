package delta_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
)

func table(fields ...*planv1.Field) *sinkv1.TableDefinition {
	return &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: fields}}
}

func typed(name string, t *planv1.Type) *planv1.Field { return &planv1.Field{Name: name, Type: t} }

// X15: names that Delta refuses are refused all at once, nested ones too, before anything is there.
func TestX15Names(t *testing.T) {
	b := newBench(t)
	d := table(field("a b", planv1.TypeKind_TYPE_KIND_INT32), field("x=y", planv1.TypeKind_TYPE_KIND_INT32), field("p,q", planv1.TypeKind_TYPE_KIND_INT32),
		typed("s", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("n(1)", planv1.TypeKind_TYPE_KIND_INT32)}}))
	_, prepared := b.tryPrepare(&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_CREATE, Definition: d})
	for _, err := range []error{b.tryCreate(d), prepared} {
		require.ErrorIs(t, err, sdk.ErrPermanent)
		for _, name := range []string{"`a b`", "`x=y`", "`p,q`", "s.`n(1)`", "give the column another name"} {
			require.ErrorContains(t, err, name)
		}
	}
	require.Empty(t, b.host.Objects())
}

func TestCreateTable_Refuses(t *testing.T) {
	id := field("id", planv1.TypeKind_TYPE_KIND_INT64)
	partitioned := func(d *sinkv1.TableDefinition, clauses ...*sinkv1.PartitionClause) *sinkv1.TableDefinition {
		d.Partition = clauses
		return d
	}
	set := func(key, value string) *sinkv1.TableDefinition {
		d := definition(false)
		d.Properties = map[string]string{key: value}
		return d
	}
	for says, d := range map[string]*sinkv1.TableDefinition{
		"column u: Delta has no type for UUIDs; cast it to VARCHAR":                table(id, field("u", planv1.TypeKind_TYPE_KIND_UUID), field("n", planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS)),
		"column n: Delta's timestamps have microseconds":                           table(id, field("u", planv1.TypeKind_TYPE_KIND_UUID), field("n", planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS)),
		"column l.element: Delta has no type for times":                            table(id, typed("l", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{field("element", planv1.TypeKind_TYPE_KIND_TIME_MICROS)}})),
		"column d: decimal(39,0)":                                                  table(id, typed("d", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 39})),
		"column f: Delta has no type for bytes of a fixed length":                  table(id, typed("f", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: 3})),
		"differ in case only":                                                      table(id, field("ID", planv1.TypeKind_TYPE_KIND_INT64)),
		"a table needs a column":                                                   table(),
		"a default needs the table feature allowColumnDefaults":                    table(&planv1.Field{Name: "id", Type: id.GetType(), WriteDefault: integer(1)}),
		"no such column":                                                           partitioned(definition(false), &sinkv1.PartitionClause{Column: "q", Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}),
		"PARTITIONED BY bucket(id): Delta partitions by columns alone":             partitioned(definition(false), &sinkv1.PartitionClause{Column: "id", Transform: planv1.TransformKind_TRANSFORM_KIND_BUCKET, Param: 4}),
		"data files need one that is not":                                          partitioned(table(id), &sinkv1.PartitionClause{Column: "id", Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}),
		"Delta tables have no sort order":                                          {Schema: definition(false).GetSchema(), Sort: []*sinkv1.SortClause{{Column: "id"}}},
		"location file:///elsewhere: the catalog has the table at":                 {Schema: definition(false).GetSchema(), Location: "file:///elsewhere"},
		"property delta.checkpointInterval=0: want a whole number of at least 1":   set("delta.checkpointInterval", "0"),
		"property delta.nonsense=1: it is none of the properties of Delta":         set("delta.nonsense", "1"),
		"property delta.columnMapping.mode=name":                                   set("delta.columnMapping.mode", "name"),
		"property delta.deletedFileRetentionDuration=interval 1 month":             set("delta.deletedFileRetentionDuration", "interval 1 month"),
		"property delta.targetFileSize=big: want a size such as 128mb":             set("delta.targetFileSize", "big"),
		"property delta.isolationLevel=WriteSerializable: want Serializable":       set("delta.isolationLevel", "WriteSerializable"),
		"property signet.landed.x=1: names that begin with signet. are reserved":   set("signet.landed.x", "1"),
		"property delta.constraints.c=id > 1: CHECK constraints are not supported": set("delta.constraints.c", "id > 1"),
		"property delta.appendOnly=yes: want true or false":                        set("delta.appendOnly", "yes"),
		"feature is not known":                                                     set("delta.feature.rowTracking", "supported"),
	} {
		b := newBench(t)
		err := b.tryCreate(d)
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, sdk.ErrPermanent)
		require.Empty(t, b.host.Objects())
	}
}

func TestCreateTable_Protocol(t *testing.T) {
	protocol := func(d *sinkv1.TableDefinition) log.Protocol {
		b := newBench(t)
		b.create(d)
		for _, a := range b.actions(0) {
			if a.Protocol != nil {
				return *a.Protocol
			}
		}
		t.Fatal("no protocol")
		return log.Protocol{}
	}
	require.Equal(t, log.Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, protocol(definition(true)))
	p := protocol(table(&planv1.Field{Name: "id", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, Required: true}, field("at", planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS)))
	require.Equal(t, 3, p.MinReaderVersion)
	require.Equal(t, []string{"timestampNtz"}, p.ReaderFeatures)
	require.Subset(t, p.WriterFeatures, []string{"invariants", "timestampNtz"})
	d := definition(false)
	d.Properties = map[string]string{"delta.enableInCommitTimestamps": "true"}
	require.Contains(t, protocol(d).WriterFeatures, "inCommitTimestamp")
}

func TestPrepareWrite(t *testing.T) {
	b := newBench(t)
	d := definition(true)
	d.Schema.Fields = append(d.Schema.Fields, typed("s", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("f", planv1.TypeKind_TYPE_KIND_FLOAT64)}}),
		typed("l", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{field("element", planv1.TypeKind_TYPE_KIND_STRING)}}), field("b", planv1.TypeKind_TYPE_KIND_BINARY))
	d.Properties = map[string]string{"delta.parquet.compression.codec": "SNAPPY", "delta.targetFileSize": "64mb"}
	b.create(d)
	spec := b.prepare(appending())
	require.Equal(t, location, spec.GetDataLocation())
	require.Equal(t, "0", spec.GetBaseVersion())
	require.EqualValues(t, 2, spec.GetPartition()[0].GetSourceId())
	f := spec.GetFiles()
	require.True(t, f.GetNoFieldIds() && f.GetOmitPartitionColumns() && f.GetFourDigitYears() && !f.GetAnyCodec())
	require.Equal(t, "snappy", f.GetCodec())
	require.EqualValues(t, 64<<20, f.GetTargetFileSizeBytes())
	kinds := map[int32]planv1.MetricsKind{}
	for id, m := range f.GetMetrics() {
		kinds[id] = m.GetKind()
	}
	require.Equal(t, map[int32]planv1.MetricsKind{1: planv1.MetricsKind_METRICS_KIND_FULL, 4: planv1.MetricsKind_METRICS_KIND_FULL, 7: planv1.MetricsKind_METRICS_KIND_COUNTS}, kinds)
	for says, req := range map[string]*sinkv1.PrepareWriteRequest{
		"no branches":                {Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, Branch: "b"},
		"staged":                     {Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, WapId: "w"},
		"write mode WRITE_MODE_PICK": {Mode: sinkv1.WriteMode_WRITE_MODE_PICK},
		"without a scope":            {Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE},
	} {
		_, err := b.tryPrepare(req)
		require.ErrorContains(t, err, says)
	}
}

// C28, C29: what has changed between planning and commit is seen: an optional column is no harm, what would make rows wrong is refused.
func TestC28SchemaChangesMeanwhile(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	spec := b.prepare(appending())
	one, two := b.unit(spec, []*planv1.DataFile{file("one", 0)}), b.unit(spec, []*planv1.DataFile{file("two", 0)})
	b.alter(&sinkv1.Change{Kind: &sinkv1.Change_AddColumn{AddColumn: &sinkv1.AddColumn{Field: field("c", planv1.TypeKind_TYPE_KIND_DATE), First: true}}})
	b.land(spec, one)
	now := b.actions(1)
	var m log.Metadata
	for _, a := range now {
		if a.Metadata != nil {
			m = *a.Metadata
		}
	}
	m.SchemaString = strings.Replace(m.SchemaString, `"long"`, `"integer"`, 1)
	line, err := log.AppendAction(nil, &log.Action{Metadata: &m})
	require.NoError(t, err)
	b.foreign(3, string(line))
	b.refusedCommit(spec, "column id has become integer since files with long were written", two)
	m.SchemaString = strings.Replace(m.SchemaString, `"integer"`, `"long"`, 1)
	m.PartitionColumns = []string{"p"}
	line, err = log.AppendAction(nil, &log.Action{Metadata: &m})
	require.NoError(t, err)
	b.foreign(4, string(line))
	b.refusedCommit(spec, "it is partitioned by", two)
}

// X4: a time that no text of the log can hold is refused with its column.
func TestX4Times(t *testing.T) {
	b := newBench(t)
	d := table(field("id", planv1.TypeKind_TYPE_KIND_INT64), field("at", planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS))
	d.Partition = []*sinkv1.PartitionClause{{Column: "at", Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}
	b.create(d)
	spec := b.prepare(appending())
	_, err := b.tryStage(spec, "j", []*planv1.DataFile{file("a", 0, integer(1<<63-1))})
	require.ErrorContains(t, err, "partition column at")
	b.add(file("b", 0, integer(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro()))) // E5
	add := b.actions(1)[2].Add
	require.Equal(t, "9999-12-31T23:59:59.000000Z", *add.PartitionValues["at"])
}

// What a task reports and the table cannot take is refused, with the file.
func TestStage_Refuses(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	spec := b.prepare(appending())
	outside, vector, bare, wrong := file("a", 0, str("x")), file("a", 0, str("x")), file("a", 0), file("a", 0, integer(1))
	outside.Path = "file:///elsewhere/a"
	vector.Content = planv1.FileContent_FILE_CONTENT_DELETION_VECTOR
	for says, f := range map[string]*planv1.DataFile{
		"does not lie below": outside, "data files only": vector, "0 partition values": bare, "partition column p: value does not fit": wrong,
	} {
		_, err := b.tryStage(spec, "j", []*planv1.DataFile{f})
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, f.GetPath())
	}
	_, err := b.tryStage(spec, "j", nil, &planv1.ReplacedFile{Path: "x"})
	require.ErrorContains(t, err, "the write replaces none")
}
