package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// pluginDir is a copy of the plugin directory that a test may spoil.
func pluginDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(harness.Path("plugins"))))
	for _, name := range []string{"signet-sink-iceberg", "signet-sink-minimal"} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o700))
	}
	return dir
}

// A plugin whose bytes are not those that were locked does not run.
func TestPlugins_WrongChecksum(t *testing.T) {
	dir := pluginDir(t)
	f, err := os.OpenFile(filepath.Join(dir, "signet-sink-iceberg"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte{0})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	c := harness.New(t, harness.Options{Executors: 1, Config: "plugins: {dir: " + dir + "}\n"})
	c.SQL("CREATE SCHEMA lake.p")
	c.Fail(1, "CREATE TABLE lake.p.t (i BIGINT)", "checksum", "signet-sink-iceberg")
	require.False(t, c.Table("p", "t").Exists)
}

// Whatever stands in the sink's place, the statement fails with its name, the scheduler lives, and nothing is left.
func TestPlugins_ThatDoNotBehave(t *testing.T) {
	for name, script := range map[string]string{
		"crashes":             "exit 3",
		"hangs":               "exec sleep 1000",
		"floods stderr":       `while :; do echo '{"@message":1,"@level":"info"}' >&2; done`,
		"talks on stdout":     "echo hello; exec sleep 1000",
		"speaks another core": "echo '9|1|unix|/tmp/x|grpc|'; exec sleep 1000",
		"another protocol":    "echo '1|99|unix|/tmp/x|grpc|'; exec sleep 1000",
		"is no grpc":          "echo '1|1|unix|/tmp/x|netrpc|'; exec sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "signet-sink-iceberg"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
			c := harness.New(t, harness.Options{Executors: 1, Config: "  plugin_start: 2s\nplugins: {dir: " + dir + ", allow_unlocked: true}\n"})
			c.SQL("CREATE SCHEMA lake.p")
			c.Fail(1, "CREATE TABLE lake.p.t (i BIGINT)", "iceberg")
			require.Equal(t, "1", c.Value("SELECT 1"), "the scheduler and its executor work on")
			c.Stop()
		})
	}
}

// A foreign sink's tables live beside the catalog's.
func TestPlugins_ForeignSink(t *testing.T) {
	root := t.TempDir()
	c := harness.New(t, harness.Options{Executors: 1, CatalogConfig: "  files: {type: sink, sink: minimal, root: 'file://" + root + "'}\n"})
	c.SQL("CREATE TABLE files.a.t (i BIGINT, s VARCHAR)")
	require.Equal(t, "100", c.SQL("INSERT INTO files.a.t SELECT i, 'x' FROM range(100) r(i)")[0][0])
	require.Equal(t, "50", c.SQL("INSERT INTO files.a.t SELECT i, 'y' FROM range(50) r(i)")[0][0])
	require.Equal(t, [][]string{{"150", "50"}}, c.SQL("SELECT count(*), count(*) FILTER (WHERE s = 'y') FROM files.a.t"))
}

// What a sink leaves out is refused in the words of SQL, and every refusal names its table once.
func TestPlugins_WhatASinkCannotDo(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{CatalogConfig: "  files: {type: sink, sink: minimal, root: 'file://" + t.TempDir() + "'}\n"})
	c.SQL("CREATE TABLE files.a.t (i BIGINT); CREATE SCHEMA lake.p")
	require.NotContains(t, c.Fail(1, "DROP TABLE files.a.t", "the sink minimal of catalog files does not implement DROP TABLE").Err, "method")
	r := c.Fail(1, "CREATE TABLE lake.p.t (i BIGINT) WITH ('write.format.default' = 'orc')", "data files are written as parquet only")
	require.Equal(t, 1, strings.Count(r.Err, "lake.p.t:"), r.Err)
}

// A scheduler that does not start for want of a lock says how to make one.
func TestPlugins_MissingLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "signet.yaml")
	require.NoError(t, os.WriteFile(file, []byte("data_dir: "+dir+"\nlisten: 127.0.0.1:0\nplugins: {dir: "+dir+"}\ncatalogs: {lake: {type: sql, uri: 'sqlite://"+dir+"/c.db', warehouse: 'file://"+dir+"/w'}}\n"), 0o600))
	start := func() harness.Result { return harness.RunCommand(t, dir, nil, "scheduler", "--config", file) }
	for range 2 { // without a lock, and with one that does not name the sink
		r := start()
		require.Equal(t, 3, r.Code, r.Err)
		require.Contains(t, r.Err, "signet sink lock --dir "+dir)
		r = harness.RunCommand(t, dir, nil, "sink", "lock", "--dir", dir)
		require.Equal(t, 0, r.Code, r.Err)
	}
}
