// Package logtest holds implementations of log.Store to its contract.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log"
)

// Run runs the suite. open gives a new store of one empty table at each call within a test, as another process would open it; table makes a new table for a test.
func Run(t *testing.T, table func(t *testing.T) (open func() log.Store)) {
	for name, test := range map[string]func(*testing.T, func() log.Store){
		"missing objects": testMissing, "an object appears once": testOnce, "a failed body leaves nothing": testFailedBody, "reads at places": testReadAt,
		"listings": testList, "names": testNames, "the hint is compared": testHint, "racing hints": testRacingHints, "racing writers": testRacingWriters,
		"cancelled calls": testCancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, table(t)) })
	}
}

func put(t *testing.T, s log.Store, name, body string) {
	t.Helper()
	require.NoError(t, s.PutIfAbsent(t.Context(), name, strings.NewReader(body)))
}

func get(t *testing.T, s log.Store, name string) string {
	t.Helper()
	data, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	return string(data)
}

func testMissing(t *testing.T, open func() log.Store) {
	s := open()
	_, err := s.Get(t.Context(), log.CommitName(0))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = s.Open(t.Context(), log.CommitName(0))
	require.ErrorIs(t, err, fs.ErrNotExist)
	got, err := s.List(t.Context(), log.Dir, "")
	require.NoError(t, err)
	require.Empty(t, got, "a missing directory is empty")
}

func testOnce(t *testing.T, open func() log.Store) {
	a, b := open(), open()
	put(t, a, log.CommitName(0), "first")
	err := b.PutIfAbsent(t.Context(), log.CommitName(0), strings.NewReader("second"))
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, "first", get(t, b, log.CommitName(0)))
	put(t, b, "empty", "")
	require.ErrorIs(t, a.PutIfAbsent(t.Context(), "empty", strings.NewReader("x")), fs.ErrExist, "an empty object exists")
	require.Empty(t, get(t, a, "empty"))
}

type failingBody struct{ n int }

func (f *failingBody) Read(p []byte) (int, error) {
	if f.n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	f.n--
	return copy(p, "xxxx"), nil
}

func testFailedBody(t *testing.T, open func() log.Store) {
	s := open()
	err := s.PutIfAbsent(t.Context(), log.CommitName(0), &failingBody{3})
	require.Error(t, err)
	require.NotErrorIs(t, err, fs.ErrExist)
	_, err = s.Get(t.Context(), log.CommitName(0))
	require.ErrorIs(t, err, fs.ErrNotExist)
	got, err := s.List(t.Context(), log.Dir, "")
	require.NoError(t, err)
	require.Empty(t, got)
	put(t, s, log.CommitName(0), "whole")
}

func testReadAt(t *testing.T, open func() log.Store) {
	s := open()
	body := strings.Repeat("0123456789", 100_000)
	put(t, s, "data/x.parquet", body)
	o, err := s.Open(t.Context(), "data/x.parquet")
	require.NoError(t, err)
	defer o.Close()
	require.EqualValues(t, len(body), o.Size())
	p := make([]byte, 15)
	for _, off := range []int64{0, 7, 999_985, 500_003} {
		n, err := o.ReadAt(p, off)
		require.True(t, err == nil || errors.Is(err, io.EOF))
		require.Equal(t, body[off:off+15], string(p[:n]))
	}
	n, err := o.ReadAt(p, 999_990)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "0123456789", string(p[:n]))
}

func testList(t *testing.T, open func() log.Store) {
	s := open()
	for _, v := range []int64{3, 0, 12, 1, 2} {
		put(t, s, log.CommitName(v), strings.Repeat("x", int(v)))
	}
	put(t, s, log.Dir+"/_sidecars/a.parquet", "not directly in it")
	put(t, s, "_delta_log.json", "beside it")
	names := func(dir, from string) (out []string) {
		infos, err := s.List(t.Context(), dir, from)
		require.NoError(t, err)
		for _, i := range infos {
			out = append(out, i.Name)
			require.False(t, i.Modified.IsZero())
		}
		return out
	}
	all := []string{log.CommitName(0), log.CommitName(1), log.CommitName(2), log.CommitName(3), log.CommitName(12)}
	require.Equal(t, all, names(log.Dir, ""))
	require.Equal(t, all[2:], names(log.Dir, log.CommitName(2)), "from is in it")
	require.Equal(t, all[4:], names(log.Dir, log.Dir+"/00000000000000000004"))
	require.Empty(t, names(log.Dir, log.CommitName(13)))
	require.Equal(t, []string{log.Dir + "/_sidecars/a.parquet"}, names(log.Dir+"/_sidecars", ""))
	infos, err := s.List(t.Context(), log.Dir, log.CommitName(12))
	require.NoError(t, err)
	require.EqualValues(t, 12, infos[0].Size)

	// More than stores give in one answer.
	for v := int64(13); v < 1200; v++ {
		put(t, s, log.CommitName(v), "x")
	}
	require.Len(t, names(log.Dir, ""), 4+1188)
	require.Len(t, names(log.Dir, log.CommitName(1000)), 200)
}

