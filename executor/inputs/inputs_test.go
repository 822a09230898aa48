package inputs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/inputs"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/signed/signedtest"
)

func body(n int) []byte { return bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n] }

type bench struct {
	*signedtest.Attempt
	cache *inputs.Cache
	dir   string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	client := signed.New()
	t.Cleanup(client.Close)
	return &bench{
		Attempt: &signedtest.Attempt{Store: signedtest.New(t)}, dir: t.TempDir(),
		cache: &inputs.Cache{Dir: filepath.Join(t.TempDir(), "objects"), Limit: 1 << 30, Client: client, Retry: signed.Retry{Min: time.Millisecond, Max: 2 * time.Millisecond}},
	}
}

func scan(files ...*planv1.PinnedFile) []*planv1.Source {
	return []*planv1.Source{{View: "v", Kind: &planv1.Source_Table{Table: &planv1.TableScan{Files: files}}}}
}

func pinned(key string, size int, deletes ...*planv1.DeleteFile) *planv1.PinnedFile {
	uri := "s3://lake/" + key
	return &planv1.PinnedFile{Uri: uri, Name: uri, SizeBytes: int64(size), Deletes: deletes}
}

// Files are where their copies' paths say, under names that end in bucket and key; what the sources were is as it was.
func TestStage_FilesAndDeletesUnderTheirNames(t *testing.T) {
	b := newBench(t)
	keys := []string{"wh/t/data/k=v/x y+%2B.parquet", "wh/t/data/é/z.parquet", "wh/t/data/d.puffin"}
	for n, k := range keys {
		b.Put(k, body(1000+n))
	}
	task := scan(pinned(keys[0], 1000, &planv1.DeleteFile{Uri: "s3://lake/" + keys[2], SizeBytes: 1002}), pinned(keys[1], 1001), &planv1.PinnedFile{Path: "/local.parquet"})
	require.True(t, inputs.Any(task))
	out, err := b.cache.Stage(t.Context(), b, task, b.dir, inputs.All)
	require.NoError(t, err)
	files := out[0].GetTable().GetFiles()
	for n, path := range []string{files[0].GetPath(), files[1].GetPath(), files[0].GetDeletes()[0].GetPath()} {
		require.Equal(t, b.dir+"/lake/"+keys[n], path)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, body(1000+n), got)
	}
	require.Equal(t, "/local.parquet", files[2].GetPath())
	require.Empty(t, task[0].GetTable().GetFiles()[0].GetPath(), "the task of the scheduler is not touched")

	gets := b.Counted("GET")
	other := t.TempDir()
	out, err = b.cache.Stage(t.Context(), b, scan(pinned(keys[0], 1000, &planv1.DeleteFile{Uri: "s3://lake/wh/gone.puffin"})), other, inputs.Schemas)
	require.NoError(t, err, "deletes are left where they are")
	require.FileExists(t, out[0].GetTable().GetFiles()[0].GetPath())
	require.Equal(t, gets, b.Counted("GET"), "the next task has it from the cache")
	require.False(t, inputs.Any(scan(&planv1.PinnedFile{Path: "/x"})))
}

// Whatever happens to the first answers, what is handed on is the whole file.
func TestStage_FaultAtEveryAnswer(t *testing.T) {
	for _, fault := range []signedtest.Fault{
		signedtest.Before500, signedtest.Cut, signedtest.CutBefore, signedtest.SlowDown, signedtest.Expired, signedtest.HalfBody,
	} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			b := newBench(t)
			b.Put("x.parquet", body(100_000))
			b.Meet = func(_ string, n int) signedtest.Fault {
				if n < 2 || fault == signedtest.HalfBody && n < 12 { // more often than one retry takes: as long as it gets on
					return fault
				}
				return signedtest.None
			}
			out, err := b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", 100_000)), b.dir, inputs.All)
			require.NoError(t, err)
			got, err := os.ReadFile(out[0].GetTable().GetFiles()[0].GetPath())
			require.NoError(t, err)
			require.True(t, bytes.Equal(body(100_000), got))
		})
	}
}

