package manifest

import "errors"

// Limits bound what a Reader takes in. A zero member means its default.
type Limits struct {
	ChunkBytes    int   // of one files chunk or header; default and maximum of what Encode makes: ChunkBytes
	FilesPerChunk int   // default FilesPerChunk
	Files         int64 // in the whole manifest; default 1,000,000
	Bytes         int64 // of all files chunks together; default 1 GiB
	FileElements  int   // partition values, column metrics and split offsets of one file; default 200,000
	Elements      int64 // the same over the whole manifest; default 64 Mi
}

const (
	// ChunkBytes is the largest payload of one chunk.
	ChunkBytes = 1 << 20
	// FilesPerChunk is the largest number of data files in one chunk.
	FilesPerChunk = 1000
)

func (l *Limits) setDefaults() {
	setDefault(&l.ChunkBytes, ChunkBytes)
	setDefault(&l.FilesPerChunk, FilesPerChunk)
	setDefault(&l.Files, 1_000_000)
	setDefault(&l.Bytes, 1<<30)
	setDefault(&l.FileElements, 200_000)
	setDefault(&l.Elements, 64<<20)
}

func setDefault[T int | int64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// What a bad stream is refused with; every error of this package wraps one of them.
var (
	// ErrOrder: a chunk came where its kind cannot stand.
	ErrOrder = errors.New("task manifest: chunk out of order")
	// ErrTooLarge: a limit was passed.
	ErrTooLarge = errors.New("task manifest: too large")
	// ErrMalformed: the bytes are no serialised DataFiles, or a number in them is out of range.
	ErrMalformed = errors.New("task manifest: malformed")
	// ErrDigest: the trailer's digest is not that of the bytes received.
	ErrDigest = errors.New("task manifest: digest does not match")
	// ErrTotals: the trailer's totals are not those of the files received.
	ErrTotals = errors.New("task manifest: totals do not match")
	// ErrIncomplete: the stream has not ended with a good trailer.
	ErrIncomplete = errors.New("task manifest: incomplete")
)
