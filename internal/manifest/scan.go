package manifest

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// counts is what a scan of raw bytes finds.
type counts struct {
	files, rows, bytes, elements int64
	replaced, deleted, updated   int64
}

// Numbers of the fields that a scan reads; scan_test.go compares them with the descriptors.
const (
	fieldFiles       = 1 // DataFiles.files
	fieldReplaced    = 2 // DataFiles.replaced
	fieldRecordCount = 3 // DataFile.record_count
	fieldSizeBytes   = 4 // DataFile.size_bytes
	fieldPartition   = 5
	fieldColumns     = 6
	fieldOffsets     = 7
	fieldContent     = 9
	fieldContentSize = 12
	fieldCarried     = 13
	fieldFileUpdated = 14
	fieldMerged      = 16
	// Of ReplacedFile: record_count, deleted_rows, updated_rows.
	fieldReplacedRows = 2
	fieldDeleted      = 3
	fieldUpdated      = 4
)

// scanFiles walks a serialised DataFiles without decoding it. It stops at the first limit passed, so that a few
// bytes cannot stand for millions of objects.
func scanFiles(b []byte, l *Limits) (c counts, err error) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return c, fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		if num != fieldFiles && num != fieldReplaced {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return c, fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
			}
			b = b[n:]
			continue
		}
		if typ != protowire.BytesType {
			return c, fmt.Errorf("%w: files has wire type %d", ErrMalformed, typ)
		}
		rec, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return c, fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		if num == fieldFiles {
			c.files++
			err = c.scanFile(rec, l)
		} else {
			c.replaced++
			err = c.scanReplaced(rec)
		}
		if err != nil {
			return c, err
		}
		if c.files+c.replaced > int64(l.FilesPerChunk) {
			return c, fmt.Errorf("%w: more than %d files in a chunk", ErrTooLarge, l.FilesPerChunk)
		}
	}
	return c, nil
}

// scanFile reads one DataFile. Of a repeated scalar the last one counts, as in a decoder.
func (c *counts) scanFile(b []byte, l *Limits) error {
	var rows, size, content, contentSize, carried, updated int64
	elements := 0
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		value := b
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		value, b = value[:n], b[n:]
		switch num {
		case fieldRecordCount, fieldSizeBytes, fieldContent, fieldContentSize, fieldCarried, fieldFileUpdated:
			v, err := scanCount(typ, value)
			if err != nil {
				return err
			}
			switch num {
			case fieldRecordCount:
				rows = v
			case fieldSizeBytes:
				size = v
			case fieldContentSize:
				contentSize = v
			case fieldCarried:
				carried = v
			case fieldFileUpdated:
				updated = v
			default:
				content = v
			}
		case fieldPartition, fieldColumns, fieldMerged:
			elements++
		case fieldOffsets:
			elements += scanPacked(typ, value)
		}
		if elements > l.FileElements {
			return fmt.Errorf("%w: a file record with more than %d elements", ErrTooLarge, l.FileElements)
		}
	}
	c.elements += int64(elements)
	return c.add(CountsOf(&planv1.DataFile{
		RecordCount: rows, SizeBytes: size, Content: planv1.FileContent(int32(content)), ContentSize: contentSize, CarriedRows: carried, UpdatedRows: updated, //nolint:gosec // as a decoder
	}))
}

// add adds the counts of one file.
func (c *counts) add(f Counts) error {
	if f.Deleted < 0 {
		return fmt.Errorf("%w: a delete file has fewer rows than it says were deleted before, or are changed", ErrMalformed)
	}
	var okR, okB, okD, okU bool
	c.rows, okR = addInt64(c.rows, f.Rows)
	c.bytes, okB = addInt64(c.bytes, f.Bytes)
	c.deleted, okD = addInt64(c.deleted, f.Deleted)
	c.updated, okU = addInt64(c.updated, f.Updated)
	if !okR || !okB || !okD || !okU {
		return fmt.Errorf("%w: totals overflow", ErrTooLarge)
	}
	return nil
}

// scanReplaced reads one ReplacedFile.
func (c *counts) scanReplaced(b []byte) error {
	var deleted, updated int64
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		value := b
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		value, b = value[:n], b[n:]
		if num != fieldDeleted && num != fieldUpdated && num != fieldReplacedRows {
			continue
		}
		v, err := scanCount(typ, value)
		if err != nil {
			return err
		}
		switch num {
		case fieldDeleted:
			deleted = v
		case fieldUpdated:
			updated = v
		}
	}
	var okD, okU bool
	c.deleted, okD = addInt64(c.deleted, deleted)
	c.updated, okU = addInt64(c.updated, updated)
	if !okD || !okU {
		return fmt.Errorf("%w: totals overflow", ErrTooLarge)
	}
	return nil
}

func scanCount(typ protowire.Type, value []byte) (int64, error) {
	if typ != protowire.VarintType {
		return 0, fmt.Errorf("%w: a count has wire type %d", ErrMalformed, typ)
	}
	v, _ := protowire.ConsumeVarint(value)
	if v > math.MaxInt64 {
		return 0, fmt.Errorf("%w: a count is negative", ErrMalformed)
	}
	return int64(v), nil
}

// scanPacked counts the varints of a packed field: each ends with a byte below 0x80.
func scanPacked(typ protowire.Type, value []byte) int {
	if typ != protowire.BytesType {
		return 1
	}
	varints, _ := protowire.ConsumeBytes(value)
	n := 0
	for _, c := range varints {
		if c < 0x80 {
			n++
		}
	}
	return n
}