// S73: an object that is not the one that was planned for is refused, also when it changes between two halves of a body.
func TestStage_AChangedObjectIsRefused_S73(t *testing.T) {
	b := newBench(t)
	b.Put("x.csv", body(1000))
	file := func(etag string, size int64) []*planv1.Source {
		return []*planv1.Source{{Kind: &planv1.Source_File{File: &planv1.FileSource{Files: []*planv1.PinnedFile{{Uri: "s3://lake/x.csv", Name: "s3://lake/x.csv", Etag: etag, SizeBytes: size}}}}}}
	}
	var want *inputs.Error
	_, err := b.cache.Stage(t.Context(), b, file(`"0123456789abcdef0123456789abcdef"`, 1000), b.dir, inputs.All)
	require.ErrorAs(t, err, &want)
	require.Contains(t, err.Error(), "s3://lake/x.csv has changed since the job was planned")
	_, err = b.cache.Stage(t.Context(), b, file("", 999), b.dir, inputs.All)
	require.ErrorAs(t, err, &want)
	require.Contains(t, err.Error(), "999 bytes then, 1000 now")
	_, err = b.cache.Stage(t.Context(), b, scan(pinned("x.csv", 999)), b.dir, inputs.All)
	require.ErrorContains(t, err, "data file s3://lake/x.csv of the table has 1000 bytes, and its manifest says 999")
	_, err = b.cache.Stage(t.Context(), b, scan(pinned("gone.parquet", 1)), b.dir, inputs.All)
	require.ErrorAs(t, err, &want)
	require.Contains(t, err.Error(), "data file s3://lake/gone.parquet of the table is not there")

	b.Meet = func(_ string, n int) signedtest.Fault {
		b.Put("x.csv", append(body(99_999), byte('a'+n))) // of the same size
		return signedtest.HalfBody
	}
	_, err = b.cache.Stage(t.Context(), b, scan(pinned("x.csv", 100_000)), b.dir, inputs.All)
	require.ErrorAs(t, err, &want)
	require.Contains(t, err.Error(), "another object has its name now")
}

