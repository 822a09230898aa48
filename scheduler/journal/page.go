package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
)

// pages reads a bbolt file without trusting any of it: bbolt maps the file and follows what it finds there, which on bad pages ends in a panic,
// partly in goroutines of its own, or in a fault. The layout is that of bbolt's file format, version 2, on a little-endian machine.
type pages struct {
	r    io.ReaderAt
	size int64
	page int64 // bytes
	meta meta  // the newest that is whole
	torn bool  // the other is not
	seen map[uint64]bool

	problems []string // the first of them
	count    int      // of all problems
}

type meta struct{ root, pages, tx uint64 }

const (
	magic         = 0xED0CDAED
	layout        = 2
	headerSize    = 16
	elementSize   = 16
	metaSize      = 64
	maxDepth      = 64
	flagBranch    = 0x01
	flagLeaf      = 0x02
	flagMeta      = 0x04
	bucketElement = 0x01
)

var (
	errNoMeta = errors.New("neither of its first two pages is whole: it is no journal, or its beginning is lost")
	le        = binary.LittleEndian
	be        = binary.BigEndian
)

// newPages finds the newest whole meta page. A torn one is what a crash leaves: the other stands for the transaction before.
func newPages(r io.ReaderAt, size int64) (*pages, error) {
	p := &pages{r: r, size: size, seen: map[uint64]bool{}}
	first, ok := p.readMeta(0)
	if ok {
		p.meta = first
	}
	for shift := 9; shift <= 16; shift++ { // the size of pages is only known from a meta page
		at := int64(1) << shift
		if p.page != 0 && at != p.page {
			continue
		}
		if second, ok2 := p.readMeta(at); ok2 && p.page == at {
			if !ok || second.tx > first.tx {
				p.meta = second
			}
			ok, p.torn = true, !ok
			break
		}
		p.torn = ok
	}
	if !ok {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, errNoMeta)
	}
	if p.meta.pages < 2 || p.meta.pages > math.MaxInt64/uint64(p.page) || int64(p.meta.pages)*p.page > size { //nolint:gosec // checked before
		p.problem("the file has %d bytes and should have %d pages of %d: it was cut off", size, p.meta.pages, p.page)
	}
	return p, nil
}

func (p *pages) readMeta(at int64) (meta, bool) {
	b := make([]byte, headerSize+metaSize)
	if _, err := p.r.ReadAt(b, at); err != nil {
		return meta{}, false
	}
	m := b[headerSize:]
	h := fnv.New64a()
	_, _ = h.Write(m[:56])
	if le.Uint16(b[8:])&flagMeta == 0 || le.Uint32(m) != magic || le.Uint32(m[4:]) != layout || h.Sum64() != le.Uint64(m[56:]) {
		return meta{}, false
	}
	size := int64(le.Uint32(m[8:]))
	if size < 512 || size > 1<<16 || at != 0 && size != at {
		return meta{}, false
	}
	p.page = size
	return meta{root: le.Uint64(m[16:]), pages: le.Uint64(m[40:]), tx: le.Uint64(m[48:])}, true
}

// problem notes one.
func (p *pages) problem(format string, args ...any) {
	p.count++
	if len(p.problems) < listedProblems {
		p.problems = append(p.problems, fmt.Sprintf(format, args...))
	}
}

// element of a page; of a branch page, child is set.
type element struct {
	key, value []byte
	child      uint64
	bucket     bool
}

// load reads a page with its overflow. What is wrong with it is a problem, and then ok is false.
func (p *pages) load(id uint64) (b []byte, ok bool) {
	if id < 2 || id >= p.meta.pages {
		p.problem("page %d does not exist", id)
		return nil, false
	}
	at := int64(id) * p.page //nolint:gosec // below the number of pages
	head := make([]byte, headerSize)
	if _, err := p.r.ReadAt(head, at); err != nil {
		p.problem("page %d cannot be read: %v", id, err)
		return nil, false
	}
	over := uint64(le.Uint32(head[12:]))
	if le.Uint64(head) != id || over >= p.meta.pages-id || at+int64(over+1)*p.page > p.size { //nolint:gosec // below the number of pages
		p.problem("page %d has something else in its place", id)
		return nil, false
	}
	for i := id; i <= id+over; i++ {
		if p.seen[i] {
			p.problem("page %d is used twice", i)
			return nil, false
		}
		p.seen[i] = true
	}
	b = make([]byte, int64(over+1)*p.page) //nolint:gosec // at most the file
	if _, err := p.r.ReadAt(b, at); err != nil {
		p.problem("page %d cannot be read: %v", id, err)
		return nil, false
	}
	return b, true
}

