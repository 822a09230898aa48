package footer

import (
	"fmt"
	"io"
)

// Page is what the header of a page says.
type Page struct {
	Type       PageType
	Header     int64 // bytes of the header itself
	Compressed int64 // bytes of the page behind its header
	Values     int64 // data pages
	Encoding   Encoding
	HasCRC     bool
	CRC        int32
}

// headBytes is how much is read for a header. Statistics in it may be longer; then more is read.
const (
	headBytes    = 256
	maxHeadBytes = 16 << 20
)

// ReadPage reads the header of the page at off, which lies within a chunk that ends at end.
func ReadPage(f io.ReaderAt, off, end int64) (*Page, error) {
	for n := int64(headBytes); ; n *= 16 {
		n = min(n, end-off)
		if n <= 0 {
			return nil, fmt.Errorf("%w: a page at byte %d, behind its chunk", errDamaged, off)
		}
		buf := make([]byte, n)
		if _, err := f.ReadAt(buf, off); err != nil {
			return nil, err
		}
		p, err := parsePage(buf)
		if err == nil {
			return p, nil
		}
		if n == end-off || n >= maxHeadBytes {
			return nil, fmt.Errorf("page at byte %d: %w", off, err)
		}
	}
}

func parsePage(data []byte) (*Page, error) {
	r := &reader{data: data}
	p := &Page{Type: -1, Encoding: -1}
	body := func(values, encoding int16) {
		r.fields(func(id int16, typ byte) bool {
			switch {
			case id == values && typ == typeI32:
				p.Values = int64(r.i32())
			case id == encoding && typ == typeI32:
				p.Encoding = Encoding(r.i32())
			default:
				return false
			}
			return true
		})
	}
	r.fields(func(id int16, typ byte) bool {
		switch {
		case id == 1 && typ == typeI32:
			p.Type = PageType(r.i32())
		case id == 3 && typ == typeI32:
			p.Compressed = int64(r.i32())
		case id == 4 && typ == typeI32:
			p.CRC, p.HasCRC = r.i32(), true
		case id == 5 && typ == typeStruct:
			body(1, 2)
		case id == 7 && typ == typeStruct:
			body(1, 2)
		case id == 8 && typ == typeStruct:
			body(1, 4)
		default:
			return false
		}
		return true
	})
	if r.err == nil && (p.Type < DataPage || p.Type > DataPageV2 || p.Compressed < 0 || p.Values < 0) {
		r.fail("a page of type %d, %d bytes and %d values", p.Type, p.Compressed, p.Values)
	}
	p.Header = int64(r.pos)
	return p, r.err
}

// Bytes encodes the header of a data page of version 1 whose levels are run-length encoded. uncompressed is the page's size before compression.
func (p *Page) Bytes(uncompressed int) []byte {
	w := &writer{}
	w.begin()
	w.i32(1, int32(p.Type))
	w.i32(2, int32(uncompressed)) //nolint:gosec // pages are far smaller
	w.i32(3, int32(p.Compressed)) //nolint:gosec // pages are far smaller
	w.structure(5, func() {
		w.i32(1, int32(p.Values)) //nolint:gosec // pages are far smaller
		w.i32(2, int32(p.Encoding))
		w.i32(3, int32(RLE))
		w.i32(4, int32(RLE))
	})
	w.end()
	return w.out
}
