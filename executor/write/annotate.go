package write

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/signet-io/signet/executor/footer"
)

// bareIntegers takes the annotations INT_32 and INT_64 off a file's columns, which DuckDB writes and which say nothing that the physical types do not say.
// Iceberg's own writers leave them out, and Spark's vectorized reader refuses an INT_32 for a column that has been widened to long since. Only the footer is
// written anew.
func bareIntegers(f *written) (err error) {
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	meta, start, err := footer.Read(file, f.size)
	if err != nil {
		return fmt.Errorf("footer of %s: %w", f.path, err)
	}
	if !meta.BareIntegers() {
		return nil
	}
	end := meta.End()
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return err
	}
	if _, err := file.Write(end); err != nil {
		return err
	}
	f.size = start + int64(len(end))
	return file.Truncate(f.size)
}
