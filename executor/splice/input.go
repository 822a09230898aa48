package splice

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
)

// Rules say what a table's files may be like.
type Rules struct {
	Codecs     []string // names as of the table property
	GroupRows  int64    // most rows of a row group; 0: any number
	GroupBytes int64    // most uncompressed bytes of a row group; 0: any number
	V2         bool     // encodings and pages of the format's second version are welcome
	Years      bool     // dates and timestamps are of the years 1 to 9999
}

// RulesOf are the rules of a write spec.
func RulesOf(r *planv1.FileRules) Rules {
	out := Rules{Codecs: []string{r.GetCodec()}, GroupRows: r.GetRowGroupRows(), GroupBytes: r.GetRowGroupBytes(), V2: r.GetParquetVersion() == "V2", Years: r.GetFourDigitYears()}
	if r.GetCodec() == "" || r.GetAnyCodec() {
		out.Codecs = []string{"zstd", "snappy", "gzip"}
	}
	if out.GroupBytes == 0 {
		out.GroupBytes = defaultGroupBytes
	}
	return out
}

// defaultGroupBytes bounds row groups where the table's properties do not: readers hold one in memory. It is twice what Iceberg's own writers aim at.
const defaultGroupBytes = 256 << 20

// Input is a source file.
type Input struct {
	path    string
	meta    *footer.File
	body    int64 // where the footer begins
	trusted bool
	file    *os.File
	from    *Object     // not nil: of the file nothing but the footer is at hand
	pages   io.ReaderAt // where headers of pages are read
	unread  atomic.Bool
}

// Unread says whether some pages of an object could not be looked at: it may be worth to fetch it.
func (in *Input) Unread() bool { return in.unread.Load() }

// OpenObject is Open for a file of an object store. path is a local one of its size that has its footer.
func OpenObject(path string, from *Object) (*Input, error) {
	in, err := Open(path)
	if err != nil {
		return nil, err
	}
	in.from = from
	in.pages = &sparing{ReaderAt: from, left: leastReads + from.Size/bytesPerRead}
	return in, nil
}

// Reads of headers are requests: a file with so many pages that they would be more than these is better fetched as a whole.
const (
	leastReads   = 64
	bytesPerRead = 128 << 10
	readsAtATime = 16
)

// errManyReads: there are more headers than are worth a request each.
var errManyReads = errors.New("its pages are many and small")

type sparing struct {
	io.ReaderAt
	mu   sync.Mutex
	left int64
}

func (s *sparing) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	s.left--
	out := s.left < 0
	s.mu.Unlock()
	if out {
		return 0, errManyReads
	}
	return s.ReaderAt.ReadAt(p, off)
}

