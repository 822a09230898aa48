package manifest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func header() *planv1.ManifestHeader {
	return &planv1.ManifestHeader{JobId: "job", Stage: 1, Task: 2, AttemptId: "attempt", Epoch: 3, TableUuid: "uuid", SchemaId: 4, SpecId: 5, Prefix: "file:///t/data/job/1/2/attempt"}
}

func file(i int) *planv1.DataFile {
	n := int64(i)
	return &planv1.DataFile{
		Path: fmt.Sprintf("file:///t/data/job/1/2/attempt/%d.parquet", i), RecordCount: 10 + n, SizeBytes: 100 + n,
		Partition:    []*planv1.Value{{Kind: &planv1.Value_Integer{Integer: n}}},
		Columns:      []*planv1.ColumnMetrics{{FieldId: 1, ValueCount: proto.Int64(10 + n), NullCount: proto.Int64(0)}},
		SplitOffsets: []int64{4, 90},
	}
}

func files(n int) []*planv1.DataFile {
	out := make([]*planv1.DataFile, n)
	for i := range out {
		out[i] = file(i)
	}
	return out
}

func read(t *testing.T, chunks []*planv1.ManifestChunk) *Reader {
	t.Helper()
	r := NewReader(Limits{})
	for _, c := range chunks {
		require.NoError(t, r.Add(c))
	}
	require.True(t, r.Done())
	return r
}

func filesChunk(b []byte) *planv1.ManifestChunk {
	return &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: b}}
}

func headerChunk() *planv1.ManifestChunk {
	return &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: header()}}
}

func trailerChunk(t *planv1.ManifestTrailer) *planv1.ManifestChunk {
	return &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: t}}
}

func TestEncode_RoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 999, 1000, 1001, 2500} {
		in := files(n)
		chunks, err := Encode(header(), in)
		require.NoError(t, err)
		r := read(t, chunks)
		require.True(t, proto.Equal(header(), r.Header()))
		require.EqualValues(t, n, r.Trailer().GetFiles())
		out, err := r.Files()
		require.NoError(t, err)
		require.Len(t, out, n)
		for i := range out {
			require.True(t, proto.Equal(in[i], out[i]), "file %d", i)
		}
		again, err := r.Chunks()
		require.NoError(t, err)
		require.Len(t, again, len(chunks))
		for i := range again {
			require.True(t, proto.Equal(chunks[i], again[i]), "chunk %d", i)
		}
	}
}

func TestEncode_SplitsByBytesAndByFiles(t *testing.T) {
	big := files(40)
	for _, f := range big {
		f.Path += strings.Repeat("x", 100<<10)
	}
	chunks, err := Encode(header(), big)
	require.NoError(t, err)
	require.Len(t, chunks, 1+4+1) // ten records of 100 KiB fit into one chunk
	for _, c := range chunks {
		require.LessOrEqual(t, len(c.GetFiles()), ChunkBytes)
	}
	read(t, chunks)

	many, err := Encode(header(), files(FilesPerChunk+1))
	require.NoError(t, err)
	require.Len(t, many, 1+2+1)
}

