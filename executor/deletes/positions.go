package deletes

import (
	"errors"
	"fmt"
	"os"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Field ids of a position delete file's columns (Iceberg specification, "Reserved Field IDs").
const (
	pathField     = 2147483546
	positionField = 2147483545
)

const (
	batchRows = 16384
	groupRows = 1 << 20
)

// WritePositions writes the position delete file of one data file, which must not exist, and answers its size in bytes.
func WritePositions(path, dataFile string, positions *roaring64.Bitmap, codec compress.Compression) (size int64, err error) {
	root, err := positionSchema()
	if err != nil {
		return 0, err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := out.Close(); !errors.Is(cerr, os.ErrClosed) {
			err = errors.Join(err, cerr)
		}
	}()
	props := parquet.NewWriterProperties(
		parquet.WithCompression(codec), parquet.WithCreatedBy("signet"), parquet.WithVersion(parquet.V2_LATEST), parquet.WithAllocator(memory.DefaultAllocator),
		parquet.WithDictionaryFor("pos", false), // every one is there once
	)
	kv := metadata.NewKeyValueMetadata()
	if err := kv.Append("delete-type", "position"); err != nil { // as Iceberg's own writers say it
		return 0, err
	}
	w, err := file.NewParquetWriterWithError(out, root, file.WithWriterProps(props), file.WithWriteMetadata(kv))
	if err != nil {
		return 0, err
	}
	it := positions.ManyIterator()
	for left := positions.GetCardinality(); left > 0; {
		n := min(left, groupRows)
		if err := writeGroup(w, it, dataFile, int64(n)); err != nil { //nolint:gosec // at most groupRows
			return 0, err
		}
		left -= n
	}
	if err := w.Close(); err != nil { // it closes the file too
		return 0, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func positionSchema() (*schema.GroupNode, error) {
	path, err := schema.NewPrimitiveNodeLogical("file_path", parquet.Repetitions.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, pathField)
	if err != nil {
		return nil, err
	}
	pos, err := schema.NewPrimitiveNode("pos", parquet.Repetitions.Required, parquet.Types.Int64, positionField, -1)
	if err != nil {
		return nil, err
	}
	return schema.NewGroupNode("table", parquet.Repetitions.Required, schema.FieldList{path, pos}, -1)
}

// writeGroup writes the next rows as a row group.
func writeGroup(w *file.Writer, it roaring64.ManyIntIterable64, dataFile string, rows int64) error {
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	col, err := group.NextColumn()
	if err != nil {
		return err
	}
	paths, ok := col.(*file.ByteArrayColumnChunkWriter)
	if !ok {
		return fmt.Errorf("file_path is written as %T", col)
	}
	names := make([]parquet.ByteArray, min(rows, batchRows))
	for i := range names {
		names[i] = parquet.ByteArray(dataFile)
	}
	for left := rows; left > 0; left -= batchRows {
		if _, err := paths.WriteBatch(names[:min(left, batchRows)], nil, nil); err != nil {
			return err
		}
	}
	if err := paths.Close(); err != nil {
		return err
	}
	if col, err = group.NextColumn(); err != nil {
		return err
	}
	longs, ok := col.(*file.Int64ColumnChunkWriter)
	if !ok {
		return fmt.Errorf("pos is written as %T", col)
	}
	if err := writeLongs(longs, it, rows); err != nil {
		return err
	}
	return errors.Join(longs.Close(), group.Close())
}

func writeLongs(w *file.Int64ColumnChunkWriter, it roaring64.ManyIntIterable64, rows int64) error {
	numbers, longs := make([]uint64, batchRows), make([]int64, batchRows)
	for rows > 0 {
		n := it.NextMany(numbers[:min(rows, batchRows)])
		if n == 0 {
			return fmt.Errorf("%d positions are missing", rows)
		}
		for i, v := range numbers[:n] {
			longs[i] = int64(v) //nolint:gosec // the position of a row
		}
		if _, err := w.WriteBatch(longs[:n], nil, nil); err != nil {
			return err
		}
		rows -= int64(n)
	}
	return nil
}
