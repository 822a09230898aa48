package flightsql

import (
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/signet-io/signet/internal/flightrows"
)

// A row group ends when it has taken so many bytes or rows: it is what is in memory, and what tasks share the file by.
const (
	groupBytes = 32 << 20
	groupRows  = 1 << 20
)

// spool writes batches to a Parquet file.
type spool struct {
	file    *os.File
	columns []column
	schema  *arrow.Schema
	w       *pqarrow.FileWriter
	rows    int64

	bytes, inGroup int64 // of the row group that is open
}

func newSpool(f *os.File, columns []column) (*spool, error) {
	var fields []arrow.Field
	for _, c := range columns {
		if c.stored != nil {
			fields = append(fields, arrow.Field{Name: c.name, Type: c.stored, Nullable: true})
		}
	}
	if len(fields) == 0 {
		return nil, invalid("no column of the stream has a type: all are NULL")
	}
	s := &spool{file: f, columns: columns, schema: arrow.NewSchema(fields, nil)}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDictionaryDefault(false), parquet.WithStats(false),
		parquet.WithVersion(parquet.V2_LATEST), parquet.WithMaxRowGroupLength(groupRows))
	err := guarded("schema", func() (err error) {
		// Not closed by the writer: the file is synced first.
		s.w, err = pqarrow.NewFileWriter(s.schema, struct{ io.Writer }{f}, props, pqarrow.DefaultWriterProps())
		return err
	})
	if err != nil {
		return nil, invalid("the stream's columns cannot be taken: %v", err)
	}
	return s, nil
}

func (s *spool) write(rec arrow.RecordBatch) error {
	if rec.NumRows() == 0 {
		return nil
	}
	var cols []arrow.Array
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i, c := range s.columns {
		if c.stored == nil {
			continue
		}
		a, err := c.convert(rec.Column(i))
		if err != nil {
			return invalid("column %s, among rows %d to %d: %v", c.name, s.rows+1, s.rows+rec.NumRows(), err)
		}
		cols = append(cols, a)
	}
	if s.bytes >= groupBytes || s.inGroup >= groupRows {
		if err := s.w.NewBufferedRowGroupChecked(); err != nil {
			return err
		}
		s.bytes, s.inGroup = 0, 0
	}
	out := array.NewRecordBatch(s.schema, cols, rec.NumRows())
	defer out.Release()
	if err := s.w.WriteBuffered(out); err != nil {
		return err
	}
	s.rows += rec.NumRows()
	s.bytes += flightrows.Size(out)
	s.inGroup += rec.NumRows()
	return nil
}

// close ends the file and has it on disk before a job relies on it.
func (s *spool) close() error {
	if err := s.w.Close(); err != nil {
		return err
	}
	return s.file.Sync()
}
