package duckdb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// write runs COPY statements in an unlocked instance; $DIR is dir.
func write(t testing.TB, dir string, stmts ...string) {
	t.Helper()
	inst, err := open(context.Background(), Options{})
	require.NoError(t, err)
	defer inst.Close()
	for _, s := range stmts {
		_, err := inst.Conn().ExecContext(context.Background(), strings.ReplaceAll(s, "$DIR", strings.ReplaceAll(dir, "'", "''")))
		require.NoError(t, err, s)
	}
}

func pin(t testing.TB, path string) *planv1.PinnedFile {
	t.Helper()
	st, err := os.Stat(path)
	require.NoError(t, err)
	return &planv1.PinnedFile{Path: path, SizeBytes: st.Size(), MtimeNanos: st.ModTime().UnixNano()}
}

func pins(t testing.TB, paths ...string) []*planv1.PinnedFile {
	t.Helper()
	var out []*planv1.PinnedFile
	for _, p := range paths {
		out = append(out, pin(t, p))
	}
	return out
}

func files(view, function string, f []*planv1.PinnedFile) *planv1.Source {
	return &planv1.Source{View: view, Kind: &planv1.Source_File{File: &planv1.FileSource{Function: function, Files: f}}}
}

func table(view, name string, schema []*planv1.Field, f []*planv1.PinnedFile) *planv1.Source {
	return &planv1.Source{View: view, Kind: &planv1.Source_Table{Table: &planv1.TableScan{Schema: &planv1.Schema{Fields: schema}, Files: f, Table: name}}}
}

// locked opens an instance that may read the sources' files.
func locked(t testing.TB, sources ...*planv1.Source) *Instance {
	t.Helper()
	inst, err := open(context.Background(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inst.Close()) })
	require.NoError(t, inst.lock(context.Background(), Access{ReadFiles: ReadFiles(sources), TempDir: t.TempDir(), MemoryBytes: 1 << 30, KeepOrder: true}))
	return inst
}

// bind opens an instance with the sources bound.
func bind(t testing.TB, sources ...*planv1.Source) *Instance {
	t.Helper()
	inst := locked(t, sources...)
	require.NoError(t, inst.BindSources(context.Background(), sources))
	return inst
}

// text runs a query and answers its rows as text, columns joined by |.
func text(t testing.TB, inst *Instance, query string) []string {
	t.Helper()
	rows, err := inst.Conn().QueryContext(context.Background(), "SELECT CAST(signet_row AS VARCHAR) FROM ("+query+") signet_row")
	require.NoError(t, err, query)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		out = append(out, s)
	}
	require.NoError(t, rows.Err())
	return out
}

func mustWriteFile(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}
