package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/internal/objects"
)

// fetch writes an object to a new file. A body that breaks off is resumed, if it is still of the same version.
func (c *Cache) fetch(ctx context.Context, reads *signer, f *file, to string) error {
	if err := c.room(f.size); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	g := &getting{c: c, f: f, out: out, etag: f.etag}
	for before := int64(-1); before < g.have && err == nil; { // as long as it gets on, it is tried again
		before = g.have
		err = c.Retry.Do(ctx, func(renew bool) error {
			r, err := reads.of(ctx, f.uri, renew)
			if err != nil {
				return err
			}
			return g.get(ctx, r)
		})
		if err == nil {
			return out.Close()
		}
		if signed.Again(err) && ctx.Err() == nil && before < g.have {
			err = nil
		}
	}
	return errors.Join(g.explain(err), out.Close())
}

// getting is one object on its way.
type getting struct {
	c    *Cache
	f    *file
	out  *os.File
	have int64  // bytes that are written
	etag string // of the version that these are of
}

// get reads what is missing.
func (g *getting) get(ctx context.Context, r *executorv1.SignedRequest) error {
	more := http.Header{}
	if g.have > 0 {
		more.Set("Range", fmt.Sprintf("bytes=%d-", g.have))
	}
	objects.OnlyIf(more, g.etag)
	resp, err := g.c.Client.Do(ctx, r, more, nil, 0)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	from, total := rangeOf(resp)
	if total < 0 {
		total = g.f.size
	}
	switch {
	case from != 0 && from != g.have: // not what was asked for
		return signed.Classify(r, http.StatusBadGateway, "", fmt.Sprintf("it answers from byte %d on instead of %d", from, g.have))
	}
	if err := g.same(resp, total); err != nil {
		return err
	}
	if from == 0 && g.have > 0 { // a store without ranges: from the start
		g.have = 0
	}
	n, err := io.Copy(io.NewOffsetWriter(g.out, g.have), io.LimitReader(resp.Body, max(total-g.have, 0)))
	g.have += n
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !isRead(err):
		return err
	case err == nil && g.have == total && resp.ContentLength < 0 && !ended(resp.Body):
		return &Error{Message: fmt.Sprintf("%s has changed since the job was planned: %d bytes then, more now", g.f.name, g.f.size), Hint: againHint}
	case err != nil || g.have != total:
		return &signed.Error{Method: r.GetMethod(), URI: r.GetUri(), Status: resp.StatusCode, Err: signed.ErrNetwork, Text: fmt.Sprintf("the body broke off after %d of %d bytes", g.have, total)}
	}
	return nil
}

// ended: a body whose length was not told has no more than what was read.
func ended(body io.Reader) bool {
	n, err := io.ReadFull(body, make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// same makes sure that an answer is about the version that was planned for, and that the answers before it were about.
func (g *getting) same(resp *http.Response, total int64) error {
	switch {
	case (g.f.size > 0 || !g.f.table) && total != g.f.size:
		return g.resized(total)
	case g.etag != "" && !objects.SameVersion(objects.Version(resp.Header), g.etag):
		return g.changed()
	}
	g.etag = objects.Version(resp.Header)
	return nil
}

// isRead tells errors of the network from those of the file that is written.
func isRead(err error) bool {
	var pe *os.PathError
	return !errors.As(err, &pe)
}

// rangeOf is where a body begins, and how large the whole object is; -1: it does not say.
func rangeOf(resp *http.Response) (from, total int64) {
	if resp.StatusCode != http.StatusPartialContent {
		return 0, resp.ContentLength
	}
	said, of, _ := strings.Cut(strings.TrimPrefix(resp.Header.Get("Content-Range"), "bytes "), "/")
	first, _, _ := strings.Cut(said, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return -1, -1
	}
	if total, err = strconv.ParseInt(of, 10, 64); err != nil {
		return -1, -1
	}
	return from, total
}

func (f *file) kind() string {
	switch {
	case f.deletes:
		return "a delete file of data file " + f.name
	case f.table:
		return "data file " + f.name + " of the table"
	}
	return f.name
}

func (g *getting) resized(now int64) error {
	if g.f.table {
		return &Error{Message: fmt.Sprintf("%s has %d bytes, and its manifest says %d", g.f.kind(), now, g.f.size), Hint: missingHint}
	}
	return &Error{Message: fmt.Sprintf("%s has changed since the job was planned: %d bytes then, %d now", g.f.name, g.f.size, now), Hint: againHint}
}

func (g *getting) changed() error {
	return &Error{Message: g.f.kind() + " has changed since the job was planned: another object has its name now", Hint: againHint}
}

// explain makes what a store has said about the file.
func (g *getting) explain(err error) error {
	switch {
	case errors.Is(err, signed.ErrExists):
		return g.changed()
	case errors.Is(err, signed.ErrNotFound) && g.f.table:
		return &Error{Message: g.f.kind() + " is not there", Hint: missingHint}
	case errors.Is(err, signed.ErrNotFound):
		return &Error{Message: g.f.name + " was there when the job was planned and is gone", Hint: againHint}
	}
	return err
}

// signer gets the reads of one task signed, many at a time, when they are needed first.
type signer struct {
	access Access

	mu   sync.Mutex
	next []string // not signed yet
	have map[string]*executorv1.SignedRequest
}

// of is a request for an object; renew: a new one.
func (s *signer) of(ctx context.Context, uri string, renew bool) (*executorv1.SignedRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.have[uri]; r != nil && !renew {
		return r, nil
	}
	const batch = 64
	uris := []string{uri}
	for len(uris) < batch && len(s.next) > 0 && !renew {
		if u := s.next[0]; u != uri {
			uris = append(uris, u)
		}
		s.next = s.next[1:]
	}
	s.next = slices.DeleteFunc(s.next, func(u string) bool { return u == uri })
	signed, err := s.access.Reads(ctx, uris)
	if err != nil {
		return nil, err
	}
	if len(signed) != len(uris) {
		return nil, fmt.Errorf("%d requests were signed instead of %d", len(signed), len(uris))
	}
	for n, u := range uris {
		s.have[u] = signed[n]
	}
	return signed[0], nil
}
