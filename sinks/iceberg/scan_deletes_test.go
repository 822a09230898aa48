package iceberg

import (
	"bytes"
	"path"
	"strings"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// deleteFile is one delete file in a manifest that iceberg-go writes.
type deleteFile struct {
	name      string
	content   icebergo.ManifestEntryContent
	format    icebergo.FileFormat
	sequence  int64
	partition map[int]any
	ids       []int
	about     string // the only data file
	bounds    [2]string
}

func (d deleteFile) build(t testing.TB, spec icebergo.PartitionSpec) icebergo.DataFile {
	t.Helper()
	b, err := icebergo.NewDataFileBuilder(spec, d.content, d.name, d.format, d.partition, nil, nil, 1, 100)
	require.NoError(t, err)
	if len(d.ids) > 0 {
		b.EqualityFieldIDs(d.ids)
	}
	if d.about != "" {
		b.ReferencedDataFile(d.about)
	}
	if d.format == icebergo.PuffinFile {
		b.ContentOffset(4).ContentSizeInBytes(40)
	}
	if d.bounds[0] != "" {
		b.LowerBoundValues(map[int][]byte{pathField: []byte(d.bounds[0])}).UpperBoundValues(map[int][]byte{pathField: []byte(d.bounds[1])})
	}
	return b.Build()
}

var deleteSchema = icebergo.NewSchema(0, icebergo.NestedField{ID: 1, Name: "id", Type: icebergo.PrimitiveTypes.Int64})

// indexed puts delete files of one spec into an index; spec 0 has no fields, spec 1 is by id.
func indexed(t testing.TB, d *deletes, specID int32, files ...deleteFile) error {
	t.Helper()
	spec := icebergo.NewPartitionSpecID(int(specID))
	if specID == 1 {
		spec = icebergo.NewPartitionSpecID(1, icebergo.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "id", Transform: icebergo.IdentityTransform{}})
	}
	for _, f := range files {
		var raw bytes.Buffer
		snapshot := int64(5)
		w, err := icebergo.NewManifestWriter(3, &raw, spec, deleteSchema, snapshot, icebergo.WithManifestWriterContent(icebergo.ManifestContentDeletes))
		require.NoError(t, err)
		require.NoError(t, w.Existing(icebergo.NewManifestEntry(icebergo.EntryStatusEXISTING, &snapshot, &f.sequence, &f.sequence, f.build(t, spec))))
		require.NoError(t, w.Close())
		m := &icefile.Manifest{SpecID: specID, Content: icefile.ContentDeletes, SequenceNumber: f.sequence}
		if err := icefile.ReadFiles(raw.Bytes(), true, func(e *icefile.Entry) error { return d.add(e, m, &scanSpec{plain: specID == 0}) }); err != nil {
			return err
		}
	}
	return nil
}

const (
	byPosition = icebergo.EntryContentPosDeletes
	byEquality = icebergo.EntryContentEqDeletes
)

