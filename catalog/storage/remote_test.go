package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/catalog/storage/storagetest"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

const home = "s3://" + objectstest.Bucket + "/wh/table1"

func remoteOpener(t *testing.T, s *objectstest.Server) storage.Opener {
	t.Helper()
	o, err := storage.NewOpener(storage.Root{Prefix: "s3://" + objectstest.Bucket + "/wh", Props: s.Props(), Source: objects.Static(s.Props())})
	require.NoError(t, err)
	return o
}

func openRemote(t *testing.T) (*objectstest.Server, storage.Store) {
	t.Helper()
	s := objectstest.Start(t)
	st, err := remoteOpener(t, s).Open(t.Context(), home)
	require.NoError(t, err)
	return s, st
}

func TestRemote_Conformance(t *testing.T) {
	for name, scheme := range map[string]string{"s3": "s3", "s3a": "s3a"} {
		t.Run(name, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) storagetest.Env {
				s := objectstest.Start(t)
				s.Pages(3, true)
				return storagetest.Env{
					Location: scheme + strings.TrimPrefix(home, "s3"), Sibling: scheme + strings.TrimPrefix(home, "s3") + "0", Open: remoteOpener(t, s).Open, Remote: true,
				}
			})
		})
	}
}

func TestRemote_LargeFiles(t *testing.T) {
	s, st := openRemote(t)
	body := make([]byte, 33<<20+17)
	r := rand.NewChaCha8([32]byte{7})
	_, _ = r.Read(body)
	for _, size := range []int{16 << 20, 16<<20 + 1, len(body)} {
		uri := fmt.Sprintf("%s/%d", home, size)
		info, err := st.PutIfAbsent(t.Context(), uri, bytes.NewReader(body[:size]))
		require.NoError(t, err)
		require.EqualValues(t, size, info.Size)
		o, err := st.Open(t.Context(), uri)
		require.NoError(t, err)
		got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
		require.NoError(t, err)
		require.True(t, bytes.Equal(body[:size], got))
		require.NoError(t, iotest.TestReader(io.NewSectionReader(o, int64(size)-1000, 1000), body[size-1000:size]))
		require.NoError(t, o.Close())
		_, err = o.ReadAt(make([]byte, 1), 0)
		require.Error(t, err)
		_, err = st.PutIfAbsent(t.Context(), uri, bytes.NewReader(body))
		require.ErrorIs(t, err, storage.ErrExists)
	}
	s.Log()
	broken := errors.New("body broke")
	_, err := st.PutIfAbsent(t.Context(), home+"/broken", io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	_, err = st.Stat(t.Context(), home+"/broken")
	require.ErrorIs(t, err, storage.ErrNotFound)
	n, err := st.(storage.Sweeper).SweepTemp(t.Context(), home, time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Zero(t, n, "the upload was aborted")
}

// Reading a small file costs one request, reading a large one piece by piece few.
func TestRemote_Requests(t *testing.T) {
	s, st := openRemote(t)
	_, err := st.PutIfAbsent(t.Context(), home+"/small", strings.NewReader("small"))
	require.NoError(t, err)
	require.Equal(t, []string{"PUT /lake/wh/table1/small"}, s.Log())
	read := func(uri string, piece int) int {
		o, err := st.Open(t.Context(), uri)
		require.NoError(t, err)
		defer o.Close()
		r, buf := io.NewSectionReader(o, 0, o.Size()), make([]byte, piece)
		for err == nil {
			_, err = io.ReadFull(r, buf)
		}
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), err)
		return len(s.Log())
	}
	require.Equal(t, 1, read(home+"/small", 1))
	_, err = st.PutIfAbsent(t.Context(), home+"/large", bytes.NewReader(make([]byte, 12<<20)))
	require.NoError(t, err)
	s.Log()
	require.Equal(t, 3, read(home+"/large", 1000))
	require.Equal(t, 2, read(home+"/large", 12<<20))
}

// A file that is replaced while it is read is an error, not a mixture.
func TestRemote_ReplacedWhileRead(t *testing.T) {
	_, st := openRemote(t)
	i, err := st.PutIfAbsent(t.Context(), home+"/f", bytes.NewReader(make([]byte, 9<<20)))
	require.NoError(t, err)
	o, err := st.Open(t.Context(), home+"/f")
	require.NoError(t, err)
	defer o.Close()
	_, err = st.ReplaceIf(t.Context(), home+"/f", i.ETag, bytes.Repeat([]byte{1}, 9<<20))
	require.NoError(t, err)
	_, err = o.ReadAt(make([]byte, 9<<20), 0)
	require.ErrorIs(t, err, storage.ErrChanged)
}

