package scheduler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func newCache(t *testing.T, c *caches, principal, name string, rows int64) *cached {
	t.Helper()
	dir := filepath.Join(c.dir, "new-"+name)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	columns, err := proto.Marshal(&planv1.FileSource{Columns: []*planv1.Column{{Name: "n", EngineType: "BIGINT", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}}}})
	require.NoError(t, err)
	rec := &cached{Principal: principal, Name: name, Job: "j", Rows: rows, Columns: columns}
	if rows > 0 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, cacheFile), []byte("rows"), 0o600))
		rec.Files = []string{cacheFile}
	}
	require.NoError(t, c.put(rec, dir))
	return rec
}

func TestCaches_BelongToAPrincipalAndSurviveARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, err := openCaches(dir)
	require.NoError(t, err)
	newCache(t, c, "ann", "Daily", 3)
	newCache(t, c, "bob", "daily", 0)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "new-interrupted"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new-interrupted", cacheFile), nil, 0o600))

	c, err = openCaches(dir)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, "new-interrupted"), "what was not finished goes")
	require.EqualValues(t, 3, c.find("ann", "dAILY").Rows)
	require.EqualValues(t, 0, c.find("bob", "daily").Rows)
	require.Nil(t, c.find("eve", "daily"))

	src := &planv1.Source{}
	require.NoError(t, c.find("ann", "daily").bind(src))
	require.Len(t, src.GetFile().GetFiles(), 1)
	require.EqualValues(t, 4, src.GetFile().GetFiles()[0].GetSizeBytes())
	src = &planv1.Source{}
	require.NoError(t, c.find("bob", "daily").bind(src))
	require.Empty(t, src.GetTable().GetFiles(), "no rows are an empty table")
	require.Equal(t, "n", src.GetTable().GetSchema().GetFields()[0].GetName())

	had, err := c.drop("ann", "DAILY")
	require.NoError(t, err)
	require.True(t, had)
	had, err = c.drop("ann", "daily")
	require.NoError(t, err)
	require.False(t, had)
	c, err = openCaches(dir)
	require.NoError(t, err)
	require.Nil(t, c.find("ann", "daily"))
	require.NotNil(t, c.find("bob", "daily"))
}

func TestCaches_SecondOneOfANameIsRefused(t *testing.T) {
	c, err := openCaches(filepath.Join(t.TempDir(), "cache"))
	require.NoError(t, err)
	newCache(t, c, "ann", "x", 1)
	dir := filepath.Join(c.dir, "new-2")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.ErrorContains(t, c.put(&cached{Principal: "ann", Name: "X"}, dir), "there is a cached table")
}

// The rows of a pipelined query are given as they come, each once, also to one who comes late.
func TestOutput_FollowGivesRowsAsTheyCome(t *testing.T) {
	o := &output{dir: filepath.Join(t.TempDir(), "out"), pipelined: true}
	got, ended := make(chan string, 8), make(chan error, 1)
	go func() {
		ended <- o.follow(nil, func(b []byte) error { got <- string(b); return nil })
	}()
	sp, err := o.begin("a")
	require.NoError(t, err)
	_, err = sp.Write([]byte("one"))
	require.NoError(t, err)
	require.Equal(t, "one", <-got)
	_, err = sp.Write([]byte("two"))
	require.NoError(t, err)
	require.Equal(t, "two", <-got)
	other, err := o.begin("b")
	require.NoError(t, err)
	require.False(t, other.complete(), "rows of another attempt cannot follow what was given (S73)")
	other.drop()
	require.True(t, sp.complete())
	require.NoError(t, <-ended)
	var late string
	require.NoError(t, o.follow(nil, func(b []byte) error { late += string(b); return nil }))
	require.Equal(t, "onetwo", late)
	o.free()
	require.ErrorIs(t, o.follow(nil, nil), errOutputGone)
}

// Rows that were handed out of an attempt that failed cannot be taken back: the job cannot succeed with others (S73).
func TestOutput_FailedAttemptSpoilsWhatWasGiven_S73(t *testing.T) {
	o := &output{dir: filepath.Join(t.TempDir(), "out"), pipelined: true}
	sp, err := o.begin("a")
	require.NoError(t, err)
	sp.drop()
	require.False(t, o.isSpoiled(), "nothing was given")
	sp, err = o.begin("b")
	require.NoError(t, err)
	_, err = sp.Write([]byte("x"))
	require.NoError(t, err)
	got, ended := make(chan string, 8), make(chan error, 1)
	go func() {
		ended <- o.follow(nil, func(b []byte) error { got <- string(b); return nil })
	}()
	<-got
	sp.drop()
	require.ErrorIs(t, <-ended, errSpoiled)
	require.True(t, o.isSpoiled())
	j := &job{output: o}
	require.ErrorContains(t, j.spoiled(), "handed out already")
	next, err := o.begin("c")
	require.NoError(t, err)
	require.False(t, next.complete())
	next.drop()
}

func TestOutput_FollowEndsWithTheJob(t *testing.T) {
	o := &output{dir: filepath.Join(t.TempDir(), "out"), pipelined: true}
	done := make(chan struct{})
	close(done)
	require.ErrorIs(t, o.follow(done, nil), errOutputGone)
}
