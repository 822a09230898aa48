package log_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/localstore"
)

const first = `{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{}}}
`

func addLine(path string) string {
	return fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":10,"modificationTime":1,"dataChange":true}}`+"\n", path)
}

func removeLine(path string) string {
	return fmt.Sprintf(`{"remove":{"path":%q,"deletionTimestamp":1,"dataChange":true}}`+"\n", path)
}

// table is a table in a directory, written past the package.
type table struct {
	t *testing.T
	*localstore.Store
	dir string
}

func newTable(t *testing.T, commits ...string) *table {
	dir := t.TempDir()
	tab := &table{t, localstore.New(dir), dir}
	for v, c := range commits {
		tab.put(log.CommitName(int64(v)), c)
	}
	return tab
}

func (tab *table) put(name, content string) {
	tab.t.Helper()
	p := filepath.Join(tab.dir, filepath.FromSlash(name))
	require.NoError(tab.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(tab.t, os.WriteFile(p, []byte(content), 0o600))
}

func (tab *table) load(o log.LoadOptions) *log.Snapshot {
	tab.t.Helper()
	s, err := log.Load(context.Background(), tab, o)
	require.NoError(tab.t, err)
	return s
}

func paths(s *log.Snapshot) []string {
	out := []string{}
	for a := range s.Files() {
		name := a.Path
		if id := a.DeletionVector.ID(); id != "" {
			name += "|" + id
		}
		out = append(out, name)
	}
	return out
}

func version(v int64) log.LoadOptions { return log.LoadOptions{Version: &v} }

func TestLoad_Commits(t *testing.T) {
	tab := newTable(t, first+addLine("b")+addLine("a"), addLine("c")+removeLine("a"), removeLine("b")+addLine("a")+`{"txn":{"appId":"x","version":3}}`)
	s := tab.load(log.LoadOptions{})
	require.EqualValues(t, 2, s.Version)
	require.Equal(t, []string{"a", "c"}, paths(s))
	require.Equal(t, 2, s.NumFiles())
	require.EqualValues(t, 20, s.Size())
	_, ok := s.File("b", "")
	require.False(t, ok)
	txn, ok := s.Txn("x")
	require.True(t, ok)
	require.EqualValues(t, 3, txn.Version)
	require.Equal(t, []string{"a", "b"}, paths(tab.load(version(0))))
	require.Equal(t, []string{"b", "c"}, paths(tab.load(version(1))))
	info, err := os.Stat(filepath.Join(tab.dir, log.CommitName(2)))
	require.NoError(t, err)
	require.Equal(t, info.ModTime().UnixMilli(), s.Timestamp)

	_, err = log.Load(t.Context(), tab, version(3))
	require.ErrorIs(t, err, log.ErrNoVersion)
	require.ErrorContains(t, err, "the newest is 2")
	_, err = log.Load(t.Context(), tab, version(-1))
	require.ErrorIs(t, err, log.ErrNoVersion)
	_, err = log.Load(t.Context(), localstore.New(t.TempDir()), log.LoadOptions{})
	require.ErrorIs(t, err, log.ErrNoTable)
	now := time.Now()
	zero := int64(0)
	_, err = log.Load(t.Context(), tab, log.LoadOptions{Version: &zero, AsOf: &now})
	require.ErrorContains(t, err, "give one of them")
}

// X14: a hole in the commits is an error that names it.
func TestLoad_GapNamesTheVersion(t *testing.T) {
	commits := []string{first}
	for v := 1; v <= 12; v++ {
		commits = append(commits, addLine(fmt.Sprint(v)))
	}
	tab := newTable(t, commits...)
	require.NoError(t, os.Remove(filepath.Join(tab.dir, log.CommitName(11))))
	_, err := log.Load(t.Context(), tab, log.LoadOptions{})
	require.ErrorIs(t, err, log.ErrCorrupt)
	require.ErrorContains(t, err, "version 11 is missing")
	require.Len(t, paths(tab.load(version(10))), 10)
}

func TestLoad_WhatIsWrongIsNamed(t *testing.T) {
	for want, commits := range map[string][]string{
		"no protocol action":                    {strings.Split(first, "\n")[1]},
		"no metaData action":                    {strings.Split(first, "\n")[0]},
		"00001.json: corrupt Delta log: line 2": {first, addLine("a") + `{"add":`},
		`both adds and removes "a"`:             {first, addLine("a") + removeLine("a")},
	} {
		_, err := log.Load(t.Context(), newTable(t, commits...), log.LoadOptions{})
		require.ErrorIs(t, err, log.ErrCorrupt)
		require.ErrorContains(t, err, want)
	}
}

func TestAdvance_ReadsWhatIsNew(t *testing.T) {
	tab := newTable(t, first+addLine("a"), addLine("b"))
	s := tab.load(log.LoadOptions{})
	same, commits, err := s.Advance(t.Context(), tab)
	require.NoError(t, err)
	require.Same(t, s, same)
	require.Empty(t, commits)
	for v := int64(0); v < 2; v++ { // only what is new is read
		require.NoError(t, os.Remove(filepath.Join(tab.dir, log.CommitName(v))))
	}
	tab.put(log.CommitName(2), removeLine("a"))
	tab.put(log.CommitName(3), addLine("c")+`{"commitInfo":{"timestamp":77}}`)
	next, commits, err := s.Advance(t.Context(), tab)
	require.NoError(t, err)
	require.EqualValues(t, 3, next.Version)
	require.EqualValues(t, 77, next.Timestamp)
	require.Len(t, commits, 2)
	require.EqualValues(t, 2, commits[0].Version)
	require.Equal(t, []string{"b", "c"}, paths(next))
	require.Equal(t, []string{"a", "b"}, paths(s), "the old snapshot is as it was")
	_, err = s.With(log.Commit{Version: 4})
	require.ErrorContains(t, err, "does not follow")
	_, err = log.ReadCommit(t.Context(), tab, 9)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
