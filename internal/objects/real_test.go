package objects_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// realClient is one for a real server, whose prefix goes when the test ends.
func realClient(t *testing.T) (objects.Client, string) {
	t.Helper()
	p, bucket, prefix := objectstest.Real(t)
	c, err := objects.NewS3(p, bucket, objects.Static(p))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := c.RemoveAll(t.Context(), prefix+"/", time.Time{})
		_ = err // the context of a test ends before
	})
	return c, prefix + "/"
}

func TestReal_KeysAreLiteral(t *testing.T) {
	c, prefix := realClient(t)
	// Without a backslash, which SeaweedFS takes for a slash.
	names := []string{"a+b", "a%2Bb", "a b", "a%20b", "k=v/x", "ü", "日本", "😎", "a?b", "a#b", "a:b", "a;b&c=d", "'", `"`, "<&>", "~", "(x)", "[1]", "*", "a,b", "a@b", "$a", "!", "|", "^", "`", "%"}
	for _, n := range names {
		put(t, c, prefix+n, n)
	}
	want := []string{}
	for _, n := range names {
		text, _, err := get(c, prefix+n, 0, -1, "")
		require.NoError(t, err, n)
		require.Equal(t, n, text)
		want = append(want, prefix+n)
	}
	got := keys(t, c, prefix, "")
	slices.Sort(want)
	slices.Sort(got) // SeaweedFS orders some of them in ways of its own
	require.Equal(t, want, got)
	for _, n := range names {
		signed, err := c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: prefix + n, For: time.Hour})
		require.NoError(t, err)
		resp, body := send(t, signed, "")
		require.Equal(t, 200, resp.StatusCode, n)
		require.Equal(t, n, body)
	}
	n, err := c.RemoveAll(t.Context(), prefix, time.Time{})
	require.NoError(t, err)
	require.Equal(t, len(names), n)
}

func TestReal_Conditions(t *testing.T) {
	c, prefix := realClient(t)
	ctx := t.Context()
	key := prefix + "k"
	first, err := c.Put(ctx, key, objects.Bytes([]byte("1")), ifAbsent)
	require.NoError(t, err)
	info, err := c.Head(ctx, key)
	require.NoError(t, err)
	assert.Equal(t, first.Nonce, info.Nonce, "metadata come back")
	_, err = c.Put(ctx, key, objects.Bytes([]byte("2")), ifAbsent)
	require.ErrorIs(t, err, objects.ErrExists)
	_, err = c.Put(ctx, key, objects.Bytes([]byte("2")), objects.PutOptions{IfMatch: `"00000000000000000000000000000000"`})
	require.ErrorIs(t, err, objects.ErrChanged)
	_, err = c.Put(ctx, key, objects.Bytes([]byte("2")), objects.PutOptions{IfMatch: first.ETag})
	require.NoError(t, err)
	_, _, err = get(c, key, 0, -1, first.ETag)
	require.ErrorIs(t, err, objects.ErrChanged)
	_, err = c.Head(ctx, prefix+"none")
	require.ErrorIs(t, err, objects.ErrNotFound)
	text, _, err := get(c, key, 1, -1, "")
	require.NoError(t, err)
	require.Empty(t, text, "past the end")
}

func TestReal_Upload(t *testing.T) {
	c, prefix := realClient(t)
	ctx := t.Context()
	const mib = 1 << 20
	whole := bytes.Repeat([]byte("0123456789abcdef"), 11*mib/16)
	src := bytes.NewReader(whole)
	u, err := c.Begin(ctx, prefix+"big")
	require.NoError(t, err)
	require.NoError(t, u.Part(ctx, 2, objects.Section(src, 5*mib, 5*mib)))
	require.NoError(t, u.Part(ctx, 3, objects.Section(src, 10*mib, mib)))
	require.NoError(t, u.Part(ctx, 1, objects.Section(src, 0, 5*mib)))
	info, err := u.Complete(ctx, objects.PutOptions{IfAbsent: true})
	require.NoError(t, err)
	now, err := c.Head(ctx, prefix+"big")
	require.NoError(t, err)
	require.Equal(t, info.Nonce, now.Nonce)
	text, _, err := get(c, prefix+"big", 0, -1, "")
	require.NoError(t, err)
	require.True(t, text == string(whole))
	_, err = u.Complete(ctx, objects.PutOptions{})
	assert.True(t, err == nil || fmt.Sprint(err) != "", "completing twice: %v", err)
	require.NoError(t, u.Abort(ctx), "one that is over is aborted already")

	left, err := c.Begin(ctx, prefix+"left")
	require.NoError(t, err)
	require.NoError(t, left.Part(ctx, 1, objects.Bytes([]byte("x"))))
	n, err := c.(objects.UploadAborter).AbortUploads(ctx, prefix, time.Time{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Error(t, left.Part(ctx, 1, objects.Bytes([]byte("x"))))
}

func TestReal_SignedPut(t *testing.T) {
	c, prefix := realClient(t)
	sum, err := objects.Checksum(objects.Bytes([]byte("hello")))
	require.NoError(t, err)
	header := http.Header{"If-None-Match": {"*"}, "X-Amz-Checksum-Crc32c": {sum}, objects.NonceHeader: {"once"}}
	sign := func() objects.Signed {
		s, err := c.Sign(t.Context(), objects.Signing{Method: http.MethodPut, Key: prefix + "k", Size: 5, Header: header, For: time.Hour})
		require.NoError(t, err)
		return s
	}
	for name, spoil := range map[string]func(*objects.Signed){
		"without the condition": func(s *objects.Signed) { s.Header.Del("If-None-Match") },
		"another nonce":         func(s *objects.Signed) { s.Header.Set(objects.NonceHeader, "twice") },
		"another checksum":      func(s *objects.Signed) { s.Header.Set("X-Amz-Checksum-Crc32c", "AAAAAA==") },
		"another name":          func(s *objects.Signed) { s.URL = s.URL[:len(s.URL)-1] + "0" },
	} {
		s := sign()
		spoil(&s)
		resp, body := send(t, s, "hello")
		assert.Equal(t, 403, resp.StatusCode, "%s: %s", name, body)
	}
	resp, body := send(t, sign(), "hello, and more")
	assert.Equal(t, 403, resp.StatusCode, "another length: %s", body)
	resp, body = send(t, sign(), "hellO")
	assert.Equal(t, 400, resp.StatusCode, "another body: %s", body)
	resp, body = send(t, sign(), "hello")
	require.Equal(t, 200, resp.StatusCode, body)
	resp, _ = send(t, sign(), "hello")
	require.Equal(t, 412, resp.StatusCode)
}