func TestEncode_RefusesWhatNoReaderTakes(t *testing.T) {
	_, err := Encode(nil, nil)
	require.ErrorIs(t, err, ErrMalformed)
	_, err = Encode(header(), []*planv1.DataFile{{Path: strings.Repeat("x", ChunkBytes)}})
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Encode(header(), []*planv1.DataFile{{Path: "p", RecordCount: -1}})
	require.ErrorIs(t, err, ErrMalformed)
	_, err = Encode(header(), []*planv1.DataFile{{SizeBytes: math.MaxInt64}, {SizeBytes: 1}})
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Encode(&planv1.ManifestHeader{Prefix: strings.Repeat("x", ChunkBytes)}, nil)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestWriter_NothingAfterTheTrailerOrAnError(t *testing.T) {
	w, err := NewWriter(header(), func(*planv1.ManifestChunk) error { return nil })
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Add(file(1)), ErrOrder)

	lost := errors.New("lost")
	calls := 0
	w, err = NewWriter(header(), func(*planv1.ManifestChunk) error {
		if calls++; calls > 1 {
			return lost
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, w.Add(file(1)))
	require.ErrorIs(t, w.Close(), lost)
	require.ErrorIs(t, w.Add(file(2)), lost)
}

// S66: a stream that lies about itself is refused with the reason.
func TestReader_RefusesBadStreams(t *testing.T) {
	good, err := Encode(header(), files(3))
	require.NoError(t, err)
	head, body, tail := good[0], good[1], good[2]
	trailer := func(edit func(*planv1.ManifestTrailer)) *planv1.ManifestChunk {
		x := proto.Clone(tail.GetTrailer()).(*planv1.ManifestTrailer)
		edit(x)
		return trailerChunk(x)
	}
	raw := func(b []byte) []*planv1.ManifestChunk {
		sum := sha256.Sum256(b)
		return []*planv1.ManifestChunk{head, filesChunk(b), trailerChunk(&planv1.ManifestTrailer{Sha256: sum[:]})}
	}
	fileField := func(rec []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), rec)
	}
	for _, tc := range []struct {
		name   string
		chunks []*planv1.ManifestChunk
		want   error
	}{
		{"files first", []*planv1.ManifestChunk{body}, ErrOrder},
		{"trailer first", []*planv1.ManifestChunk{tail}, ErrOrder},
		{"two headers", []*planv1.ManifestChunk{head, head}, ErrOrder},
		{"two trailers", []*planv1.ManifestChunk{head, body, tail, tail}, ErrOrder},
		{"files after trailer", []*planv1.ManifestChunk{head, body, tail, body}, ErrOrder},
		{"header after trailer", []*planv1.ManifestChunk{head, body, tail, head}, ErrOrder},
		{"empty chunk", []*planv1.ManifestChunk{{}}, ErrMalformed},
		{"nil chunk", []*planv1.ManifestChunk{nil}, ErrMalformed},
		{"nil header", []*planv1.ManifestChunk{{Part: &planv1.ManifestChunk_Header{}}}, ErrMalformed},
		{"nil trailer", []*planv1.ManifestChunk{head, {Part: &planv1.ManifestChunk_Trailer{}}}, ErrMalformed},
		{"missing files", []*planv1.ManifestChunk{head, tail}, ErrDigest},
		{"doubled files", []*planv1.ManifestChunk{head, body, body, tail}, ErrDigest},
		{"no digest", []*planv1.ManifestChunk{head, body, trailer(func(t *planv1.ManifestTrailer) { t.Sha256 = nil })}, ErrDigest},
		{"fewer files", []*planv1.ManifestChunk{head, body, trailer(func(t *planv1.ManifestTrailer) { t.Files-- })}, ErrTotals},
		{"more rows", []*planv1.ManifestChunk{head, body, trailer(func(t *planv1.ManifestTrailer) { t.Rows++ })}, ErrTotals},
		{"other bytes", []*planv1.ManifestChunk{head, body, trailer(func(t *planv1.ManifestTrailer) { t.Bytes = -1 })}, ErrTotals},
		{"no protobuf", raw([]byte{0xff, 0xff}), ErrMalformed},
		{"cut", raw(body.GetFiles()[:len(body.GetFiles())-1]), ErrMalformed},
		{"a chunk without a file", raw([]byte{0x10, 0x01}), ErrMalformed},
		{"files as a varint", raw([]byte{0x08, 0x01}), ErrMalformed},
		{"record count as bytes", raw(fileField([]byte{0x1a, 0x00})), ErrMalformed},
		{"negative record count", raw(fileField(protowire.AppendVarint([]byte{0x18}, math.MaxUint64))), ErrMalformed},
		{"too many files", raw(bytes.Repeat([]byte{0x0a, 0x00}, FilesPerChunk+1)), ErrTooLarge},
		{"chunk too long", raw(make([]byte, ChunkBytes+1)), ErrTooLarge},
		{"a file of empty columns", raw(fileField(bytes.Repeat([]byte{0x32, 0x00}, 200_001))), ErrTooLarge},
		{"a file of packed offsets", raw(fileField(protowire.AppendBytes([]byte{0x3a}, make([]byte, 200_001)))), ErrTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewReader(Limits{})
			var err error
			for _, c := range tc.chunks {
				if err = r.Add(c); err != nil {
					break
				}
			}
			require.ErrorIs(t, err, tc.want)
			require.False(t, r.Done())
			require.ErrorIs(t, r.Add(head), tc.want, "an error is final")
			_, err = r.Files()
			require.ErrorIs(t, err, tc.want)
			_, err = r.Chunks()
			require.ErrorIs(t, err, tc.want)
		})
	}
}

