// Package storagetest is the conformance suite that every implementation of storage.Store runs.
package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/storage"
)

// Env is one fresh place to test in. Location and Sibling lie side by side; Sibling's name starts with Location's, as table10 with table1.
type Env struct {
	Location, Sibling string
	Open              func(ctx context.Context, location string) (storage.Store, error)
	// Remote: the store has keys and no directories, so that a file may have the name of a directory; control characters are in no name; and what a write answers
	// has the time of the answer.
	Remote bool
}

// Run is the conformance suite.
func Run(t *testing.T, fresh func(t *testing.T) Env) {
	for name, test := range map[string]func(*testing.T, Env, storage.Store){
		"PutAndRead":            testPut,
		"PutFailsWhole":         testPutFails,
		"PutRaceHasOneWinner":   testRace,
		"NeverSeenInPart":       testNeverPartial,
		"Confinement":           testConfinement,
		"ListIsByDirectory":     testList,
		"RemoveAndRemoveAll":    testRemove,
		"ReplaceIf":             testReplace,
		"MissingIsNotFound":     testMissing,
		"OddNamesAreRaw":        testOddNames,
		"CancelledContextStops": testCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			env := fresh(t)
			s, err := env.Open(t.Context(), env.Location)
			require.NoError(t, err)
			require.Equal(t, env.Location, s.Location())
			test(t, env, s)
		})
	}
}

func put(t *testing.T, s storage.Store, uri, body string) storage.Info {
	t.Helper()
	info, err := s.PutIfAbsent(t.Context(), uri, strings.NewReader(body))
	require.NoError(t, err, uri)
	return info
}

func read(t *testing.T, s storage.Store, uri string) string {
	t.Helper()
	o, err := s.Open(t.Context(), uri)
	require.NoError(t, err, uri)
	defer o.Close()
	b, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
	require.NoError(t, err)
	return string(b)
}

func list(t *testing.T, s storage.Store, prefix string) []string {
	t.Helper()
	out := []string{}
	require.NoError(t, s.List(t.Context(), prefix, func(i storage.Info) error {
		rel, err := s.Rel(i.URI)
		require.NoError(t, err)
		out = append(out, rel)
		return nil
	}))
	return out
}

func testPut(t *testing.T, env Env, s storage.Store) {
	uri := env.Location + "/a/b/c.bin"
	info := put(t, s, uri, "hello")
	assert.Equal(t, uri, info.URI)
	assert.EqualValues(t, 5, info.Size)
	assert.NotEmpty(t, info.ETag)
	stat, err := s.Stat(t.Context(), uri)
	require.NoError(t, err)
	if env.Remote {
		assert.WithinDuration(t, info.ModTime, stat.ModTime, time.Minute)
		info.ModTime = stat.ModTime
	}
	assert.Equal(t, info, stat)
	o, err := s.Open(t.Context(), uri)
	require.NoError(t, err)
	assert.Equal(t, info.ETag, o.ETag())
	assert.Equal(t, info.ModTime, o.ModTime())
	part := make([]byte, 3)
	n, err := o.ReadAt(part, 3)
	assert.Equal(t, "lo", string(part[:n]))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, o.Close())

	_, err = s.PutIfAbsent(t.Context(), uri, strings.NewReader("other"))
	require.ErrorIs(t, err, storage.ErrExists)
	assert.Equal(t, "hello", read(t, s, uri))
	put(t, s, env.Location+"/empty", "")
	assert.Equal(t, []string{"a/b/c.bin", "empty"}, list(t, s, env.Location))
}

type failing struct{ after int }

var errBody = errors.New("body broke")

func (f *failing) Read(p []byte) (int, error) {
	if f.after <= 0 {
		return 0, errBody
	}
	n := min(len(p), f.after)
	f.after -= n
	return n, nil
}

func testPutFails(t *testing.T, env Env, s storage.Store) {
	uri := env.Location + "/d/x"
	_, err := s.PutIfAbsent(t.Context(), uri, &failing{after: 100_000})
	require.ErrorIs(t, err, errBody)
	_, err = s.Stat(t.Context(), uri)
	require.ErrorIs(t, err, storage.ErrNotFound)
	assert.Empty(t, list(t, s, env.Location))
	put(t, s, uri, "second try")
}

func testRace(t *testing.T, env Env, s storage.Store) {
	for round := range 20 {
		uri := fmt.Sprintf("%s/race/%d", env.Location, round)
		errs := make([]error, 8)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				<-start
				_, errs[i] = s.PutIfAbsent(t.Context(), uri, bytes.NewReader(bytes.Repeat([]byte{'a' + byte(i)}, 50_000)))
			})
		}
		close(start)
		wg.Wait()
		won := -1
		for i, err := range errs {
			if err == nil {
				require.Equal(t, -1, won, "two writers won")
				won = i
			} else {
				require.ErrorIs(t, err, storage.ErrExists)
			}
		}
		require.GreaterOrEqual(t, won, 0)
		require.Equal(t, strings.Repeat(string(rune('a'+won)), 50_000), read(t, s, uri))
	}
	assert.Len(t, list(t, s, env.Location), 20)
}

