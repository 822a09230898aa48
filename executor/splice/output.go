package splice

import "github.com/signet-io/signet/executor/footer"

// Metrics is what is known of a leaf of a new file.
type Metrics struct {
	Range
	Bytes, Values int64
	Bounded       bool // Low and High hold for all of its values; there may be none
}

// Output is a new file in the making.
type Output struct {
	layout  *Layout
	meta    footer.File
	pieces  []Piece
	size    int64
	metrics []Metrics
	offsets []int64
	chunks  [][]Placed // by leaf
	mixed   bool       // several writers
}

// Placed is a column chunk with its place in the new file.
type Placed struct {
	Piece
	At int64
}

// NewOutput begins a file of a layout.
func NewOutput(l *Layout) *Output {
	o := &Output{layout: l, pieces: []Piece{{Data: []byte(footer.Magic)}}, size: int64(len(footer.Magic)), metrics: make([]Metrics, len(l.Leaves)), chunks: make([][]Placed, len(l.Leaves))}
	o.meta.Schema, o.meta.Version = l.schema, 1
	o.meta.Ordered = make([]bool, len(l.Leaves))
	for n := range o.metrics {
		o.metrics[n].Bounded, o.meta.Ordered[n] = true, true
	}
	return o
}

// Size is that of the file so far, without its footer.
func (o *Output) Size() int64 { return o.size }

// Rows is how many there are so far.
func (o *Output) Rows() int64 { return o.meta.Rows }

// Groups is the number of row groups so far.
func (o *Output) Groups() int { return len(o.meta.Groups) }

// MaxGroups is how many row groups a file may have: readers number them in 16 bits.
const MaxGroups = 1<<15 - 1

// Add appends a row group that Check has passed. l is the file's own layout, whose signature is the output's.
func (o *Output) Add(in *Input, l *Layout, group int) {
	src := &in.meta.Groups[group]
	g := footer.RowGroup{Rows: src.Rows, Chunks: make([]footer.Chunk, len(l.Leaves))}
	for n := range l.Leaves {
		leaf := &l.Leaves[n]
		from := &src.Chunks[leaf.source]
		c := *from
		start := from.Start()
		shift := o.size - start
		c.Path, c.DataOffset, c.FilePath = o.layout.Leaves[n].names, c.DataOffset+shift, ""
		c.BloomOffset, c.BloomLength = 0, 0
		if c.DictOffset = 0; start != from.DataOffset {
			c.DictOffset = start + shift
		}
		c.Stats = in.statsOf(from, leaf)
		g.Chunks[n] = c
		g.Bytes += c.Uncompressed
		if n == 0 {
			o.offsets = append(o.offsets, o.size)
		}
		o.chunks[n] = append(o.chunks[n], Placed{Piece{Path: in.path, From: in.from, Offset: start, Length: c.Compressed}, o.size})
		o.copy(in, start, c.Compressed)
		o.metrics[n].add(in.rangeOf(from, leaf), from)
	}
	o.meta.Groups = append(o.meta.Groups, g)
	o.meta.Rows += src.Rows
	o.meta.Version = max(o.meta.Version, min(in.meta.Version, 2))
	switch by := in.meta.CreatedBy; {
	case o.mixed:
	case o.meta.CreatedBy == "":
		o.meta.CreatedBy = by
	case o.meta.CreatedBy != by:
		o.mixed = true
	}
}

// statsOf are the statistics that the new footer has: none that are not trusted.
func (in *Input) statsOf(c *footer.Chunk, l *Leaf) *footer.Statistics {
	r := in.rangeOf(c, l)
	if r == nil {
		return nil
	}
	s := *c.Stats
	if r.Low == nil {
		s.HasMin, s.HasMax, s.Min, s.Max = false, false, nil, nil
	}
	s.Nulls = r.Nulls
	return &s
}

// copy adds a run of bytes, which joins the one before it where both were neighbours.
func (o *Output) copy(in *Input, off, n int64) {
	o.size += n
	if last := &o.pieces[len(o.pieces)-1]; last.Path == in.path && last.Offset+last.Length == off {
		last.Length += n
		return
	}
	o.pieces = append(o.pieces, Piece{Path: in.path, From: in.from, Offset: off, Length: n})
}

