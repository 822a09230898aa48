package inputs

import (
	"context"
	"path/filepath"
	"sync"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/splice"
)

// leastLeft is how large a file is whose row groups a store can copy: a part of an upload has so many bytes.
const leastLeft = splice.LeastCopied + footerGuess

// Left are files of a task that were left where they are: of each nothing but the footer was fetched. Safe for concurrent use.
type Left struct {
	ctx   context.Context //nolint:containedctx // the attempt's life
	cache *Cache
	reads *signer
	dir   string // for those that are fetched after all
	files map[string]*file
}

// StageFooters is Stage, but for large Parquet files, of which no row may be read where it puts them: what is there is the footer, in a file of their size. Whole says where all of
// them is.
func (c *Cache) StageFooters(ctx context.Context, access Access, sources []*planv1.Source, dir string) ([]*planv1.Source, *Left, error) {
	out, wanted, err := named(sources, filepath.Join(dir, "footers"), footers)
	if err != nil {
		return nil, nil, err
	}
	left := &Left{ctx: ctx, cache: c, reads: newSigner(access, wanted), dir: filepath.Join(dir, "whole"), files: map[string]*file{}}
	for path, f := range wanted {
		if f.footer {
			left.files[path] = f
		}
	}
	return out, left, c.fetchAll(ctx, left.reads, wanted)
}

// Object is the file whose footer is at path; nil: it is all there.
func (l *Left) Object(path string) *splice.Object {
	if f := l.files[path]; f != nil {
		return &splice.Object{ReaderAt: &spans{left: l, f: f, etag: f.etag}, URI: f.uri, Size: f.size, Least: splice.LeastCopied}
	}
	return nil
}

// Whole fetches those of the files that were left, and answers where they all are.
func (l *Left) Whole(ctx context.Context, files []*planv1.PinnedFile) ([]*planv1.PinnedFile, error) {
	out, wanted := make([]*planv1.PinnedFile, len(files)), map[string]*file{}
	for n, p := range files {
		out[n] = p
		f := l.files[p.GetPath()]
		if f == nil {
			continue
		}
		path, err := pathOf(l.dir, f)
		if err != nil {
			return nil, err
		}
		whole := *f
		whole.footer = false
		wanted[path] = &whole
		out[n] = proto.CloneOf(p)
		out[n].Path = path
	}
	return out, l.cache.fetchAll(ctx, l.reads, wanted)
}

// spans reads parts of an object, all of one version.
type spans struct {
	left *Left
	f    *file

	mu   sync.Mutex
	etag string
}

func (s *spans) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	g := &getting{c: s.left.cache, f: s.f, etag: s.etag}
	s.mu.Unlock()
	b, err := g.span(s.left.ctx, s.left.reads, off, int64(len(p)))
	if err != nil {
		return 0, g.explain(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.etag = g.etag
	return copy(p, b), nil
}