// What other tools leave below a prefix is no file; what they name in ways of their own is passed over, and removed with the prefix.
func TestRemote_ForeignKeys(t *testing.T) {
	s, st := openRemote(t)
	c := s.Client(t)
	for _, key := range []string{"wh/table1/a/", "wh/table1/a/x", "wh/table1/a//y", "wh/table1/a/../z", "wh/table1/", "wh/table1", "wh/table10/x", "wh/table1/a/b\nc"} {
		_, err := c.Put(t.Context(), key, objects.Bytes(nil), objects.PutOptions{})
		require.NoError(t, err)
	}
	var got []string
	require.NoError(t, st.List(t.Context(), home, func(i storage.Info) error { got = append(got, i.URI); return nil }))
	require.Equal(t, []string{home + "/a/x"}, got)
	n, err := st.RemoveAll(t.Context(), home+"/a")
	require.NoError(t, err)
	require.Equal(t, 5, n)
	for _, key := range []string{"wh/table1/", "wh/table1", "wh/table10/x"} {
		_, err := c.Head(t.Context(), key)
		require.NoError(t, err)
	}
}

func TestRemote_IsEmpty(t *testing.T) {
	_, st := openRemote(t)
	empty, err := storage.IsEmpty(t.Context(), st, home)
	require.NoError(t, err)
	require.True(t, empty)
	_, err = st.PutIfAbsent(t.Context(), home+"/a/b", strings.NewReader(""))
	require.NoError(t, err)
	empty, err = storage.IsEmpty(t.Context(), st, home)
	require.NoError(t, err)
	require.False(t, empty)
}

func TestRemote_SweepsUploads(t *testing.T) {
	s, st := openRemote(t)
	c := s.Client(t)
	for _, key := range []string{"wh/table1/d/x", "wh/table10/x"} {
		u, err := c.Begin(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, u.Part(t.Context(), 1, objects.Bytes([]byte("x"))))
	}
	sweep := func(before time.Duration) int {
		n, err := st.(storage.Sweeper).SweepTemp(t.Context(), home, time.Now().Add(before))
		require.NoError(t, err)
		return n
	}
	assert.Zero(t, sweep(-time.Hour))
	assert.Equal(t, 1, sweep(time.Hour))
	assert.Zero(t, sweep(time.Hour))
}

func TestRemote_Signs(t *testing.T) {
	_, st := openRemote(t)
	signed, err := st.(storage.Signer).Sign(t.Context(), home+"/a b/c", objects.Signing{Method: http.MethodGet, Key: "wh/table10/secret", For: time.Hour})
	require.NoError(t, err)
	require.Contains(t, signed.URL, "/lake/wh/table1/a%20b/c?")
	for _, outside := range []string{home + "0/x", home + "/../table10/x", home, "s3://other/wh/table1/x"} {
		_, err = st.(storage.Signer).Sign(t.Context(), outside, objects.Signing{Method: http.MethodGet, For: time.Hour})
		require.Error(t, err, outside)
	}
}

func TestOpener(t *testing.T) {
	props := func(endpoint string) objects.Props {
		return objects.Props{objects.Endpoint: endpoint, objects.AccessKeyID: "k", objects.SecretKey: "s"}
	}
	root := func(prefix, endpoint string) storage.Root {
		return storage.Root{Prefix: prefix, Props: props(endpoint), Source: objects.Static(props(endpoint))}
	}
	o, err := storage.NewOpener(root("s3a://b/x", "http://x"), root("", "http://any"), root("s3://b/x/y", "http://xy"), root("s3://b", "http://b"))
	require.NoError(t, err)
	for location, want := range map[string]string{
		"s3://b/x/y": "http://xy", "s3a://b/x/y/z": "http://xy", "s3://b/x/yy": "http://x", "s3://b/x": "http://x", "s3://b/xx": "http://b", "s3://b": "http://b", "s3://c/x/y": "http://any",
	} {
		st, err := o.Open(t.Context(), location)
		require.NoError(t, err, location)
		require.Equal(t, location, st.Location())
		signed, err := st.(storage.Signer).Sign(t.Context(), location+"/f", objects.Signing{Method: http.MethodGet, For: time.Hour})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(signed.URL, want+"/"), "%s: %s", location, strings.SplitN(signed.URL, "?", 2)[0])
	}
	st, err := o.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	_, remote := st.(storage.Signer)
	require.False(t, remote)
	for _, bad := range []string{"gs://b/x", "hdfs://n/x", "s3://u@b/x", "s3://b/x/../y", "relative", "https://h/x"} {
		_, err := o.Open(t.Context(), bad)
		require.Error(t, err, bad)
	}
	o, err = storage.NewOpener(root("s3://b/x", "http://x"))
	require.NoError(t, err)
	_, err = o.Open(t.Context(), "s3://b/xx")
	require.ErrorIs(t, err, storage.ErrUnsupported)
	for _, bad := range []storage.Root{root("gs://b", "http://x"), root("/local", "http://x"), root("s3://b", "x"), {Prefix: "s3://b"}} {
		_, err = storage.NewOpener(bad)
		require.Error(t, err)
	}
	_, err = storage.Local.Open(context.Background(), "s3://b/x")
	require.ErrorIs(t, err, storage.ErrUnsupported)
}

func TestRemote_RealConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Env {
		p, bucket, prefix := objectstest.Real(t)
		o, err := storage.NewOpener(storage.Root{Props: p, Source: objects.Static(p)})
		require.NoError(t, err)
		return storagetest.Env{Location: "s3://" + bucket + "/" + prefix + "/t1", Sibling: "s3://" + bucket + "/" + prefix + "/t10", Open: o.Open, Remote: true}
	})
}
