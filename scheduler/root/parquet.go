package root

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// WriteParquet writes the rows of an input to a new file and returns their number.
func WriteParquet(ctx context.Context, in Input, name string) (rows int64, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithMaxRowGroupLength(122_880))
	w, err := pqarrow.NewFileWriter(in.Schema(), unclosed{f}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return 0, fmt.Errorf("write Parquet: %w", err)
	}
	err = in.Read(ctx, func(_ int, b arrow.RecordBatch) error {
		rows += b.NumRows()
		return w.WriteBuffered(b)
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return 0, err
	}
	return rows, f.Sync()
}

// unclosed keeps the file open after the writer has closed it, to be synced.
type unclosed struct{ f *os.File }

func (u unclosed) Write(p []byte) (int, error) { return u.f.Write(p) }
