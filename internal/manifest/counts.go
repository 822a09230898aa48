package manifest

import planv1 "github.com/signet-io/signet/api/plan/v1"

// Counts are what a file adds to the totals of its task manifest.
type Counts struct {
	Rows    int64 // of the table
	Bytes   int64 // of a deletion vector its own: one object holds several
	Deleted int64 // rows that the statement deletes
	Updated int64 // rows that it changes
}

// Counted is a planv1.DataFile, or what holds one.
type Counted interface {
	GetRecordCount() int64
	GetSizeBytes() int64
	GetContent() planv1.FileContent
	GetContentSize() int64
	GetCarriedRows() int64
	GetUpdatedRows() int64
}

// CountsOf are the counts of a data file, or of a delete file.
func CountsOf(f Counted) Counts {
	c := Counts{Rows: f.GetRecordCount(), Bytes: f.GetSizeBytes()}
	if f.GetContent() == planv1.FileContent_FILE_CONTENT_UNSPECIFIED {
		return c
	}
	c.Updated = f.GetUpdatedRows()
	c.Rows, c.Deleted = 0, c.Rows-f.GetCarriedRows()-c.Updated
	if f.GetContent() == planv1.FileContent_FILE_CONTENT_DELETION_VECTOR {
		c.Bytes = f.GetContentSize()
	}
	return c
}

// negative reports whether no file has such counts.
func negative(f *planv1.DataFile) bool {
	c := CountsOf(f)
	return min(f.GetRecordCount(), f.GetSizeBytes(), f.GetCarriedRows(), f.GetUpdatedRows(), c.Bytes, c.Deleted) < 0
}
