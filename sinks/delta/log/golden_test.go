package log_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/localstore"
	"github.com/signet-io/signet/sinks/delta/log/schema"
)

const goldenDoc = "../../../docs/delta-golden-tables.md"

// unpackGolden gives the directory in which the tables of testdata/golden.tar.zst are, and their names.
func unpackGolden(t *testing.T) (root string, tables []string) {
	t.Helper()
	f, err := os.Open("testdata/golden.tar.zst")
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	require.NoError(t, err)
	defer z.Close()
	root = t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(h.Name))
		p := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(p, 0o755))
			if filepath.Base(p) == log.Dir && !strings.HasPrefix(h.Name, "expected/") {
				tables = append(tables, filepath.ToSlash(filepath.Dir(filepath.Clean(h.Name))))
			}
			continue
		}
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(p, data, 0o600))
	}
	slices.Sort(tables)
	return root, tables
}

// Each of the tables of others is loaded or refused as docs/delta-golden-tables.md says, where UPDATE_GOLDEN=1 writes what is seen.
func TestGoldenTables(t *testing.T) {
	root, tables := unpackGolden(t)
	require.Greater(t, len(tables), 150)
	var out strings.Builder
	fmt.Fprint(&out, `# Golden tables of Delta Lake

What becomes of the tables that delta-io/delta and delta-io/delta-kernel-rs test their readers with. A table is *read*, or *refused* with the features that it needs and
Signet does not have, or its log is *invalid*, which most of these are on purpose. *Written* says whether Signet would add to it. TestGoldenTables in
`+"`sinks/delta/log`"+` writes and checks this page; `+"`sinks/delta/log/testdata/README.md`"+` says where the tables are from.

| table | outcome | version | files | columns | written |
|---|---|---|---|---|---|
`)
	for _, name := range tables {
		fmt.Fprintf(&out, "| %s |\n", strings.ReplaceAll(goldenRow(t, root, name), root+"/", ""))
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(goldenDoc, []byte(out.String()), 0o600))
	}
	want, err := os.ReadFile(goldenDoc)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

func goldenRow(t *testing.T, root, name string) string {
	store := localstore.New(filepath.Join(root, name))
	s, err := log.Load(t.Context(), store, log.LoadOptions{})
	if err != nil {
		require.True(t, errors.Is(err, log.ErrCorrupt) || errors.Is(err, log.ErrNoTable), "%s: %v", name, err)
		return fmt.Sprintf("%s | invalid: %s | | | |", name, cell(err))
	}
	paths := map[string]bool{}
	for a := range s.Files() {
		paths[a.Path] = true
	}
	require.LessOrEqual(t, len(paths), s.NumFiles())
	if err := log.CheckRead(s.Protocol, s.Metadata); err != nil {
		require.ErrorIs(t, err, log.ErrUnsupported)
		require.Error(t, log.CheckWrite(s.Protocol, s.Metadata))
		return fmt.Sprintf("%s | refused: %s | %d | %d | | no", name, cell(err), s.Version, s.NumFiles())
	}
	columns, err := schema.Parse(s.Metadata.SchemaString)
	require.NoError(t, err, "%s: what the gate lets pass has a schema", name)
	written := "yes"
	if err := log.CheckWrite(s.Protocol, s.Metadata); err != nil {
		require.ErrorIs(t, err, log.ErrUnsupported)
		written = "no: " + cell(err)
	} else {
		goldenCheckpoint(t, store, s)
	}
	return fmt.Sprintf("%s | read | %d | %d | %d | %s", name, s.Version, s.NumFiles(), len(columns.Fields), written)
}

// goldenCheckpoint writes a checkpoint of another table's snapshot where there is none, and finds the same files through it alone.
func goldenCheckpoint(t *testing.T, store *localstore.Store, s *log.Snapshot) {
	t.Helper()
	copied := localstore.New(t.TempDir())
	require.NoError(t, log.WriteCheckpoint(t.Context(), copied, s))
	got, err := log.Load(t.Context(), copied, log.LoadOptions{})
	require.NoError(t, err)
	require.Equal(t, s.Version, got.Version)
	require.Equal(t, adds(s), adds(got))
	require.Equal(t, s.Protocol, got.Protocol)
}

// cell is the last part of an error's text, in the form of a cell: what a table needs, or what is wrong.
func cell(err error) string {
	text := err.Error()
	for _, prefix := range []string{"since it needs: ", log.ErrCorrupt.Error() + ": "} {
		if _, rest, ok := strings.Cut(text, prefix); ok {
			text = rest
		}
	}
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}

// The checkpoints of the versions that have one give the same files as the commits, where those go back to version 0.
func TestGoldenTables_CheckpointsAgreeWithCommits(t *testing.T) {
	root, tables := unpackGolden(t)
	compared := 0
	for _, name := range tables {
		if name == "kernel/parquet_row_group_skipping" {
			continue // made by hand: its checkpoint is that of another table
		}
		dir := filepath.Join(root, name)
		checkpoints, err := filepath.Glob(filepath.Join(dir, log.Dir, "*.checkpoint*"))
		require.NoError(t, err)
		if _, err := os.Stat(filepath.Join(dir, log.CommitName(0))); len(checkpoints) == 0 || err != nil {
			continue
		}
		with, err := log.Load(t.Context(), localstore.New(dir), log.LoadOptions{})
		if err != nil {
			continue // and TestGoldenTables says so
		}
		for _, c := range checkpoints {
			require.NoError(t, os.Remove(c))
		}
		without, err := log.Load(t.Context(), localstore.New(dir), log.LoadOptions{})
		if errors.Is(err, log.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
			continue // commits between have been cleaned up
		}
		require.NoError(t, err)
		require.Equal(t, paths(without), paths(with), name)
		require.Equal(t, without.Size(), with.Size(), name)
		require.Equal(t, without.Metadata.ID, with.Metadata.ID, name)
		require.Equal(t, without.Metadata.PartitionColumns, with.Metadata.PartitionColumns, name)
		require.Equal(t, without.Metadata.Configuration, with.Metadata.Configuration, name)
		require.Equal(t, without.Protocol, with.Protocol, name)
		for a := range with.Files() {
			b, ok := without.File(a.Path, a.DeletionVector.ID())
			require.True(t, ok)
			require.Equal(t, len(b.PartitionValues), len(a.PartitionValues), name)
			for k, v := range b.PartitionValues {
				require.Equal(t, v, a.PartitionValues[k], name)
			}
			if b.Stats != nil && a.Stats != nil {
				require.JSONEq(t, *b.Stats, *a.Stats, name)
			} else {
				require.Equal(t, b.Stats == nil, a.Stats == nil, name)
			}
		}
		compared++
	}
	require.Greater(t, compared, 15)
}
