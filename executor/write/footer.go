package write

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// readFooter checks a file against what DuckDB said about it, and takes the row groups' offsets.
func readFooter(f *written) error {
	md, size, err := openFooter(f.path)
	if err != nil {
		return err
	}
	if size != f.size {
		return fmt.Errorf("%s has %d bytes; DuckDB wrote %d", f.path, size, f.size)
	}
	if md.NumRows != f.rows {
		return fmt.Errorf("the footer of %s counts %d rows; DuckDB wrote %d", f.path, md.NumRows, f.rows)
	}
	f.offsets = f.offsets[:0]
	for i := range md.NumRowGroups() {
		col, err := md.RowGroup(i).ColumnChunk(0)
		if err != nil {
			return fmt.Errorf("footer of %s: %w", f.path, err)
		}
		off := col.DataPageOffset()
		if col.HasDictionaryPage() && col.DictionaryPageOffset() > 0 {
			off = min(off, col.DictionaryPageOffset())
		}
		f.offsets = append(f.offsets, off)
	}
	return nil
}

func openFooter(path string) (*metadata.FileMetaData, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	var tail [8]byte
	if _, err := file.ReadAt(tail[:], st.Size()-8); err != nil {
		return nil, 0, fmt.Errorf("footer of %s: %w", path, err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	if string(tail[4:]) != "PAR1" || n > st.Size()-12 {
		return nil, 0, fmt.Errorf("%s does not end like a Parquet file", path)
	}
	buf := make([]byte, n)
	if _, err := file.ReadAt(buf, st.Size()-8-n); err != nil {
		return nil, 0, fmt.Errorf("footer of %s: %w", path, err)
	}
	md, err := metadata.NewFileMetaData(buf, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("footer of %s: %w", path, err)
	}
	return md, st.Size(), nil
}
