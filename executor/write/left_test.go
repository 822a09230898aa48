package write_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
	"github.com/signet-io/signet/executor/splice"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// store has files of which the task sees the footers, and copies what it is asked to. It counts both.
type store struct {
	upload.Local
	t       testing.TB
	least   int64
	whole   map[string]*planv1.PinnedFile // by the path of the footer
	fetched int
	made    int
}

func (s *store) Object(path string) *splice.Object {
	f := s.whole[path]
	if f == nil {
		return nil
	}
	in, err := os.Open(f.GetPath())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, in.Close()) })
	return &splice.Object{ReaderAt: in, URI: "s3://lake" + f.GetPath(), Size: f.GetSizeBytes(), Least: s.least}
}

func (s *store) Whole(_ context.Context, files []*planv1.PinnedFile) ([]*planv1.PinnedFile, error) {
	var out []*planv1.PinnedFile
	for _, f := range files {
		part := proto.CloneOf(f)
		if whole := s.whole[f.GetPath()]; whole != nil {
			s.fetched++
			part = proto.CloneOf(whole)
			part.FirstRow, part.EndRow = f.GetFirstRow(), f.GetEndRow()
		}
		out = append(out, part)
	}
	return out, nil
}

func (s *store) Writer(ctx context.Context, prefix string) (upload.Writer, error) {
	w, err := s.Local.Writer(ctx, prefix)
	return &storeWriter{w, s, path(prefix)}, err
}

type storeWriter struct {
	upload.Writer
	s   *store
	dir string
}

// Make implements splice.Maker.
func (w *storeWriter) Make(_ context.Context, pieces []splice.Piece, target string) error {
	var body []byte
	for n := range pieces {
		b, err := pieces[n].Read()
		if err != nil {
			return err
		}
		body = append(body, b...)
	}
	w.s.made++
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, target), body, 0o600)
}

// footerOf makes a file of the size of another that has nothing but its footer, and garbage where rows would be: who reads them fails.
func footerOf(t testing.TB, file, as string) {
	t.Helper()
	_, start, size, err := footer.Open(file)
	require.NoError(t, err)
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	out, err := os.Create(as)
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, out.Truncate(size))
	_, err = out.WriteAt([]byte(footer.Magic), 0)
	require.NoError(t, err)
	_, err = io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, size-start))
	require.NoError(t, err)
}

// runLeft runs the task with its files left in a store.
func (tb *table) runLeft(t testing.TB, least int64) ([]*planv1.DataFile, *store) {
	t.Helper()
	scratch, s := t.TempDir(), &store{t: t, least: least, whole: map[string]*planv1.PinnedFile{}}
	given := tb.task.GetSources()
	defer func() { tb.task.Sources = given }()
	tb.task.Sources = []*planv1.Source{proto.CloneOf(given[0])}
	files := tb.task.GetSources()[0].GetFile().GetFiles()
	if scan := tb.task.GetSources()[0].GetTable(); scan != nil {
		files = scan.GetFiles()
	}
	var more []string
	for n, f := range files {
		if len(f.GetDeletes()) > 0 {
			continue
		}
		head := filepath.Join(scratch, "footer"+strconv.Itoa(n)+".parquet")
		footerOf(t, f.GetPath(), head)
		s.whole[head] = proto.CloneOf(f)
		pin := pinned(t, head)
		f.Path, f.MtimeNanos, f.Inode, f.CtimeNanos = head, pin.GetMtimeNanos(), 0, 0
		more = append(more, s.whole[head].GetPath())
	}
	inst := tb.bound(t, scratch, more...)
	tb.task.AttemptId = uuid.NewString()
	tb.write().Prefix = tb.DataLocation + "/job/0/0/" + tb.task.AttemptId
	out, err := write.Run(t.Context(), inst, tb.task, write.Options{Scratch: scratch, Store: s, Left: s})
	require.NoError(t, err)
	return out, s
}

// Where the query does more than to pass columns through, and where runs are short, everything is fetched; otherwise nothing is, but what cannot be copied.
func TestLeft_WhatIsFetched(t *testing.T) {
	rows := "SELECT i, 'text ' || i AS s, i / 7 AS x FROM range(100000) r(i)"
	make := func(sql string) *table {
		return spliced(t, field(1, "i", "long"), field(2, "s", "string"), field(3, "x", "double")).from(t, sql, parquetFile(t, rows, zstd), parquetFile(t, rows, zstd))
	}
	for name, c := range map[string]struct {
		sql           string
		least         int64
		made, fetched int
	}{
		"passes through":           {"SELECT * FROM v", 100_000, 1, 0},
		"in another order":         {"SELECT i, s, x FROM (SELECT s, x, i FROM v)", 1, 0, 2},
		"runs are too short":       {"SELECT * FROM v", 1 << 40, 0, 2},
		"computes":                 {"SELECT i + 1, s, x FROM v", 1, 0, 2},
		"some rows":                {"SELECT * FROM v WHERE i < 10", 1, 0, 2},
		"short runs, all the same": {"SELECT * FROM v", 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			files, s := make(c.sql).runLeft(t, c.least)
			require.Equal(t, c.made, s.made)
			require.Equal(t, c.fetched, s.fetched)
			require.NotEmpty(t, files)
		})
	}
}

// What a footer says of the kinds of pages is believed of files that were left, and held against the table's rules.
func TestLeft_KindsOfPages(t *testing.T) {
	src := parquetFile(t, plainRows, zstd)
	for name, c := range map[string]struct {
		kinds []footer.EncodingStats
		made  int
	}{
		"none":             {nil, 1},
		"of version 1":     {[]footer.EncodingStats{{Page: footer.DictionaryPage, Encoding: footer.Plain, Count: 1}, {Page: footer.DataPage, Encoding: footer.RLEDictionary, Count: 2}}, 1},
		"of version 2":     {[]footer.EncodingStats{{Page: footer.DataPageV2, Encoding: footer.Plain, Count: 1}}, 0},
		"another encoding": {[]footer.EncodingStats{{Page: footer.DataPage, Encoding: footer.DeltaBinaryPacked, Count: 1}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := refooted(t, src, func(f *footer.File) {
				for n := range f.Groups {
					f.Groups[n].Chunks[1].Pages = c.kinds
				}
			})
			_, s := plainTable(t).from(t, "SELECT * FROM v", file).runLeft(t, 1)
			require.Equal(t, c.made, s.made)
		})
	}
}
