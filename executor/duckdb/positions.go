package duckdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Field ids of a position delete file's columns (Iceberg specification, "Reserved Field IDs").
const (
	deletePathField = 2147483546
	deletePosField  = 2147483545
)

var errPositions = errors.New("not a position delete file")

// positionFile is a position delete file that is read for some of the data files that it names.
type positionFile struct {
	file *planv1.DeleteFile
	into map[string]*roaring64.Bitmap // by the data file's name in the table
}

// positionBatch is how many rows are decoded at a time.
const positionBatch = 16384

// read adds the positions. It goes through the file batch by batch, so that what it takes does not grow with the file.
func (p *positionFile) read(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil { // of a file that is not what it says
			err = fmt.Errorf("%s: %w: %v", p.file.GetPath(), errPositions, r)
		}
		if err != nil {
			err = deleteFileError(&planv1.PinnedFile{Path: p.anyDataFile()}, err)
		}
	}()
	in, err := file.OpenParquetFile(p.file.GetPath(), false)
	if err != nil {
		return fmt.Errorf("%s: %w", p.file.GetPath(), err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	path, pos, err := positionColumns(in)
	if err != nil {
		return fmt.Errorf("%s: %w", p.file.GetPath(), err)
	}
	for g := range in.NumRowGroups() {
		group := in.RowGroup(g)
		if !p.mayName(group.MetaData(), path) {
			continue
		}
		if err := p.readGroup(ctx, group, path, pos); err != nil {
			return fmt.Errorf("%s: row group %d: %w", p.file.GetPath(), g, err)
		}
	}
	return nil
}

func (p *positionFile) anyDataFile() string {
	for name := range p.into {
		return name
	}
	return ""
}

// positionColumns finds the two columns by id, or by name where there are no ids.
func positionColumns(in *file.Reader) (path, pos int, err error) {
	path, pos = -1, -1
	schema := in.MetaData().Schema
	for n := range schema.NumColumns() {
		c := schema.Column(n)
		switch id := c.SchemaNode().FieldID(); {
		case id == deletePathField, id < 0 && c.Path() == "file_path":
			path = n
		case id == deletePosField, id < 0 && c.Path() == "pos":
			pos = n
		}
	}
	if path < 0 || pos < 0 || schema.Column(path).PhysicalType() != parquet.Types.ByteArray || schema.Column(pos).PhysicalType() != parquet.Types.Int64 {
		return 0, 0, fmt.Errorf("%w: it has no columns file_path and pos of the right types", errPositions)
	}
	return path, pos, nil
}

// mayName reports whether a row group may name one of the data files, by its statistics.
func (p *positionFile) mayName(group *metadata.RowGroupMetaData, path int) bool {
	chunk, err := group.ColumnChunk(path)
	if err != nil {
		return true
	}
	st, err := chunk.Statistics()
	if err != nil || st == nil || !st.HasMinMax() {
		return true
	}
	s, ok := st.(*metadata.ByteArrayStatistics)
	if !ok {
		return true
	}
	for name := range p.into {
		if name >= string(s.Min()) && (name <= string(s.Max()) || len(name) >= s.Max().Len() && name[:s.Max().Len()] == string(s.Max())) {
			return true
		}
	}
	return false
}

func (p *positionFile) readGroup(ctx context.Context, group *file.RowGroupReader, path, pos int) error {
	pathChunk, err := group.Column(path)
	if err != nil {
		return err
	}
	posChunk, err := group.Column(pos)
	if err != nil {
		return err
	}
	paths, ok := pathChunk.(*file.ByteArrayColumnChunkReader)
	positions, isLong := posChunk.(*file.Int64ColumnChunkReader)
	if !ok || !isLong {
		return errPositions
	}
	names, numbers := make([]parquet.ByteArray, positionBatch), make([]int64, positionBatch)
	for left := group.NumRows(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(left, positionBatch)
		if err := fill(paths, names[:n]); err != nil {
			return err
		}
		if err := fill(positions, numbers[:n]); err != nil {
			return err
		}
		p.add(names[:n], numbers[:n])
		left -= n
	}
	return errors.Join(paths.Err(), positions.Err())
}

// chunkReader is the part of arrow-go's typed readers that fill needs.
type chunkReader[T any] interface {
	ReadBatch(batchSize int64, values []T, defLvls, repLvls []int16) (total int64, valuesRead int, err error)
}

// fill reads exactly as many values; NULL is none.
func fill[T any](r chunkReader[T], into []T) error {
	levels := make([]int16, len(into))
	for done := 0; done < len(into); {
		total, n, err := r.ReadBatch(int64(len(into)-done), into[done:], levels[done:], nil)
		if err != nil {
			return err
		}
		if total == 0 || int64(n) != total {
			return fmt.Errorf("%w: a path or a position is missing", errPositions)
		}
		done += n
	}
	return nil
}

func (p *positionFile) add(names []parquet.ByteArray, numbers []int64) {
	var last string
	var into *roaring64.Bitmap
	for n, name := range names {
		if n == 0 || string(name) != last {
			last = string(name)
			into = p.into[last]
		}
		if into != nil && numbers[n] >= 0 {
			into.Add(uint64(numbers[n]))
		}
	}
}