// The rules of the specification's "Scan Planning": which deletes apply to a data file, by sequence number, partition and path.
func TestDeletes_ApplyByTheRules(t *testing.T) {
	d := newDeletes()
	require.True(t, d.empty())
	at := func(n int64) map[int]any { return map[int]any{1000: n} }
	require.NoError(t, indexed(t, d, 0,
		deleteFile{name: "global-5", content: byEquality, format: icebergo.ParquetFile, sequence: 5, ids: []int{1}},
		deleteFile{name: "unpartitioned-pos-5", content: byPosition, format: icebergo.ParquetFile, sequence: 5},
	))
	require.NoError(t, indexed(t, d, 1,
		deleteFile{name: "eq-7", content: byEquality, format: icebergo.ParquetFile, sequence: 7, ids: []int{1}, partition: at(1)},
		deleteFile{name: "pos-7", content: byPosition, format: icebergo.ParquetFile, sequence: 7, partition: at(1)},
		deleteFile{name: "pos-of-a-7", content: byPosition, format: icebergo.ParquetFile, sequence: 7, partition: at(1), about: "a"},
		deleteFile{name: "pos-bounded-7", content: byPosition, format: icebergo.ParquetFile, sequence: 7, partition: at(1), bounds: [2]string{"m", "n"}},
		deleteFile{name: "dv-of-v-7", content: byPosition, format: icebergo.PuffinFile, sequence: 7, partition: at(1), about: "v"},
	))
	require.False(t, d.empty())
	key := func(spec, value string) string {
		if value == "" {
			return spec + "/"
		}
		return spec + `/00001000:int64:"` + value + `"`
	}
	for _, c := range []struct {
		name, file string
		sequence   int64
		partition  string
		want       string
	}{
		{"older than all, in the partition", "b", 1, key("1", "1"), "global-5 eq-7 pos-7"},
		{"of the same commit: equality deletes spare it, positions do not", "b", 7, key("1", "1"), "pos-7"},
		{"newer", "b", 8, key("1", "1"), ""},
		{"the commit of the global ones", "b", 5, key("1", "1"), "eq-7 pos-7"},
		{"another partition", "b", 1, key("1", "2"), "global-5"},
		{"another spec with the same tuple", "b", 1, key("2", "1"), "global-5"},
		{"no partition", "b", 1, key("0", ""), "global-5 unpartitioned-pos-5"},
		{"named by a delete file", "a", 1, key("1", "1"), "global-5 eq-7 pos-of-a-7 pos-7"},
		{"inside the bounds", "mm", 1, key("1", "1"), "global-5 eq-7 pos-7 pos-bounded-7"},
		{"a cut upper bound that was not raised", "nn", 1, key("1", "1"), "global-5 eq-7 pos-7 pos-bounded-7"},
		{"outside the bounds", "o", 1, key("1", "1"), "global-5 eq-7 pos-7"},
		{"a vector stands for all positions", "v", 1, key("1", "1"), "global-5 eq-7 dv-of-v-7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := d.of(c.file, c.sequence, c.partition)
			require.NoError(t, err)
			var names []string
			for _, f := range got {
				names = append(names, f.GetPath())
			}
			require.Equal(t, c.want, strings.Join(names, " "))
		})
	}
	got, err := d.of("v", 1, key("1", "1"))
	require.NoError(t, err)
	v := got[len(got)-1]
	require.Equal(t, planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, v.GetContent())
	require.EqualValues(t, 4, v.GetContentOffset())
	require.EqualValues(t, 40, v.GetContentSize())
	require.EqualValues(t, 1, v.GetRecordCount())
	_, err = d.of("v", 9, key("1", "1"))
	require.ErrorContains(t, err, "older than the file")
}

func TestDeletes_RefusedByName(t *testing.T) {
	for want, f := range map[string]deleteFile{
		"position delete file p.orc has format ORC":        {name: "p.orc", content: byPosition, format: icebergo.OrcFile},
		"equality delete file e.avro has format AVRO":      {name: "e.avro", content: byEquality, format: icebergo.AvroFile, ids: []int{1}},
		"equality delete file e names no columns":          {name: "e", content: byEquality, format: icebergo.ParquetFile},
		"deletion vector d: its entry lacks the data file": {name: "d", content: byPosition, format: icebergo.PuffinFile},
	} {
		require.ErrorContains(t, indexed(t, newDeletes(), 0, f), want)
	}
	d := newDeletes()
	v := deleteFile{name: "one", content: byPosition, format: icebergo.PuffinFile, about: "a"}
	require.NoError(t, indexed(t, d, 0, v))
	v.name = "two"
	require.ErrorContains(t, indexed(t, d, 0, v), "data file a has two deletion vectors, in one and in two")
}

// iceberg-go's own deletes, planned: a position delete file beside a file that came later.
func TestPlanScan_AttachesDeletes(t *testing.T) {
	h, c := simpleTable(t, "deletes", New())
	h.setProperties("write.delete.mode", "merge-on-read")
	j := newJob(t, h, c)
	old := j.write(row{vInt(1), vStr("a")}, row{vInt(2), vStr("b")})
	j.land(old)
	tx := h.table().NewTransaction()
	require.NoError(t, tx.Delete(t.Context(), icebergo.EqualTo(icebergo.Reference("id"), int64(1)), nil))
	_, err := tx.Commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1", h.table().CurrentSnapshot().Summary.Properties["total-delete-files"], "or this tests nothing")
	next := newJob(t, h, c) // an append keeps them
	next.land(next.write(row{vInt(1), vStr("c")}))
	readBack(t, h, 2)
	resp, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Len(t, resp.GetFiles(), 2)
	require.EqualValues(t, 2, resp.GetTotalFiles())
	for _, f := range resp.GetFiles() {
		if f.GetUri() != old[0].GetPath() {
			require.Empty(t, f.GetDeletes())
			require.EqualValues(t, 3, f.GetDataSequenceNumber())
			continue
		}
		require.EqualValues(t, 1, f.GetDataSequenceNumber())
		require.Len(t, f.GetDeletes(), 1)
		require.Equal(t, planv1.FileContent_FILE_CONTENT_POSITION_DELETES, f.GetDeletes()[0].GetContent())
		require.Equal(t, ".parquet", path.Ext(f.GetDeletes()[0].GetPath()))
	}
}