func TestReader_TotalLimits(t *testing.T) {
	chunks, err := Encode(header(), files(2500))
	require.NoError(t, err)
	for _, tc := range []struct {
		name   string
		limits Limits
	}{
		{"files", Limits{Files: 2499}},
		{"bytes", Limits{Bytes: 10_000}},
		{"elements", Limits{Elements: 4 * 2499}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewReader(tc.limits)
			var err error
			for _, c := range chunks {
				if err = r.Add(c); err != nil {
					break
				}
			}
			require.ErrorIs(t, err, ErrTooLarge)
		})
	}
}

func TestReader_OverflowingTotals(t *testing.T) {
	rec, err := proto.Marshal(&planv1.DataFiles{Files: []*planv1.DataFile{{RecordCount: math.MaxInt64}}})
	require.NoError(t, err)
	r := NewReader(Limits{})
	require.NoError(t, r.Add(headerChunk()))
	require.NoError(t, r.Add(filesChunk(rec)))
	require.ErrorIs(t, r.Add(filesChunk(rec)), ErrTooLarge)
}

func TestReader_HeaderBeforeFilesAndNothingBeforeDone(t *testing.T) {
	r := NewReader(Limits{})
	require.Nil(t, r.Header())
	require.NoError(t, r.Add(headerChunk()))
	require.Equal(t, "uuid", r.Header().GetTableUuid()) // C26: ids are there before any file is
	_, err := r.Files()
	require.ErrorIs(t, err, ErrIncomplete)
}

// A path that is no UTF-8 passes the scan but not the decoder.
func TestReader_InvalidUTF8(t *testing.T) {
	b := []byte{0x0a, 0x03, 0x0a, 0x01, 0xff}
	sum := sha256.Sum256(b)
	r := NewReader(Limits{})
	for _, c := range []*planv1.ManifestChunk{headerChunk(), filesChunk(b), trailerChunk(&planv1.ManifestTrailer{Files: 1, Sha256: sum[:]})} {
		require.NoError(t, r.Add(c))
	}
	_, err := r.Files()
	require.ErrorIs(t, err, ErrMalformed)
}

// The scan's field numbers are those of the protocol.
func TestScan_FieldNumbers(t *testing.T) {
	fields := (&planv1.DataFile{}).ProtoReflect().Descriptor().Fields()
	for name, num := range map[string]int{
		"record_count": fieldRecordCount, "size_bytes": fieldSizeBytes, "partition": fieldPartition, "columns": fieldColumns, "split_offsets": fieldOffsets,
		"content": fieldContent, "content_size": fieldContentSize, "carried_rows": fieldCarried, "updated_rows": fieldFileUpdated, "merged": fieldMerged,
	} {
		for i := range fields.Len() {
			if f := fields.Get(i); string(f.Name()) == name {
				require.EqualValues(t, num, f.Number(), name)
			}
		}
	}
	require.EqualValues(t, fieldFiles, (&planv1.DataFiles{}).ProtoReflect().Descriptor().Fields().Get(0).Number())
}

