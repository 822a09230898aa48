package objectstest

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

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
)

// Run holds a client of any store to what package objects promises. start gives a server that is empty, and a client for it that never waits.
func Run(t *testing.T, scheme string, start func(t *testing.T) (*Server, objects.Client)) {
	put := func(t *testing.T, c objects.Client, key, text string, o objects.PutOptions) objects.Info {
		t.Helper()
		i, err := c.Put(t.Context(), key, objects.Bytes([]byte(text)), o)
		require.NoError(t, err)
		return i
	}
	read := func(t *testing.T, c objects.Client, key string, off, n int64, match string) (string, error) {
		t.Helper()
		r, _, err := c.Get(t.Context(), key, off, n, match)
		if err != nil {
			return "", err
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		return string(b), err
	}
	absent := objects.PutOptions{IfAbsent: true}

	t.Run("PutGetHeadRemove", func(t *testing.T) {
		_, c := start(t)
		key := "a/ü +%2B#?&=;'\"x"
		made := put(t, c, key, "0123456789", objects.PutOptions{})
		info, err := c.Head(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, made.ETag, info.ETag)
		require.NotEmpty(t, info.ETag)
		require.Equal(t, made.Nonce, info.Nonce)
		require.EqualValues(t, 10, info.Size)
		require.WithinDuration(t, time.Now(), info.ModTime, time.Hour)
		require.True(t, strings.HasPrefix(c.URI(key), scheme+"://"), c.URI(key))
		for _, x := range []struct {
			off, n int64
			want   string
		}{{0, -1, "0123456789"}, {3, -1, "3456789"}, {3, 4, "3456"}, {8, 100, "89"}, {10, -1, ""}, {0, 0, ""}, {99, 1, ""}} {
			text, err := read(t, c, key, x.off, x.n, made.ETag)
			require.NoError(t, err, "%+v", x)
			require.Equal(t, x.want, text, "%+v", x)
		}
		for _, n := range []int64{-1, 0, 5} {
			_, err = read(t, c, "none", 0, n, "")
			require.ErrorIs(t, err, objects.ErrNotFound)
			_, err = read(t, c, key, 0, n, `"another"`)
			require.ErrorIs(t, err, objects.ErrChanged)
		}
		put(t, c, "empty", "", absent)
		text, err := read(t, c, "empty", 0, -1, "")
		require.NoError(t, err)
		require.Empty(t, text)
		require.NoError(t, c.Remove(t.Context(), key))
		require.NoError(t, c.Remove(t.Context(), key))
		_, err = c.Head(t.Context(), key)
		require.ErrorIs(t, err, objects.ErrNotFound)
	})

	// D6: what exists is not replaced, whatever a store calls it.
	t.Run("Conditions", func(t *testing.T) {
		_, c := start(t)
		first := put(t, c, "k", "1", absent)
		_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("2")), absent)
		require.ErrorIs(t, err, objects.ErrExists)
		second := put(t, c, "k", "2", objects.PutOptions{IfMatch: first.ETag})
		_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("3")), objects.PutOptions{IfMatch: first.ETag})
		require.ErrorIs(t, err, objects.ErrChanged)
		text, err := read(t, c, "k", 0, -1, second.ETag)
		require.NoError(t, err)
		require.Equal(t, "2", text)
		_, err = read(t, c, "k", 0, -1, first.ETag)
		require.ErrorIs(t, err, objects.ErrChanged)
		_, err = c.Put(t.Context(), "gone", objects.Bytes([]byte("3")), objects.PutOptions{IfMatch: first.ETag})
		require.Error(t, err)
		_, err = c.Head(t.Context(), "gone")
		require.ErrorIs(t, err, objects.ErrNotFound)
	})

	// C3: every way in which the answer to a conditional write can be lost ends in the outcome that the store holds.
	faults := map[string]Fault{
		"cut before": {}, "cut after": {Apply: true}, "half an answer": {Apply: true, Body: 1}, "500 before": {Status: 500}, "500 after": {Apply: true, Status: 500},
		"502 of a proxy": {Apply: true, Status: 502}, "503": {Apply: true, Status: 503}, "504": {Apply: true, Status: 504}, "429": {Status: 429}, "412 though it took effect": {Apply: true, Status: 412},
	}
	for name, f := range faults {
		t.Run("ConditionalPut/"+name, func(t *testing.T) {
			f.Method = http.MethodPut
			s, c := start(t)
			s.Fail(f)
			mine := put(t, c, "k", "mine", absent)
			require.Zero(t, s.Pending())
			s.Fail(f)
			f.Apply = false
			_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("other")), absent)
			require.ErrorIs(t, err, objects.ErrExists)
			require.NotErrorIs(t, err, objects.ErrUnknown)
			s.Fail(f)
			put(t, c, "k", "next", objects.PutOptions{IfMatch: mine.ETag})
			_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("more")), objects.PutOptions{IfMatch: mine.ETag})
			require.ErrorIs(t, err, objects.ErrChanged)
		})
	}
	t.Run("UnknownIsSaid", func(t *testing.T) {
		for _, apply := range []bool{false, true} {
			s, c := start(t)
			s.Fail(Fault{Method: http.MethodPut, Apply: apply, Times: 1000}, Fault{Method: http.MethodHead, Status: 500, Times: 1000})
			_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("mine")), absent)
			require.ErrorIs(t, err, objects.ErrUnknown)
			require.NotErrorIs(t, err, objects.ErrExists)
		}
	})

	t.Run("Upload", func(t *testing.T) {
		for name, f := range faults {
			if f.Status == http.StatusPreconditionFailed {
				f.Apply = true
			}
			s, c := start(t)
			f.Method = http.MethodPut
			u, err := c.Begin(t.Context(), "k")
			require.NoError(t, err, name)
			require.NotEmpty(t, u.ID())
			require.NoError(t, u.Part(t.Context(), 2, objects.Bytes([]byte("two"))), name)
			require.NoError(t, u.Part(t.Context(), 1, objects.Bytes([]byte("wrong"))), name)
			require.NoError(t, u.Part(t.Context(), 1, objects.Bytes([]byte("one"))), name)
			_, err = c.Head(t.Context(), "k")
			require.ErrorIs(t, err, objects.ErrNotFound, name)
			s.Fail(f)
			info, err := u.Complete(t.Context(), absent)
			require.NoError(t, err, name)
			require.EqualValues(t, 6, info.Size)
			text, err := read(t, c, "k", 0, -1, info.ETag)
			require.NoError(t, err)
			require.Equal(t, "onetwo", text)
			require.Zero(t, s.Pending(), name)

			late, err := c.Begin(t.Context(), "k")
			require.NoError(t, err)
			require.NoError(t, late.Part(t.Context(), 1, objects.Bytes([]byte("late"))))
			_, err = late.Complete(t.Context(), absent)
			require.ErrorIs(t, err, objects.ErrExists, name)
			require.NoError(t, late.Abort(t.Context()))
			require.NoError(t, late.Abort(t.Context()))
			text, err = read(t, c, "k", 0, -1, info.ETag)
			require.NoError(t, err)
			require.Equal(t, "onetwo", text)
		}
	})

	t.Run("ReadsGoOn", func(t *testing.T) {
		s, c := start(t)
		whole := bytes.Repeat([]byte("0123456789"), 100_000)
		made := put(t, c, "k", string(whole), objects.PutOptions{})
		isGet := func(r *http.Request) bool { return r.Method == http.MethodGet }
		for _, x := range []struct{ off, n int64 }{{0, -1}, {7, 500_000}} {
			s.Fail(Fault{Match: isGet, Apply: true, Body: 300, Times: 3}, Fault{Match: isGet, Status: 503})
			text, err := read(t, c, "k", x.off, x.n, made.ETag)
			require.NoError(t, err)
			want := whole[x.off:]
			if x.n >= 0 {
				want = want[:x.n]
			}
			require.True(t, string(want) == text, "%d bytes", len(text))
			require.Zero(t, s.Pending())
		}
		s.Fail(Fault{Match: isGet, Apply: true, Body: 300}, Fault{Match: func(r *http.Request) bool {
			if isGet(r) && (r.Header.Get("Range") != "" || r.Header.Get("X-Ms-Range") != "") {
				put(t, c, "k", "another", objects.PutOptions{})
			}
			return false
		}})
		_, err := read(t, c, "k", 0, -1, "")
		require.ErrorIs(t, err, objects.ErrChanged)
	})

	// X25: every page is followed, also an empty one.
	t.Run("Lists", func(t *testing.T) {
		s, c := start(t)
		s.Pages(3, true)
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprintf("p/%02d +%%2B", i))
			put(t, c, want[i], "x", objects.PutOptions{})
		}
		put(t, c, "q/1", "x", objects.PutOptions{})
		list := func(prefix, delimiter string) (out []string) {
			s.Fail(Fault{Match: func(r *http.Request) bool { return r.Method == http.MethodGet }, Status: 503, Skip: 1}) // at any page
			require.NoError(t, c.List(t.Context(), prefix, delimiter, func(i objects.Info) error {
				out = append(out, i.Key)
				return nil
			}))
			return out
		}
		require.Equal(t, want, list("p/", ""))
		require.Equal(t, []string{"p/", "q/"}, list("", "/"))
		require.Empty(t, list("r/", ""))
		stop := errors.New("enough")
		require.ErrorIs(t, c.List(t.Context(), "p/", "", func(objects.Info) error { return stop }), stop)
		n, err := c.RemoveAll(t.Context(), "p/", time.Time{})
		require.NoError(t, err)
		require.Equal(t, 20, n)
		require.Equal(t, []string{"q/1"}, list("", ""))
	})

	t.Run("Errors", func(t *testing.T) {
		for _, x := range []struct {
			f    Fault
			is   error
			says string
		}{
			{Fault{Status: 403}, objects.ErrDenied, "permission"},
			{Fault{Status: 401}, objects.ErrDenied, ""},
			{Fault{Status: 404, Code: "NoSuchBucket"}, objects.ErrNoBucket, "create"},
			{Fault{Status: 503, Times: 1000}, objects.ErrBusy, ""},
			{Fault{Status: 500, Times: 1000}, nil, "500"},
		} {
			s, c := start(t)
			s.Fail(x.f)
			err := c.List(t.Context(), "dir/", "", func(objects.Info) error { return nil })
			require.Error(t, err, "%+v", x.f)
			if x.is != nil {
				require.ErrorIs(t, err, x.is)
			}
			require.ErrorContains(t, err, x.says)
			require.ErrorContains(t, err, "list "+c.URI("dir/"))
			require.NotContains(t, err.Error(), "?")
		}
		_, c := start(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.Put(ctx, "k", objects.Bytes(nil), absent)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, objects.ErrUnknown, "nothing was sent")
	})

	t.Run("Sign", func(t *testing.T) {
		s, c := start(t)
		put(t, c, "dir/a b", "0123456789", objects.PutOptions{})
		send := func(r objects.Signed, body string, more ...string) (int, string, http.Header) {
			q, err := http.NewRequestWithContext(t.Context(), r.Method, r.URL, strings.NewReader(body))
			require.NoError(t, err)
			for name, values := range r.Header {
				q.Header[name] = values
			}
			for i := 0; i < len(more); i += 2 {
				q.Header.Set(more[i], more[i+1])
			}
			resp, err := http.DefaultClient.Do(q)
			require.NoError(t, err)
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			return resp.StatusCode, string(b), resp.Header
		}
		sign := func(x objects.Signing) objects.Signed {
			x.For = time.Minute
			r, err := c.Sign(t.Context(), x)
			require.NoError(t, err)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", r, r, r), "ig=", "no signature is printed")
			return r
		}
		status, text, _ := send(sign(objects.Signing{Method: http.MethodGet, Key: "dir/a b"}), "")
		require.Equal(t, "0123456789", text, status)
		status, text, _ = send(sign(objects.Signing{Method: http.MethodGet, Key: "dir/a b"}), "", "Range", "bytes=2-4")
		require.Equal(t, http.StatusPartialContent, status)
		require.Equal(t, "234", text)
		r := sign(objects.Signing{Method: http.MethodGet, Key: "dir/a b"})
		other := r
		other.URL = strings.Replace(r.URL, "a%20b", "other", 1)
		require.NotEqual(t, r.URL, other.URL)
		status, _, _ = send(other, "")
		require.Equal(t, http.StatusForbidden, status)
		other = r
		other.Method = http.MethodDelete
		status, _, _ = send(other, "")
		require.Equal(t, http.StatusForbidden, status)

		file := objects.FilePut{Name: "f", Size: 3, CRC32C: []byte{0xb3, 0x53, 0x78, 0x5c}}
		sum, err := objects.Checksum(objects.Bytes([]byte("abc")))
		require.NoError(t, err)
		what := file.Signing("attempt-1")
		what.Key = "out/f"
		what.Header.Set("X-Amz-Checksum-Crc32c", sum)
		w := sign(what)
		status, text, _ = send(w, "abc")
		require.Less(t, status, 300, text)
		status, _, _ = send(w, "abc")
		require.Contains(t, []int{http.StatusPreconditionFailed, http.StatusConflict, http.StatusForbidden}, status, "nothing is replaced")
		info, err := c.Head(t.Context(), "out/f")
		require.NoError(t, err)
		require.Equal(t, "attempt-1", info.Nonce)
		for _, bad := range []objects.Signing{
			{Method: http.MethodDelete, Key: "k"}, {Method: http.MethodPost, Key: "k"}, {Method: http.MethodPut, Key: "k", Part: 1}, {Method: http.MethodGet}, {Method: http.MethodPut, Key: "k", Size: -1},
		} {
			bad.For = time.Minute
			_, err := c.Sign(t.Context(), bad)
			require.Error(t, err, "%+v", bad)
		}
		_, err = c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Millisecond})
		require.ErrorIs(t, err, objects.ErrExpired)
		require.False(t, slices.ContainsFunc(s.Log(), func(line string) bool { return strings.Contains(line, "sig=") }))
	})
}