// A store that stays broken is given up. The error names the object, and no signature.
func TestStage_GivesUp(t *testing.T) {
	for _, fault := range []signedtest.Fault{signedtest.Before500, signedtest.CutBefore, signedtest.NotAllowed} {
		b := newBench(t)
		b.Put("x.parquet", body(10))
		b.Meet = func(string, int) signedtest.Fault { return fault }
		_, err := b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", 10)), b.dir, inputs.All)
		require.ErrorContains(t, err, "s3://lake/x.parquet")
		require.NotContains(t, err.Error(), "token")
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestPath_NamesThatLeadOutAreRefused(t *testing.T) {
	b := newBench(t)
	for _, key := range []string{"a/../../x", "..", "a/./x", "a//x", "a/", "", "x\x00y", strings.Repeat("n", 256)} {
		_, err := b.cache.Stage(t.Context(), b, scan(pinned(key, 1)), b.dir, inputs.All)
		var want *inputs.Error
		require.ErrorAs(t, err, &want, "%q", key)
	}
	require.Zero(t, b.Counted("GET"))
	p, err := inputs.Path("/d", "s3a://lake/k=v/x.parquet")
	require.NoError(t, err)
	require.Equal(t, "/d/lake/k=v/x.parquet", p)
}

// Tasks that want one file at a time wait for one of them; if that one is cancelled, another goes on.
func TestStage_OneFetchForMany(t *testing.T) {
	b := newBench(t)
	b.Put("x.parquet", body(5000))
	first, cancel := context.WithCancel(t.Context())
	entered, gone := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.Meet = func(_ string, n int) signedtest.Fault {
		if n == 0 {
			once.Do(func() { close(entered) })
			<-gone
			return signedtest.CutBefore
		}
		return signedtest.None
	}
	lost := make(chan error, 1)
	go func() {
		_, err := b.cache.Stage(first, b, scan(pinned("x.parquet", 5000)), t.TempDir(), inputs.All)
		lost <- err
	}()
	<-entered
	var group errgroup.Group
	dirs := make([]string, 5)
	for n := range dirs {
		dirs[n] = t.TempDir()
		group.Go(func() error {
			_, err := b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", 5000)), dirs[n], inputs.All)
			return err
		})
	}
	cancel()
	require.Error(t, <-lost)
	close(gone)
	require.NoError(t, group.Wait())
	for _, d := range dirs {
		got, err := os.ReadFile(d + "/lake/x.parquet")
		require.NoError(t, err)
		require.Equal(t, body(5000), got)
	}
	require.Equal(t, 2, b.Counted("GET"))
}

// What is kept is bounded, the one that was not used for longest goes first, and who has a file keeps it.
func TestCache_Bounded(t *testing.T) {
	b := newBench(t)
	b.cache.Limit = 10_000 // on disk each takes 4 KiB
	for _, k := range []string{"a", "b", "c"} {
		b.Put(k, body(1000))
	}
	stage := func(key string) string {
		dir := t.TempDir()
		_, err := b.cache.Stage(t.Context(), b, scan(pinned(key, 1000)), dir, inputs.All)
		require.NoError(t, err)
		return dir + "/lake/" + key
	}
	a := stage("a")
	stage("b")
	stage("a") // used again
	stage("c") // b goes
	require.Equal(t, 3, b.Counted("GET"))
	stage("a")
	stage("c")
	require.Equal(t, 3, b.Counted("GET"))
	stage("b")
	require.Equal(t, 4, b.Counted("GET"))
	names, err := os.ReadDir(b.cache.Dir)
	require.NoError(t, err)
	require.Len(t, names, 2)
	require.FileExists(t, a)

	b.cache.Limit = 0
	d := stage("a")
	require.FileExists(t, d, "without a cache each task has its own")
	names, err = os.ReadDir(b.cache.Dir)
	require.NoError(t, err)
	require.Empty(t, names)
}

// Many files are signed in few requests, and each once.
func TestStage_SignsManyAtATime(t *testing.T) {
	b := newBench(t)
	counted := &counting{Access: b}
	var files []*planv1.PinnedFile
	for n := range 200 {
		k := fmt.Sprintf("f%d.parquet", n)
		b.Put(k, body(10+n))
		files = append(files, pinned(k, 10+n))
	}
	_, err := b.cache.Stage(t.Context(), counted, scan(files...), b.dir, inputs.All)
	require.NoError(t, err)
	require.Equal(t, 200, counted.uris)
	require.LessOrEqual(t, counted.calls, 8)
}

type counting struct {
	inputs.Access
	calls, uris int
}

func (c *counting) Reads(ctx context.Context, uris []string) ([]*executorv1.SignedRequest, error) {
	c.calls++
	c.uris += len(uris)
	return c.Access.Reads(ctx, uris)
}

// Binding a query over a large Parquet file takes its footer, and nothing else; a task that reads it gets all of it.
func TestStage_FootersAreEnoughForSchemas(t *testing.T) {
	for name, length := range map[string]int{"short": 1000, "longer than the first guess": 200_000} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			want := body(3 << 20)
			copy(want, "PAR1")
			copy(want[len(want)-4:], "PAR1")
			binary.LittleEndian.PutUint32(want[len(want)-8:], uint32(length))
			b.Put("x.parquet", want)
			b.Meet = func(_ string, n int) signedtest.Fault {
				if n == 0 {
					return signedtest.HalfBody
				}
				return signedtest.None
			}
			out, err := b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", len(want))), b.dir, inputs.Schemas)
			require.NoError(t, err)
			got, err := os.ReadFile(out[0].GetTable().GetFiles()[0].GetPath())
			require.NoError(t, err)
			require.Len(t, got, len(want))
			require.Equal(t, "PAR1", string(got[:4]))
			at := len(want) - 8 - length
			require.True(t, bytes.Equal(want[at:], got[at:]))
			require.True(t, bytes.Equal(make([]byte, 1<<20), got[4:4+1<<20]), "the rest was not fetched")

			dir := t.TempDir()
			_, err = b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", len(want))), dir, inputs.All)
			require.NoError(t, err)
			got, err = os.ReadFile(dir + "/lake/x.parquet")
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
			gets := b.Counted("GET")
			dir = t.TempDir()
			_, err = b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", len(want))), dir, inputs.Schemas)
			require.NoError(t, err)
			require.Equal(t, gets, b.Counted("GET"), "all of it is more than enough")
		})
	}
	b := newBench(t)
	want := body(3 << 20)
	b.Put("x.parquet", want)
	_, err := b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", len(want))), b.dir, inputs.Schemas)
	require.NoError(t, err)
	got, err := os.ReadFile(b.dir + "/lake/x.parquet")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "what is no Parquet file is fetched whole, and refused by who reads it")
	_, err = b.cache.Stage(t.Context(), b, scan(pinned("x.parquet", len(want)-1)), t.TempDir(), inputs.Schemas)
	require.ErrorContains(t, err, "its manifest says")
}