// What the scan counts is what the decoder finds, on any message.
func TestScan_AgreesWithDecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in planv1.DataFiles
		for range rapid.IntRange(1, 20).Draw(t, "files") {
			f := &planv1.DataFile{
				Path:        rapid.StringMatching(`[a-z/]{0,30}`).Draw(t, "path"),
				RecordCount: rapid.Int64Range(0, 1<<40).Draw(t, "rows"), SizeBytes: rapid.Int64Range(0, 1<<40).Draw(t, "size"),
				SplitOffsets: rapid.SliceOfN(rapid.Int64(), 0, 5).Draw(t, "offsets"),
			}
			if rapid.Bool().Draw(t, "deletes") {
				f.Content = rapid.SampledFrom([]planv1.FileContent{1, 2, 3, 7}).Draw(t, "content")
				f.ContentSize = rapid.Int64Range(0, 1<<40).Draw(t, "content size")
				f.CarriedRows = rapid.Int64Range(0, f.RecordCount).Draw(t, "carried")
				f.UpdatedRows = rapid.Int64Range(0, f.RecordCount-f.CarriedRows).Draw(t, "updated")
				f.Merged = rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,4}`), 0, 3).Draw(t, "merged")
			}
			for range rapid.IntRange(0, 3).Draw(t, "columns") {
				f.Columns = append(f.Columns, &planv1.ColumnMetrics{FieldId: rapid.Int32().Draw(t, "id")})
			}
			in.Files = append(in.Files, f)
		}
		b, err := proto.Marshal(&in)
		require.NoError(t, err)
		l := Limits{}
		l.setDefaults()
		c, err := scanFiles(b, &l)
		require.NoError(t, err)
		var want counts
		for _, f := range in.GetFiles() {
			want.files++
			n := CountsOf(f)
			want.rows, want.bytes, want.deleted, want.updated = want.rows+n.Rows, want.bytes+n.Bytes, want.deleted+n.Deleted, want.updated+n.Updated
			want.elements += int64(len(f.GetColumns()) + len(f.GetPartition()) + len(f.GetSplitOffsets()) + len(f.GetMerged()))
		}
		require.Equal(t, want, c)
	})
}

func FuzzReader(f *testing.F) {
	chunks, err := Encode(header(), files(2))
	require.NoError(f, err)
	f.Add(chunks[1].GetFiles())
	f.Add([]byte{0x0a, 0x00})
	f.Add([]byte{0x0b, 0x0b, 0x0b})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(Limits{})
		require.NoError(t, r.Add(headerChunk()))
		if r.Add(filesChunk(b)) != nil {
			return
		}
		sum := sha256.Sum256(b)
		tr := &planv1.ManifestTrailer{
			Files: r.seen.files, Rows: r.seen.rows, Bytes: r.seen.bytes, ReplacedFiles: r.seen.replaced, DeletedRows: r.seen.deleted, UpdatedRows: r.seen.updated, Sha256: sum[:],
		}
		require.NoError(t, r.Add(trailerChunk(tr)))
		out, err := r.Files()
		if err != nil {
			return
		}
		var rows, size int64
		for _, x := range out {
			n := CountsOf(x)
			rows, size = rows+n.Rows, size+n.Bytes
		}
		require.Equal(t, []int64{r.seen.files, r.seen.rows, r.seen.bytes}, []int64{int64(len(out)), rows, size}, "the scan and the decoder disagree")
	})
}

// Replaced files travel beside data files, are counted, and a lie about them is refused.
func TestEncode_ReplacedFiles(t *testing.T) {
	var gone []*planv1.ReplacedFile
	for i := range 1500 {
		gone = append(gone, &planv1.ReplacedFile{Path: fmt.Sprintf("file:///t/old-%d.parquet", i), RecordCount: 9, DeletedRows: 2, UpdatedRows: 1})
	}
	vector := &planv1.DataFile{Path: "dv.puffin", Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, RecordCount: 10, SizeBytes: 5000, ContentSize: 50, CarriedRows: 2, UpdatedRows: 1}
	chunks, err := Encode(header(), append(files(3), vector), gone...)
	require.NoError(t, err)
	r := read(t, chunks)
	tr := r.Trailer()
	require.EqualValues(t, []int64{4, 33, 353, 1500, 3007, 1501}, []int64{tr.GetFiles(), tr.GetRows(), tr.GetBytes(), tr.GetReplacedFiles(), tr.GetDeletedRows(), tr.GetUpdatedRows()})
	n := 0
	for f, err := range r.Replaced() {
		require.NoError(t, err)
		require.True(t, proto.Equal(gone[n], f))
		n++
	}
	require.Equal(t, 1500, n)

	only, err := Encode(header(), nil, gone[:1]...)
	require.NoError(t, err)
	read(t, only)

	for name, edit := range map[string]func(*planv1.ManifestTrailer){
		"files":   func(x *planv1.ManifestTrailer) { x.ReplacedFiles-- },
		"deleted": func(x *planv1.ManifestTrailer) { x.DeletedRows++ },
		"updated": func(x *planv1.ManifestTrailer) { x.UpdatedRows = 0 },
	} {
		lie := proto.Clone(tr).(*planv1.ManifestTrailer)
		edit(lie)
		r := NewReader(Limits{})
		for _, c := range chunks[:len(chunks)-1] {
			require.NoError(t, r.Add(c))
		}
		require.ErrorIs(t, r.Add(trailerChunk(lie)), ErrTotals, name)
	}
	_, err = Encode(header(), nil, &planv1.ReplacedFile{Path: "p", DeletedRows: -1})
	require.ErrorIs(t, err, ErrMalformed)
	vector.CarriedRows = 10
	_, err = Encode(header(), []*planv1.DataFile{vector})
	require.ErrorIs(t, err, ErrMalformed)
}
