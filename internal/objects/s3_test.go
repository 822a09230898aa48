package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// start gives a server and a client that never waits.
func start(t *testing.T) (*objectstest.Server, objects.Client) {
	t.Helper()
	s := objectstest.Start(t)
	c := s.Client(t)
	objects.Waits(c)
	return s, c
}

func put(t *testing.T, c objects.Client, key, text string) objects.Info {
	t.Helper()
	i, err := c.Put(t.Context(), key, objects.Bytes([]byte(text)), objects.PutOptions{})
	require.NoError(t, err)
	return i
}

func get(c objects.Client, key string, off, n int64, match string) (string, objects.Info, error) {
	r, i, err := c.Get(context.Background(), key, off, n, match)
	if err != nil {
		return "", i, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), i, err
}

func keys(t *testing.T, c objects.Client, prefix, delimiter string) []string {
	t.Helper()
	var out []string
	require.NoError(t, c.List(t.Context(), prefix, delimiter, func(i objects.Info) error {
		out = append(out, i.Key)
		return nil
	}))
	return out
}

func TestPutGetHead(t *testing.T) {
	_, c := start(t)
	made := put(t, c, "a/b", "0123456789")
	info, err := c.Head(t.Context(), "a/b")
	require.NoError(t, err)
	assert.Equal(t, made.ETag, info.ETag)
	assert.EqualValues(t, 10, info.Size)
	assert.Equal(t, "s3://lake/a/b", c.URI("a/b"))
	for _, x := range []struct {
		off, n int64
		want   string
	}{{0, -1, "0123456789"}, {3, -1, "3456789"}, {3, 4, "3456"}, {0, 10, "0123456789"}, {8, 100, "89"}, {10, -1, ""}, {10, 5, ""}, {0, 0, ""}, {99, 1, ""}} {
		text, info, err := get(c, "a/b", x.off, x.n, made.ETag)
		require.NoError(t, err, "%+v", x)
		assert.Equal(t, x.want, text, "%+v", x)
		assert.EqualValues(t, 10, info.Size, "%+v", x)
	}
	put(t, c, "empty", "")
	text, _, err := get(c, "empty", 0, -1, "")
	require.NoError(t, err)
	assert.Empty(t, text)
	for _, n := range []int64{-1, 0, 5} {
		_, _, err = get(c, "none", 0, n, "")
		require.ErrorIs(t, err, objects.ErrNotFound)
		put(t, c, "a/b", "0123456789")
		_, _, err = get(c, "a/b", 0, n, `"another"`)
		require.ErrorIs(t, err, objects.ErrChanged)
	}
	require.NoError(t, c.Remove(t.Context(), "a/b"))
	require.NoError(t, c.Remove(t.Context(), "a/b"))
	_, err = c.Head(t.Context(), "a/b")
	require.ErrorIs(t, err, objects.ErrNotFound)
}