func testNames(t *testing.T, open func() log.Store) {
	s := open()
	for _, name := range []string{"a b/c%20d", "p=x%3Ay/ä+&=.parquet", "p=#?/x", "deep/er/and/deeper/still"} {
		put(t, s, name, name)
		require.Equal(t, name, get(t, s, name))
		require.ErrorIs(t, s.PutIfAbsent(t.Context(), name, strings.NewReader("x")), fs.ErrExist)
	}
	for _, name := range []string{"", "/etc/x", "../x", "a/../../x"} {
		require.Error(t, s.PutIfAbsent(t.Context(), name, strings.NewReader("x")), "%q leads out of the table", name)
	}
}

func testHint(t *testing.T, open func() log.Store) {
	a, b := open(), open()
	require.ErrorIs(t, a.ReplaceHint(t.Context(), []byte("x"), []byte("1")), fs.ErrExist, "there is none to replace")
	require.NoError(t, a.ReplaceHint(t.Context(), nil, []byte("1")))
	require.ErrorIs(t, b.ReplaceHint(t.Context(), nil, []byte("2")), fs.ErrExist, "there is one")
	require.ErrorIs(t, b.ReplaceHint(t.Context(), []byte("0"), []byte("2")), fs.ErrExist)
	require.Equal(t, "1", get(t, b, log.Hint))
	require.NoError(t, b.ReplaceHint(t.Context(), []byte("1"), []byte("22")))
	require.Equal(t, "22", get(t, a, log.Hint))
}

// testRacingHints counts up by compare and replace: nobody's step may be lost.
func testRacingHints(t *testing.T, open func() log.Store) {
	const writers, steps = 4, 10
	require.NoError(t, open().ReplaceHint(t.Context(), nil, []byte("0")))
	race(writers, func(int) {
		s := open()
		for done := 0; done < steps; {
			was, err := s.Get(t.Context(), log.Hint)
			if !assert.NoError(t, err) {
				return
			}
			var n int
			_, err = fmt.Sscan(string(was), &n)
			assert.NoError(t, err)
			switch err = s.ReplaceHint(t.Context(), was, fmt.Append(nil, n+1)); {
			case err == nil:
				done++
			case !errors.Is(err, fs.ErrExist):
				assert.NoError(t, err)
				return
			}
		}
	})
	require.Equal(t, fmt.Sprint(writers*steps), get(t, open(), log.Hint))
}

// testRacingWriters has eight writers commit at the same time: each version has one winner, whose bytes it holds, and there is no gap.
func testRacingWriters(t *testing.T, open func() log.Store) {
	const writers, commits = 8, 20
	won := make([]map[int64]string, writers)
	race(writers, func(w int) {
		s, next := open(), int64(0)
		won[w] = map[int64]string{}
		for len(won[w]) < commits {
			body := fmt.Sprintf("writer %d, try %d: %s", w, next, strings.Repeat("x", 1000))
			switch err := s.PutIfAbsent(t.Context(), log.CommitName(next), bytes.NewReader([]byte(body))); {
			case err == nil:
				won[w][next] = body
			case !errors.Is(err, fs.ErrExist):
				assert.NoError(t, err)
				return
			}
			next++
		}
	})
	s := open()
	winners := map[int64]string{}
	for _, versions := range won {
		for v, body := range versions {
			require.Empty(t, winners[v], "version %d has one winner", v)
			winners[v] = body
		}
	}
	infos, err := s.List(t.Context(), log.Dir, "")
	require.NoError(t, err)
	require.Len(t, infos, writers*commits)
	for v := range int64(writers * commits) {
		require.Equal(t, log.CommitName(v), infos[v].Name)
		require.Equal(t, winners[v], get(t, s, log.CommitName(v)))
	}
}

func race(writers int, run func(w int)) {
	start := make(chan struct{})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			<-start
			run(w)
		})
	}
	close(start)
	group.Wait()
}

func testCancelled(t *testing.T, open func() log.Store) {
	s := open()
	put(t, s, "x", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, "x")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, fs.ErrNotExist)
	_, err = s.List(ctx, log.Dir, "")
	require.ErrorIs(t, err, context.Canceled)
	err = s.PutIfAbsent(ctx, "y", strings.NewReader("y"))
	require.ErrorIs(t, err, context.Canceled)
}