// gated stops in the middle of the body until the test lets it go on.
type gated struct {
	reached chan struct{}
	resume  chan struct{}
	state   int
}

func (g *gated) Read(p []byte) (int, error) {
	g.state++
	switch g.state {
	case 1:
		return copy(p, "first half,"), nil
	case 2:
		close(g.reached)
		<-g.resume
		return copy(p, "second half"), nil
	}
	return 0, io.EOF
}

func testNeverPartial(t *testing.T, env Env, s storage.Store) {
	uri := env.Location + "/p/x"
	g := &gated{reached: make(chan struct{}), resume: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := s.PutIfAbsent(t.Context(), uri, g)
		done <- err
	}()
	<-g.reached
	_, err := s.Stat(t.Context(), uri)
	require.ErrorIs(t, err, storage.ErrNotFound)
	assert.Empty(t, list(t, s, env.Location))
	close(g.resume)
	require.NoError(t, <-done)
	assert.Equal(t, "first half,second half", read(t, s, uri))
}

func testConfinement(t *testing.T, env Env, s storage.Store) {
	other, err := env.Open(t.Context(), env.Sibling)
	require.NoError(t, err)
	put(t, other, env.Sibling+"/secret", "x")
	put(t, s, env.Location+"/inside", "x")
	name := env.Location[strings.LastIndexByte(env.Location, '/')+1:]
	sibling := env.Sibling[strings.LastIndexByte(env.Sibling, '/')+1:]
	for _, uri := range []string{
		env.Sibling + "/secret", env.Sibling, env.Location + "0/secret",
		env.Location + "/../" + sibling + "/secret", env.Location + "/a/../../" + sibling + "/secret", env.Location + "/..", env.Location + "/./inside",
		env.Location + "/../" + name + "/inside", strings.ToUpper(env.Location) + "/inside",
		"s3://bucket/inside", "http://" + strings.TrimPrefix(env.Location, "file://") + "/inside", "file://otherhost" + strings.TrimPrefix(env.Location, "file://") + "/inside",
		"", "inside", "/", "file:///", "file://", env.Location + "/in\x00side", "/etc/passwd", "file:///etc/passwd",
	} {
		_, err := s.Rel(uri)
		require.Error(t, err, "%q", uri)
		_, err = s.Open(t.Context(), uri)
		require.ErrorIs(t, err, storage.ErrOutside, "open %q", uri)
		_, err = s.Stat(t.Context(), uri)
		require.ErrorIs(t, err, storage.ErrOutside, "stat %q", uri)
		_, err = s.PutIfAbsent(t.Context(), uri, strings.NewReader("x"))
		require.ErrorIs(t, err, storage.ErrOutside, "put %q", uri)
		_, err = s.ReplaceIf(t.Context(), uri, "", []byte("x"))
		require.ErrorIs(t, err, storage.ErrOutside, "replace %q", uri)
		require.ErrorIs(t, s.Remove(t.Context(), uri), storage.ErrOutside, "remove %q", uri)
		_, err = s.RemoveAll(t.Context(), uri)
		require.ErrorIs(t, err, storage.ErrOutside, "remove all %q", uri)
		require.ErrorIs(t, s.List(t.Context(), uri, func(storage.Info) error { return nil }), storage.ErrOutside, "list %q", uri)
	}
	// Encoded, it is a name like any other.
	put(t, s, env.Location+"/%2e%2e/"+sibling+"/secret", "mine")
	assert.Equal(t, "x", read(t, other, env.Sibling+"/secret"))
	_, err = s.RemoveAll(t.Context(), env.Location)
	require.ErrorIs(t, err, storage.ErrOutside, "not the whole table")
	rel, err := s.Rel(env.Location + "/")
	require.NoError(t, err)
	assert.Empty(t, rel)
}

func testList(t *testing.T, env Env, s storage.Store) {
	for _, n := range []string{"a/b/2", "a/b/1", "a/bc/3", "a/b2", "z", "a/b/c/4"} {
		put(t, s, env.Location+"/"+n, n)
	}
	assert.Equal(t, []string{"a/b/1", "a/b/2", "a/b/c/4"}, list(t, s, env.Location+"/a/b"))
	assert.Equal(t, []string{"a/b/1", "a/b/2", "a/b/c/4"}, list(t, s, env.Location+"/a/b/"))
	assert.Empty(t, list(t, s, env.Location+"/none"))
	assert.Empty(t, list(t, s, env.Location+"/z"), "a file is no prefix")
	assert.Len(t, list(t, s, env.Location), 6)
	stop := errors.New("enough")
	seen := 0
	err := s.List(t.Context(), env.Location, func(storage.Info) error { seen++; return stop })
	require.ErrorIs(t, err, stop)
	assert.Equal(t, 1, seen)
}

