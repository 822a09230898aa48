package flightrows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// maxBatch is how large a batch is sent if its rows can be divided: below the 4 MiB that many clients take without being told.
const maxBatch = 2 << 20

// EachPiece hands a batch on in pieces that are small enough, as far as rows can be divided.
func EachPiece(rec arrow.RecordBatch, f func(arrow.RecordBatch) error) error {
	if rec.NumRows() <= 1 || Size(rec) <= maxBatch {
		return f(rec)
	}
	return halve(rec, 0, rec.NumRows(), f)
}

func halve(rec arrow.RecordBatch, from, to int64, f func(arrow.RecordBatch) error) error {
	if to-from > 1 && rangeSize(rec, from, to) > maxBatch {
		middle := from + (to-from)/2
		if err := halve(rec, from, middle, f); err != nil {
			return err
		}
		return halve(rec, middle, to, f)
	}
	piece := rec.NewSlice(from, to)
	defer piece.Release()
	return f(piece)
}

// rangeSize estimates the bytes of some rows: exactly for text and bytes, in proportion for all else.
func rangeSize(rec arrow.RecordBatch, from, to int64) int64 {
	var n int64
	for _, col := range rec.Columns() {
		switch a := col.(type) {
		case array.BinaryLike:
			for i := from; i < to; i++ {
				n += int64(a.ValueLen(int(i)))
			}
		default:
			n += dataSize(col.Data()) * (to - from) / max(rec.NumRows(), 1)
		}
	}
	return n
}

// Size is what the buffers of a batch take; those of a slice count whole.
func Size(rec arrow.RecordBatch) (n int64) {
	for _, col := range rec.Columns() {
		n += dataSize(col.Data())
	}
	return n
}

func dataSize(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += dataSize(c)
	}
	return n
}
