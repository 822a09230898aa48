package inputs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/internal/objects"
)

const (
	wholeBelow  = 1 << 20 // smaller files are fetched whole, and are there when a task wants them
	footerGuess = 64 << 10
	magic       = "PAR1"
)

// errNoRanges: the store, or the file, is not as it would have to be for reading a part of it.
var errNoRanges = errors.New("cannot be read in part")

// fetchFooter makes a file of the object's size that holds the footer of a Parquet file, and nothing else: all that DuckDB reads to bind a query over it. What the footer names
// is where it was. Whatever is no such file is fetched whole.
func (c *Cache) fetchFooter(ctx context.Context, reads *signer, f *file, to string) error {
	err := c.sparse(ctx, reads, f, to)
	if errors.Is(err, errNoRanges) {
		return c.fetch(ctx, reads, f, to)
	}
	return err
}

func (c *Cache) sparse(ctx context.Context, reads *signer, f *file, to string) error {
	g := &getting{c: c, f: f, etag: f.etag}
	end, err := g.span(ctx, reads, f.size-footerGuess, footerGuess)
	if err != nil {
		return g.explain(err)
	}
	if string(end[len(end)-4:]) != magic {
		return errNoRanges
	}
	need := int64(binary.LittleEndian.Uint32(end[len(end)-8:])) + 8
	if need > f.size-int64(len(magic)) {
		return errNoRanges // DuckDB says what is wrong with it
	}
	if more := need - int64(len(end)); more > 0 {
		front, err := g.span(ctx, reads, f.size-need, more)
		if err != nil {
			return g.explain(err)
		}
		end = append(front, end...)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = out.Truncate(f.size); err == nil {
		_, err = out.WriteAt([]byte(magic), 0)
	}
	if err == nil {
		_, err = out.WriteAt(end, f.size-int64(len(end)))
	}
	return errors.Join(err, out.Close())
}

// span reads n bytes of the object.
func (g *getting) span(ctx context.Context, reads *signer, from, n int64) (out []byte, err error) {
	err = g.c.Retry.Do(ctx, func(renew bool) error {
		r, err := reads.of(ctx, g.f.uri, renew)
		if err != nil {
			return err
		}
		more := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", from, from+n-1)}}
		objects.OnlyIf(more, g.etag)
		resp, err := g.c.Client.Do(ctx, r, more, nil, 0)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		at, total := rangeOf(resp)
		if total < 0 || resp.StatusCode != http.StatusPartialContent && total == g.f.size {
			return errNoRanges
		}
		if err := g.same(resp, total); err != nil {
			return err
		}
		if at != from {
			return errNoRanges
		}
		out = make([]byte, n)
		if _, err := io.ReadFull(resp.Body, out); err != nil {
			return &signed.Error{Method: r.GetMethod(), URI: r.GetUri(), Status: resp.StatusCode, Err: signed.ErrNetwork, Text: "the body broke off"}
		}
		return nil
	})
	return out, err
}