func testRemove(t *testing.T, env Env, s storage.Store) {
	for _, n := range []string{"a/b/1", "a/b/c/2", "a/bc/3", "a/d"} {
		put(t, s, env.Location+"/"+n, n)
	}
	n, err := s.RemoveAll(t.Context(), env.Location+"/a/b")
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []string{"a/bc/3", "a/d"}, list(t, s, env.Location))
	n, err = s.RemoveAll(t.Context(), env.Location+"/a/b")
	require.NoError(t, err)
	assert.Zero(t, n)
	n, err = s.RemoveAll(t.Context(), env.Location+"/a/d")
	require.NoError(t, err)
	assert.Zero(t, n, "a file is no prefix")
	require.NoError(t, s.Remove(t.Context(), env.Location+"/a/d"))
	require.ErrorIs(t, s.Remove(t.Context(), env.Location+"/a/d"), storage.ErrNotFound)
	require.ErrorIs(t, s.Remove(t.Context(), env.Location+"/a"), storage.ErrNotFound)
	assert.Equal(t, []string{"a/bc/3"}, list(t, s, env.Location))
	put(t, s, env.Location+"/a/b/1", "again")
}

func testReplace(t *testing.T, env Env, s storage.Store) {
	uri := env.Location + "/log/_last_checkpoint"
	first, err := s.ReplaceIf(t.Context(), uri, "", []byte("1"))
	require.NoError(t, err)
	_, err = s.ReplaceIf(t.Context(), uri, "", []byte("x"))
	require.ErrorIs(t, err, storage.ErrChanged)
	second, err := s.ReplaceIf(t.Context(), uri, first.ETag, []byte("2"))
	require.NoError(t, err)
	assert.NotEqual(t, first.ETag, second.ETag, "the same size within the clock's grain")
	_, err = s.ReplaceIf(t.Context(), uri, first.ETag, []byte("x"))
	require.ErrorIs(t, err, storage.ErrChanged)
	assert.Equal(t, "2", read(t, s, uri))
	assert.Equal(t, []string{"log/_last_checkpoint"}, list(t, s, env.Location))
	_, err = s.ReplaceIf(t.Context(), env.Location+"/none", first.ETag, []byte("x"))
	require.ErrorIs(t, err, storage.ErrNotFound)
}

func testMissing(t *testing.T, env Env, s storage.Store) {
	assert.Empty(t, list(t, s, env.Location), "before the location exists")
	for range 2 {
		for _, n := range []string{"/none", "/none/none", "/file/below"} {
			uri := env.Location + n
			_, err := s.Open(t.Context(), uri)
			require.ErrorIs(t, err, storage.ErrNotFound, uri)
			_, err = s.Stat(t.Context(), uri)
			require.ErrorIs(t, err, storage.ErrNotFound, uri)
			require.ErrorIs(t, s.Remove(t.Context(), uri), storage.ErrNotFound, uri)
			_, err = s.RemoveAll(t.Context(), uri)
			require.NoError(t, err)
		}
		if _, err := s.Stat(t.Context(), env.Location+"/file"); err != nil {
			put(t, s, env.Location+"/file", "x")
		}
	}
	put(t, s, env.Location+"/dir/f", "x")
	_, err := s.Open(t.Context(), env.Location+"/dir")
	require.ErrorIs(t, err, storage.ErrNotFound)
	_, err = s.Stat(t.Context(), env.Location+"/dir")
	require.ErrorIs(t, err, storage.ErrNotFound)
	if _, err = s.PutIfAbsent(t.Context(), env.Location+"/dir", strings.NewReader("x")); err == nil && env.Remote {
		assert.Equal(t, []string{"dir/f"}, list(t, s, env.Location+"/dir"), "the file is beside the directory, not in it")
		return
	}
	require.ErrorIs(t, err, storage.ErrExists)
}

// testOddNames covers the characters of X5 and what partition values put into paths.
func testOddNames(t *testing.T, env Env, s storage.Store) {
	names := []string{
		"a b", "a%20b", "a+b", "#", "?", "*", "[1]", "{b,c}", "'", `"`, `back\slash`, "k=v", "ü", "日本", "😎", "a:b", "a;b", "~", "-", "...", "%", "k=%2F",
	}
	if !env.Remote {
		names = append(names, "\n")
	}
	for _, n := range names {
		put(t, s, env.Location+"/"+n+"/"+n, n)
	}
	for _, n := range names {
		assert.Equal(t, n, read(t, s, env.Location+"/"+n+"/"+n))
		rel, err := s.Rel(env.Location + "/" + n + "/" + n)
		require.NoError(t, err)
		assert.Equal(t, n+"/"+n, rel)
	}
	assert.Len(t, list(t, s, env.Location), len(names))
}

func testCancelled(t *testing.T, env Env, s storage.Store) {
	put(t, s, env.Location+"/a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Open(ctx, env.Location+"/a")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.PutIfAbsent(ctx, env.Location+"/b", strings.NewReader("x"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.List(ctx, env.Location, func(storage.Info) error { return nil }), context.Canceled)
	assert.Equal(t, []string{"a"}, list(t, s, env.Location))
}