// Files that a store may copy from are left there, but for their footers; what is read of them, and fetched after all, is of the version that was planned for.
func TestStageFooters(t *testing.T) {
	b := newBench(t)
	const size = 6 << 20
	large := append(append([]byte("PAR1"), body(size-4-3000-8)...), body(3000)...)
	large = append(binary.LittleEndian.AppendUint32(large, 3000), "PAR1"...)
	deleted := &planv1.DeleteFile{Uri: "s3://lake/d.puffin", SizeBytes: 10}
	b.Put("large.parquet", large)
	b.Put("deleted.parquet", large)
	b.Put("small.parquet", large[:4<<20])
	b.Put("d.puffin", body(10))
	task := scan(pinned("large.parquet", size), pinned("deleted.parquet", size, deleted), pinned("small.parquet", 4<<20))
	out, left, err := b.cache.StageFooters(t.Context(), b, task, b.dir)
	require.NoError(t, err)
	files := out[0].GetTable().GetFiles()
	for n, want := range [][]byte{nil, large, large[:4<<20]} {
		got, err := os.ReadFile(files[n].GetPath())
		require.NoError(t, err)
		if want != nil {
			require.Nil(t, left.Object(files[n].GetPath()))
			require.True(t, bytes.Equal(want, got))
			continue
		}
		require.Len(t, got, size)
		require.Equal(t, large[size-3008:], got[size-3008:])
		require.Equal(t, make([]byte, 1<<20), got[4:4+1<<20], "nothing of its rows")
	}
	require.FileExists(t, files[1].GetDeletes()[0].GetPath())

	from := left.Object(files[0].GetPath())
	require.Equal(t, "s3://lake/large.parquet", from.URI)
	part := make([]byte, 1000)
	_, err = from.ReadAt(part, 5_000_000)
	require.NoError(t, err)
	require.Equal(t, large[5_000_000:5_001_000], part)

	files[0].FirstRow, files[0].EndRow = 3, 7
	whole, err := left.Whole(t.Context(), files)
	require.NoError(t, err)
	require.NotEqual(t, files[0].GetPath(), whole[0].GetPath())
	require.EqualValues(t, 7, whole[0].GetEndRow())
	require.Equal(t, files[1].GetPath(), whole[1].GetPath())
	got, err := os.ReadFile(whole[0].GetPath())
	require.NoError(t, err)
	require.True(t, bytes.Equal(large, got))

	b.Put("large.parquet", append(bytes.Clone(large), 'x')) // S73
	_, err = from.ReadAt(part, 0)
	var changed *inputs.Error
	require.ErrorAs(t, err, &changed)
	require.Contains(t, err.Error(), "large.parquet")
}