// Open reads a file's footer. The caller closes it.
func Open(path string) (*Input, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := &Input{path: path, file: f, pages: f}
	st, err := f.Stat()
	if err == nil {
		in.meta, in.body, err = footer.Read(f, st.Size())
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	in.trusted = trusted(in.meta.CreatedBy)
	return in, nil
}

// Close lets go of the file.
func (in *Input) Close() error { return in.file.Close() }

// Meta is the file's footer.
func (in *Input) Meta() *footer.File { return in.meta }

// Check says why a row group cannot be copied; empty: it can.
func (in *Input) Check(l *Layout, group int, rules Rules) string {
	g := &in.meta.Groups[group]
	switch {
	case in.meta.Encrypted:
		return "it is encrypted"
	case rules.GroupRows > 0 && g.Rows > rules.GroupRows:
		return fmt.Sprintf("a row group has %d rows, and the table allows %d", g.Rows, rules.GroupRows)
	case rules.GroupBytes > 0 && g.Bytes > rules.GroupBytes:
		return fmt.Sprintf("a row group has %d bytes, and the table allows %d", g.Bytes, rules.GroupBytes)
	}
	for n := range l.Leaves {
		leaf := &l.Leaves[n]
		c := &g.Chunks[leaf.source]
		reason := in.checkChunk(c, leaf, g.Rows, rules)
		if reason == "" {
			reason = checkRange(leaf, in.rangeOf(c, leaf), c.Values, rules.Years)
		}
		if reason != "" {
			return fmt.Sprintf("column %q: %s", leaf.Path, reason)
		}
	}
	for n := range l.Omitted {
		leaf := &l.Omitted[n]
		c := &g.Chunks[leaf.source]
		if reason := checkRange(leaf, in.rangeOf(c, leaf), c.Values, rules.Years); reason != "" {
			return fmt.Sprintf("column %q: %s", leaf.Path, reason)
		}
	}
	for _, need := range l.needs {
		if !slices.ContainsFunc(need.leaves, func(n int) bool {
			r := in.rangeOf(&g.Chunks[l.Leaves[n].source], &l.Leaves[n])
			return r != nil && r.Nulls == 0
		}) {
			return fmt.Sprintf("column %q is required, and the file's statistics do not say that it has no NULL", need.path)
		}
	}
	for n := range l.Leaves {
		if reason := in.checkPages(&g.Chunks[l.Leaves[n].source], rules); reason != "" {
			return fmt.Sprintf("column %q: %s", l.Leaves[n].Path, reason)
		}
	}
	return ""
}

// CheckAll is Check for several row groups; those of objects are looked at side by side.
func (in *Input) CheckAll(l *Layout, groups []int, rules Rules) []string {
	out := make([]string, len(groups))
	var work errgroup.Group
	work.SetLimit(1)
	if in.from != nil {
		work.SetLimit(readsAtATime)
	}
	for n, group := range groups {
		work.Go(func() error {
			out[n] = in.Check(l, group, rules)
			return nil
		})
	}
	_ = work.Wait() // reasons are no errors
	return out
}

func (in *Input) checkChunk(c *footer.Chunk, l *Leaf, rows int64, rules Rules) string {
	if reason := in.checkPlace(c, l, rows); reason != "" {
		return reason
	}
	if !slices.Contains(rules.Codecs, c.Codec.String()) {
		return fmt.Sprintf("it is compressed with %s, and the table's files with %s", c.Codec, rules.Codecs[0])
	}
	for _, e := range c.Encodings {
		if !allowedEncoding(e, rules.V2) {
			return fmt.Sprintf("encoding %s is not of the table's version of Parquet", e)
		}
	}
	return ""
}

func (in *Input) checkPlace(c *footer.Chunk, l *Leaf, rows int64) string {
	start := c.Start()
	switch {
	case c.Encrypted:
		return "it is encrypted"
	case c.FilePath != "":
		return "its values are in another file"
	case c.Physical != l.element.Physical:
		return "its type differs from the schema's"
	case c.Values < rows || !l.Repeated && c.Values != rows:
		return fmt.Sprintf("it counts %d values in %d rows", c.Values, rows)
	case start < int64(len(footer.Magic)) || c.Compressed <= 0 || start > in.body || c.Compressed > in.body-start || c.DataOffset < start || c.DataOffset >= start+c.Compressed:
		return "its place is not inside the file"
	}
	return ""
}

// allowedEncoding lists BIT_PACKED because old writers name it for levels of which there are none.
func allowedEncoding(e footer.Encoding, v2 bool) bool {
	switch e {
	case footer.Plain, footer.PlainDictionary, footer.RLE, footer.RLEDictionary, footer.BitPacked:
		return true
	case footer.DeltaBinaryPacked, footer.DeltaLength, footer.DeltaByteArray, footer.ByteStreamSplit:
		return v2
	}
	return false
}

// Limits are the numbers next to those that tables store as a date or time; temporal says that the type is one. years: FileRules.four_digit_years.
func Limits(k planv1.TypeKind, years bool) (below, above int64, temporal bool) {
	const (
		yearOne         = -719162 // days from 1970-01-01 to 0001-01-01
		yearTenThousand = 2932897
		dayMicros       = 24 * 60 * 60 * 1_000_000
	)
	switch k {
	case planv1.TypeKind_TYPE_KIND_DATE:
		if years {
			return yearOne - 1, yearTenThousand, true
		}
		return -math.MaxInt32, math.MaxInt32, true // infinite ones
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		if years {
			return yearOne*dayMicros - 1, yearTenThousand * dayMicros, true
		}
		return -math.MaxInt64, math.MaxInt64, true
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return -math.MaxInt64, math.MaxInt64, true
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return -1, dayMicros, true
	}
	return 0, 0, false
}

// checkRange refuses what writers of tables refuse, and what cannot be told without statistics.
func checkRange(l *Leaf, r *Range, values int64, years bool) string {
	below, above, temporal := Limits(l.Field.GetType().GetKind(), years)
	if !temporal {
		return ""
	}
	switch {
	case l.Repeated:
		return "dates and times inside of lists and maps are looked at one by one"
	case r == nil || r.Low == nil && r.Nulls != values:
		return "it has no statistics that say whether its dates or times are finite"
	case r.Low == nil:
		return ""
	case r.Low.GetInteger() <= below || r.High.GetInteger() >= above:
		return "it has a date or time that tables do not store"
	}
	return ""
}

const pagesOfV2 = "its pages are of version 2, and the table's of version 1"

// checkKinds believes what a footer says of the kinds of a chunk's pages. It is for objects, of which each header is a request: writers begin a page every 20,000 rows.
func checkKinds(pages []footer.EncodingStats, rules Rules) string {
	for _, p := range pages {
		switch {
		case p.Page == footer.DataPageV2 && !rules.V2:
			return pagesOfV2
		case p.Page != footer.DictionaryPage && !allowedEncoding(p.Encoding, rules.V2):
			return fmt.Sprintf("encoding %s is not of the table's version of Parquet", p.Encoding)
		}
	}
	return ""
}

// checkPages walks over the headers of a chunk's pages: they must fill it exactly, and hold as many values as it says.
func (in *Input) checkPages(c *footer.Chunk, rules Rules) string {
	if in.from != nil && len(c.Pages) > 0 {
		return checkKinds(c.Pages, rules)
	}
	const damaged = "its pages do not add up to the column"
	values := int64(0)
	end := c.Start() + c.Compressed
	for at := c.Start(); at < end; {
		p, err := footer.ReadPage(in.pages, at, end)
		if err != nil {
			in.unread.Store(in.from != nil)
			return "a page cannot be read: " + err.Error()
		}
		switch {
		case p.Type == footer.DataPageV2 && !rules.V2:
			return pagesOfV2
		case p.Type == footer.DictionaryPage && at != c.Start(), p.Type == footer.IndexPage, at == c.DataOffset && p.Type == footer.DictionaryPage && c.DictOffset > 0:
			return damaged
		case p.Type != footer.DictionaryPage && !allowedEncoding(p.Encoding, rules.V2):
			return fmt.Sprintf("encoding %s is not of the table's version of Parquet", p.Encoding)
		}
		if p.Type != footer.DictionaryPage {
			values += p.Values
		}
		if at += p.Header + p.Compressed; at > end {
			return damaged
		}
	}
	if values != c.Values {
		return damaged
	}
	return ""
}
