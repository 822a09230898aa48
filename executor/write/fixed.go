package write

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// fixFile rewrites a file whose columns of a fixed length DuckDB wrote with lengths in front of every value, which readers of fixed(n)
// refuse. Values and levels are copied as they are, column by column: no other column changes, and no value is interpreted. Statistics
// stay; sizes are those of the new file.
func (p *plan) fixFile(ctx context.Context, f *written, target string) error {
	in, err := file.OpenParquetFile(f.path, false)
	if err != nil {
		return fmt.Errorf("rewrite %s: %w", f.path, err)
	}
	err = p.fixInto(ctx, in, target)
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	if err := os.Remove(f.path); err != nil {
		return err
	}
	md, size, err := openFooter(target)
	if err != nil {
		return err
	}
	f.path, f.size = target, size
	for n, l := range p.leaves {
		s := f.stats[l.key]
		if s == nil {
			continue
		}
		s.size = 0
		for g := range md.NumRowGroups() {
			chunk, err := md.RowGroup(g).ColumnChunk(n)
			if err != nil {
				return fmt.Errorf("footer of %s: %w", target, err)
			}
			s.size += chunk.TotalCompressedSize()
		}
	}
	return nil
}

func (p *plan) fixInto(ctx context.Context, in *file.Reader, target string) (err error) {
	old := in.MetaData().Schema
	if old.NumColumns() != len(p.leaves) {
		return fmt.Errorf("%s: %d columns in the file, %d planned", target, old.NumColumns(), len(p.leaves))
	}
	lengths := map[string]int{}
	for n, l := range p.leaves {
		if length := int(l.field.GetType().GetLength()); length > 0 {
			lengths[old.Column(n).Path()] = length
		}
	}
	root, err := fixNode(old.Root(), "", lengths)
	if err != nil {
		return fmt.Errorf("schema of %s: %w", target, err)
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(out.Close())) }()
	w, err := file.NewParquetWriterWithError(out, root.(*schema.GroupNode), file.WithWriterProps(p.writerProps()))
	if err != nil {
		return err
	}
	for g := range in.NumRowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		group, err := w.AppendRowGroupChecked()
		if err != nil {
			return fmt.Errorf("row group %d of %s: %w", g, target, err)
		}
		if err := p.fixGroup(in.RowGroup(g), group); err != nil {
			return fmt.Errorf("row group %d of %s: %w", g, target, err)
		}
	}
	return w.Close() // closes the file too
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (p *plan) writerProps() *parquet.WriterProperties {
	return parquet.NewWriterProperties(parquet.WithCompression(codecOf(p.spec)), parquet.WithCreatedBy("signet"), parquet.WithVersion(parquet.V2_LATEST))
}

// codecOf is the compression of files that DuckDB does not write.
func codecOf(spec *planv1.WriteSpec) compress.Compression {
	codec := map[string]compress.Compression{
		"uncompressed": compress.Codecs.Uncompressed, "snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip,
		"brotli": compress.Codecs.Brotli, "lz4": compress.Codecs.Lz4Raw, "lz4_raw": compress.Codecs.Lz4Raw,
	}
	if c, ok := codec[spec.GetFiles().GetCodec()]; ok {
		return c
	}
	return compress.Codecs.Zstd
}

// fixNode copies a schema, with the physical type of the columns in lengths (by path) changed.
func fixNode(n schema.Node, path string, lengths map[string]int) (schema.Node, error) {
	if prim, ok := n.(*schema.PrimitiveNode); ok {
		if length := lengths[path]; length > 0 {
			return schema.NewPrimitiveNode(n.Name(), n.RepetitionType(), parquet.Types.FixedLenByteArray, n.FieldID(), int32(length))
		}
		if lt := n.LogicalType(); lt != nil && lt.IsValid() && !lt.IsNone() {
			return schema.NewPrimitiveNodeLogical(n.Name(), n.RepetitionType(), lt, prim.PhysicalType(), prim.TypeLength(), n.FieldID())
		}
		return schema.NewPrimitiveNode(n.Name(), n.RepetitionType(), prim.PhysicalType(), n.FieldID(), int32(prim.TypeLength()))
	}
	group := n.(*schema.GroupNode)
	fields := make(schema.FieldList, group.NumFields())
	for i := range fields {
		child := group.Field(i)
		childPath := child.Name()
		if path != "" {
			childPath = path + "." + childPath
		}
		fixed, err := fixNode(child, childPath, lengths)
		if err != nil {
			return nil, err
		}
		fields[i] = fixed
	}
	if lt := n.LogicalType(); lt != nil && lt.IsValid() && !lt.IsNone() {
		return schema.NewGroupNodeLogical(n.Name(), n.RepetitionType(), fields, lt, n.FieldID())
	}
	return schema.NewGroupNode(n.Name(), n.RepetitionType(), fields, n.FieldID())
}