// elements takes a page apart; b begins with the page's header.
func (p *pages) elements(name string, b []byte, in span) (out []element, leaf bool) {
	flags, n := le.Uint16(b[8:]), int(le.Uint16(b[10:]))
	leaf = flags == flagLeaf
	if !leaf && flags != flagBranch || headerSize+n*elementSize > len(b) || !leaf && n == 0 {
		p.problem("%s is neither a leaf nor a branch, or is cut off", name)
		return nil, false
	}
	var last []byte
	for i := range n {
		at := headerSize + i*elementSize
		e := b[at : at+elementSize]
		var el element
		var pos, ksize, vsize uint64
		if leaf {
			el.bucket = le.Uint32(e)&bucketElement != 0
			pos, ksize, vsize = uint64(le.Uint32(e[4:])), uint64(le.Uint32(e[8:])), uint64(le.Uint32(e[12:]))
		} else {
			pos, ksize, el.child = uint64(le.Uint32(e)), uint64(le.Uint32(e[4:])), le.Uint64(e[8:])
		}
		from := uint64(at) + pos //nolint:gosec // within the page
		if from+ksize+vsize > uint64(len(b)) {
			p.problem("%s: element %d reaches beyond the page", name, i)
			return out, leaf
		}
		el.key, el.value = b[from:from+ksize], b[from+ksize:from+ksize+vsize]
		if i > 0 && bytes.Compare(last, el.key) >= 0 {
			p.problem("%s: its keys are out of order", name)
			return out, leaf
		}
		if bytes.Compare(el.key, in.from) < 0 || in.to != nil && bytes.Compare(el.key, in.to) >= 0 {
			p.problem("%s: key %q is not where it would be looked for", name, clipped(el.key))
			return out, leaf
		}
		last = el.key
		out = append(out, el)
	}
	return out, leaf
}

// span is where a page's keys lie, by the branch pages above it; to nil: no end.
type span struct{ from, to []byte }

// tree visits the elements of a bucket's leaves. It goes on behind what cannot be read.
func (p *pages) tree(id uint64, depth int, in span, visit func(element) error) error {
	if depth > maxDepth {
		p.problem("page %d lies too deep", id)
		return nil
	}
	b, ok := p.load(id)
	if !ok {
		return nil
	}
	return p.visit(fmt.Sprintf("page %d", id), b, depth, in, visit)
}

func (p *pages) visit(name string, b []byte, depth int, in span, visit func(element) error) error {
	els, leaf := p.elements(name, b, in)
	for i, e := range els {
		var err error
		if leaf {
			err = visit(e)
		} else {
			below := span{e.key, in.to}
			if i+1 < len(els) {
				below.to = els[i+1].key
			}
			err = p.tree(e.child, depth+1, below, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// records visits every record of every bucket of the journal.
func (p *pages) records(visit func(bucket, key, value []byte) error) error {
	return p.tree(p.meta.root, 0, span{}, func(e element) error {
		if !e.bucket || len(e.value) < 16 {
			p.problem("%q is no bucket", clipped(e.key))
			return nil
		}
		record := func(r element) error {
			if r.bucket {
				p.problem("bucket %q has another in it", clipped(e.key))
				return nil
			}
			return visit(e.key, r.key, r.value)
		}
		root := le.Uint64(e.value)
		if root != 0 {
			return p.tree(root, 1, span{}, record)
		}
		if len(e.value) < 16+headerSize {
			p.problem("bucket %q is cut off", clipped(e.key))
			return nil
		}
		return p.visit(fmt.Sprintf("bucket %q", clipped(e.key)), e.value[16:], 1, span{}, record)
	})
}

func clipped(b []byte) []byte { return b[:min(len(b), 80)] }