// X23: a key is bytes. Nothing of it is decoded, folded or taken for a path.
func TestKeys_AreLiteral(t *testing.T) {
	_, c := start(t)
	names := []string{
		"a+b", "a%2Bb", "a b", "a%20b", "k=v/x", "ü", "日本", "😎", "a?b", "a#b", "a:b", "a;b&c=d", "'", `"`, "<&>", "~", "a\\b", "(x)", "[1]", "*", "a,b", "a@b", "$a", "!", "a|b", "^", "`", "%",
	}
	for _, n := range names {
		put(t, c, "dir/"+n, n)
	}
	for _, n := range names {
		text, _, err := get(c, "dir/"+n, 0, -1, "")
		require.NoError(t, err, n)
		require.Equal(t, n, text)
	}
	got := keys(t, c, "dir/", "")
	want := make([]string, len(names))
	for i, n := range names {
		want[i] = "dir/" + n
	}
	slices.Sort(want)
	require.Equal(t, want, got)
	n, err := c.RemoveAll(t.Context(), "dir/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, len(names), n)
	require.Empty(t, keys(t, c, "", ""))
}

func TestList_Delimiter(t *testing.T) {
	_, c := start(t)
	for _, k := range []string{"a/1", "a/2", "b", "a.x", "c/d/e"} {
		put(t, c, k, "")
	}
	require.Equal(t, []string{"a.x", "a/", "b", "c/"}, keys(t, c, "", "/"))
	require.Equal(t, []string{"a/1", "a/2"}, keys(t, c, "a/", "/"))
	enough := errors.New("enough")
	require.ErrorIs(t, c.List(t.Context(), "", "", func(objects.Info) error { return enough }), enough)
}

// X25: pages of ten, and an empty one before each, lose no name.
func TestList_PagesOfTenAndEmpty(t *testing.T) {
	s, c := start(t)
	var want []string
	for i := range 47 {
		want = append(want, fmt.Sprintf("p/%02d", i))
		put(t, c, want[i], "")
	}
	put(t, c, "q/0", "")
	for _, empty := range []bool{false, true} {
		s.Pages(10, empty)
		require.Equal(t, want, keys(t, c, "p/", ""))
	}
	n, err := c.RemoveAll(t.Context(), "p/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, 47, n)
	require.Equal(t, []string{"q/0"}, keys(t, c, "", ""))
}

func TestRemoveAll_OneByOneWhereItMust(t *testing.T) {
	s, c := start(t)
	for i := range 5 {
		put(t, c, fmt.Sprint("d/", i), "")
	}
	s.Fail(objectstest.Fault{Method: http.MethodPost, Status: 501, Code: "NotImplemented", Times: 9})
	n, err := c.RemoveAll(t.Context(), "d/", time.Time{})
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Empty(t, keys(t, c, "", ""))
}

func TestUpload(t *testing.T) {
	_, c := start(t)
	const mib = 1 << 20
	u, err := c.Begin(t.Context(), "big")
	require.NoError(t, err)
	require.NotEmpty(t, u.ID())
	whole := bytes.Repeat([]byte("0123456789abcdef"), 11*mib/16)
	src := bytes.NewReader(whole)
	require.NoError(t, u.Part(t.Context(), 2, objects.Section(src, 5*mib, 5*mib)))
	require.NoError(t, u.Part(t.Context(), 3, objects.Section(src, 10*mib, mib)))
	require.NoError(t, u.Part(t.Context(), 1, objects.Bytes([]byte("to be written again"))))
	require.NoError(t, u.Part(t.Context(), 1, objects.Section(src, 0, 5*mib)))
	_, err = c.Head(t.Context(), "big")
	require.ErrorIs(t, err, objects.ErrNotFound, "nothing is seen before it is whole")
	info, err := u.Complete(t.Context(), objects.PutOptions{IfAbsent: true})
	require.NoError(t, err)
	require.EqualValues(t, len(whole), info.Size)
	text, _, err := get(c, "big", 0, -1, "")
	require.NoError(t, err)
	require.True(t, text == string(whole))

	late, err := c.Begin(t.Context(), "big")
	require.NoError(t, err)
	require.NoError(t, late.Part(t.Context(), 1, objects.Bytes([]byte("x"))))
	_, err = late.Complete(t.Context(), objects.PutOptions{IfAbsent: true})
	require.ErrorIs(t, err, objects.ErrExists)
	require.NoError(t, late.Abort(t.Context()))
}

// X24: an upload that is gone is aborted already.
func TestAbort_NoSuchUpload(t *testing.T) {
	s, c := start(t)
	u, err := c.Begin(t.Context(), "x")
	require.NoError(t, err)
	s.Fail(objectstest.Fault{Method: http.MethodDelete, Apply: true, Status: 500})
	require.NoError(t, u.Abort(t.Context()), "the answer is lost, and the second request finds nothing")
	require.NoError(t, u.Abort(t.Context()))
	_, err = u.Complete(t.Context(), objects.PutOptions{})
	require.ErrorIs(t, err, objects.ErrNotFound)
	require.ErrorContains(t, err, "NoSuchUpload")
}

func TestRemoveAll_AbortsUploads(t *testing.T) {
	_, c := start(t)
	for _, k := range []string{"d/x", "e/x"} {
		u, err := c.Begin(t.Context(), k)
		require.NoError(t, err)
		require.NoError(t, u.Part(t.Context(), 1, objects.Bytes([]byte("x"))))
	}
	inside, err := c.Begin(t.Context(), "d/y")
	require.NoError(t, err)
	_, err = c.RemoveAll(t.Context(), "d/", time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.NoError(t, inside.Part(t.Context(), 1, objects.Bytes([]byte("x"))), "young ones may be in use")
	_, err = c.RemoveAll(t.Context(), "d/", time.Time{})
	require.NoError(t, err)
	require.ErrorContains(t, inside.Part(t.Context(), 1, objects.Bytes([]byte("x"))), "NoSuchUpload")
}

func TestPut_Conditions(t *testing.T) {
	_, c := start(t)
	ctx := t.Context()
	first, err := c.Put(ctx, "k", objects.Bytes([]byte("1")), objects.PutOptions{IfAbsent: true})
	require.NoError(t, err)
	_, err = c.Put(ctx, "k", objects.Bytes([]byte("2")), objects.PutOptions{IfAbsent: true})
	require.ErrorIs(t, err, objects.ErrExists)
	_, err = c.Put(ctx, "k", objects.Bytes([]byte("2")), objects.PutOptions{IfMatch: `"0"`})
	require.ErrorIs(t, err, objects.ErrChanged)
	_, err = c.Put(ctx, "none", objects.Bytes([]byte("2")), objects.PutOptions{IfMatch: first.ETag})
	require.ErrorIs(t, err, objects.ErrNotFound)
	_, err = c.Put(ctx, "k", objects.Bytes([]byte("2")), objects.PutOptions{IfMatch: first.ETag})
	require.NoError(t, err)
	_, err = c.Put(ctx, "k", objects.Bytes([]byte("3")), objects.PutOptions{IfMatch: first.ETag})
	require.ErrorIs(t, err, objects.ErrChanged)
	_, err = c.Put(ctx, "k", objects.Bytes([]byte("3")), objects.PutOptions{IfMatch: first.ETag, IfAbsent: true})
	require.ErrorContains(t, err, "exclude")
	text, _, err := get(c, "k", 0, -1, "")
	require.NoError(t, err)
	require.Equal(t, "2", text)
}

// What is signed is what is sent.
func TestPut_Headers(t *testing.T) {
	s, c := start(t)
	var seen http.Header
	s.Fail(objectstest.Fault{Method: http.MethodPut, Match: func(r *http.Request) bool { seen = r.Header.Clone(); return false }})
	_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("123456789")), objects.PutOptions{IfAbsent: true})
	require.NoError(t, err)
	assert.Equal(t, "4waSgw==", seen.Get("X-Amz-Checksum-Crc32c"), "E3069283 is the check value of CRC-32C")
	assert.Equal(t, "*", seen.Get("If-None-Match"))
	assert.NotEmpty(t, seen.Get(objects.NonceHeader))
	assert.Empty(t, seen.Get("X-Amz-Trailer"))
	assert.Equal(t, "UNSIGNED-PAYLOAD", seen.Get("X-Amz-Content-Sha256"))
	for _, h := range []string{"if-none-match", "x-amz-checksum-crc32c", strings.ToLower(objects.NonceHeader), "content-length"} {
		assert.Contains(t, seen.Get("Authorization"), h)
	}
}