func (p *plan) fixGroup(in *file.RowGroupReader, out file.SerialRowGroupWriter) error {
	for n, l := range p.leaves {
		r, err := in.Column(n)
		if err != nil {
			return err
		}
		w, err := out.NextColumn()
		if err != nil {
			return err
		}
		if err := copyColumn(r, w, l); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("column %q: %w", l.path, err)
		}
	}
	return out.Close()
}

func copyColumn(r file.ColumnChunkReader, w file.ColumnChunkWriter, l leaf) error {
	switch r := r.(type) {
	case *file.BooleanColumnChunkReader:
		return copyValues(r.ReadBatch, w.(*file.BooleanColumnChunkWriter).WriteBatch)
	case *file.Int32ColumnChunkReader:
		return copyValues(r.ReadBatch, w.(*file.Int32ColumnChunkWriter).WriteBatch)
	case *file.Int64ColumnChunkReader:
		return copyValues(r.ReadBatch, w.(*file.Int64ColumnChunkWriter).WriteBatch)
	case *file.Float32ColumnChunkReader:
		return copyValues(r.ReadBatch, w.(*file.Float32ColumnChunkWriter).WriteBatch)
	case *file.Float64ColumnChunkReader:
		return copyValues(r.ReadBatch, w.(*file.Float64ColumnChunkWriter).WriteBatch)
	case *file.FixedLenByteArrayColumnChunkReader:
		return copyValues(r.ReadBatch, w.(*file.FixedLenByteArrayColumnChunkWriter).WriteBatch)
	case *file.ByteArrayColumnChunkReader:
		if fw, ok := w.(*file.FixedLenByteArrayColumnChunkWriter); ok {
			return copyValues(r.ReadBatch, fixedWriter(fw, l))
		}
		return copyValues(r.ReadBatch, w.(*file.ByteArrayColumnChunkWriter).WriteBatch)
	}
	return fmt.Errorf("column %q: cannot copy physical type %s", l.path, r.Type())
}

// fixedWriter refuses values of another length: padding would change them.
func fixedWriter(w *file.FixedLenByteArrayColumnChunkWriter, l leaf) func([]parquet.ByteArray, []int16, []int16) (int64, error) {
	want := int(l.field.GetType().GetLength())
	return func(values []parquet.ByteArray, def, rep []int16) (int64, error) {
		fixed := make([]parquet.FixedLenByteArray, len(values))
		for i, v := range values {
			if len(v) != want {
				return 0, &duckdb.UserError{
					Message: fmt.Sprintf("column %q: a value of %d bytes (%s) does not fit FIXED(%d)", l.path, len(v), shorten(fmt.Sprintf("%x", []byte(v)), 64), want),
					Hint:    "make it exactly as long in the SELECT",
				}
			}
			fixed[i] = parquet.FixedLenByteArray(v)
		}
		return w.WriteBatch(fixed, def, rep)
	}
}

// copyBatch is how many values are held at a time.
const copyBatch = 8192

func copyValues[T any](read func(int64, []T, []int16, []int16) (int64, int, error), write func([]T, []int16, []int16) (int64, error)) error {
	values, def, rep := make([]T, copyBatch), make([]int16, copyBatch), make([]int16, copyBatch)
	for {
		levels, n, err := read(copyBatch, values, def, rep)
		if err != nil {
			return err
		}
		if levels == 0 {
			return nil
		}
		if _, err := write(values[:n], def[:levels], rep[:levels]); err != nil {
			return err
		}
	}
}
