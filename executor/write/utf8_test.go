package write_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// Bytes that are no UTF-8 do not become a string of the table.
func TestRun_InvalidUTF8(t *testing.T) {
	source := filepath.Join(t.TempDir(), "bad.parquet")
	out, err := os.Create(source)
	require.NoError(t, err)
	node, err := schema.NewPrimitiveNodeLogical("s", parquet.Repetitions.Optional, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1)
	require.NoError(t, err)
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{node}, -1)
	require.NoError(t, err)
	w := file.NewParquetWriter(out, root)
	group, err := w.AppendRowGroupChecked()
	require.NoError(t, err)
	col, err := group.NextColumn()
	require.NoError(t, err)
	_, err = col.(*file.ByteArrayColumnChunkWriter).WriteBatch([]parquet.ByteArray{[]byte("good"), []byte("b\xffd")}, []int16{1, 1}, nil)
	require.NoError(t, err)
	require.NoError(t, col.Close())
	require.NoError(t, group.Close())
	require.NoError(t, w.Close())

	pool := duckdb.NewPool(duckdb.Options{Ready: -1, Setup: transform.Register})
	defer pool.Close()
	scratch := t.TempDir()
	inst, err := pool.Open(t.Context(), duckdb.Access{ReadFiles: []string{source}, WriteDirs: []string{scratch}, Threads: 1})
	require.NoError(t, err)
	defer inst.Close()
	tb := newTable(t, field(1, "s", "string"))
	tb.task.Sql = "SELECT s FROM read_parquet(" + duckdb.Literal(source) + ")"
	_, err = write.Run(t.Context(), inst, tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
	refuse(t, err, "UTF8")
	require.NoDirExists(t, path(tb.write().GetPrefix()))
}