func (m *Metrics) add(r *Range, c *footer.Chunk) {
	first := m.Values == 0
	m.Bytes += c.Compressed
	m.Values += c.Values
	if r == nil {
		m.Bounded, m.Nulls, m.Low, m.High = false, -1, nil, nil
		return
	}
	if r.Nulls < 0 || m.Nulls < 0 {
		m.Nulls = -1
	} else {
		m.Nulls += r.Nulls
	}
	switch {
	case !m.Bounded:
	case r.Low == nil && r.Nulls != c.Values: // there are values, and nobody knows which
		m.Bounded, m.Low, m.High = false, nil, nil
	case r.Low == nil:
	default:
		m.widen(r, first)
	}
}

func (m *Metrics) widen(r *Range, first bool) {
	if first || m.Low == nil || Compare(r.Low, m.Low) < 0 {
		m.Low, m.LowExact = r.Low, r.LowExact
	}
	if first || m.High == nil || Compare(r.High, m.High) > 0 {
		m.High, m.HighExact = r.High, r.HighExact
	}
}

// Made is a file whose every byte is known.
type Made struct {
	Pieces  []Piece
	Size    int64
	Rows    int64
	Metrics []Metrics  // by leaf of the layout
	Chunks  [][]Placed // likewise
	Offsets []int64    // of the row groups
}

// Finish adds the footer.
func (o *Output) Finish() *Made {
	if o.mixed || o.meta.CreatedBy == "" {
		o.meta.CreatedBy = createdBy
	}
	end := o.meta.End()
	return &Made{Pieces: append(o.pieces, Piece{Data: end}), Size: o.size + int64(len(end)), Rows: o.meta.Rows, Metrics: o.metrics, Chunks: o.chunks, Offsets: o.offsets}
}

// createdBy names the writer of files whose row groups have several: then none of them may be blamed.
const createdBy = "signet version 1.0.0 (build splice)"

// Range is what the statistics of a row group say about a leaf; nil: nothing that can be relied on.
func (in *Input) Range(leaf *Leaf, group int) *Range {
	return in.rangeOf(&in.meta.Groups[group].Chunks[leaf.source], leaf)
}

// LeafOf finds a leaf of the table by field id, outside of lists and maps; nil: there is none.
func (l *Layout) LeafOf(id int32) *Leaf {
	for _, leaves := range [][]Leaf{l.Leaves, l.Omitted} {
		for n := range leaves {
			if leaves[n].Field.GetId() == id && !leaves[n].Repeated {
				return &leaves[n]
			}
		}
	}
	return nil
}

// CompressedBytes is how much of a row group would be copied.
func (in *Input) CompressedBytes(l *Layout, group int) int64 {
	sum := int64(0)
	for n := range l.Leaves {
		sum += in.meta.Groups[group].Chunks[l.Leaves[n].source].Compressed
	}
	return sum
}

// Remote says whether nothing of the file but its footer is at hand.
func (in *Input) Remote() bool { return in.from != nil }

// StoreBytes is how many bytes of row groups a store would copy by itself, if they were added to an output in this order: those of long runs.
func (in *Input) StoreBytes(l *Layout, groups []int) int64 {
	if in.from == nil {
		return 0
	}
	sum, run, next := int64(0), int64(0), int64(-1)
	for _, group := range groups {
		for n := range l.Leaves {
			c := &in.meta.Groups[group].Chunks[l.Leaves[n].source]
			if c.Start() != next {
				sum, run = sum+in.from.long(run), 0
			}
			run += c.Compressed
			next = c.Start() + c.Compressed
		}
	}
	return sum + in.from.long(run)
}

// LeastCopied is how long a part of an upload is at least, but for the last one: what is shorter is gathered. Source: S3's "Multipart upload limits".
const LeastCopied = 5 << 20

func (o *Object) long(run int64) int64 {
	if run < o.Least {
		return 0
	}
	return run
}

// Path of the file, for messages.
func (in *Input) Path() string { return in.path }
