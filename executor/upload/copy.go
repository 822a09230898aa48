package upload

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"golang.org/x/sync/errgroup"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/footer"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/splice"
)

// mostCopied is how much one request copies: long copies are cut so that several go side by side, and so that one that a store refuses fits into memory.
const mostCopied = 64 << 20

var _ splice.Maker = (*remoteWriter)(nil)

// Make implements splice.Maker: the file called target below the prefix is an upload in parts, of which the store copies those that are long runs of objects. What is shorter than a
// part may be is read, and sent with what is next to it.
func (w *remoteWriter) Make(ctx context.Context, pieces []splice.Piece, target string) error {
	if err := w.take(target); err != nil {
		return err
	}
	u := &uploading{w: w, name: target}
	for n := range pieces {
		u.size += pieces[n].Size()
	}
	if err := u.make(ctx, pieces); err != nil {
		return fmt.Errorf("make %s/%s: %w", w.prefix, target, err)
	}
	return nil
}

func (u *uploading) make(ctx context.Context, pieces []splice.Piece) error {
	plan, err := inParts(pieces)
	if err != nil {
		return err
	}
	id, nonce, err := u.begin(ctx)
	if err != nil {
		return err
	}
	parts, err := u.partsOf(ctx, id, plan)
	if err == nil {
		err = unchanged(pieces)
	}
	if err == nil {
		err = u.complete(ctx, id, nonce, parts)
	}
	if err == nil {
		return u.asMade(ctx, nonce)
	}
	if !u.unsettled {
		u.abort(ctx, id)
	}
	return err
}

func (u *uploading) partsOf(ctx context.Context, id string, plan [][]splice.Piece) ([]part, error) {
	out := make([]part, len(plan))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtTime)
	for n, pieces := range plan {
		group.Go(func() (err error) {
			if len(pieces) == 1 && pieces[0].From != nil && pieces[0].Length >= splice.LeastCopied {
				out[n], err = u.copied(ctx, id, n+1, &pieces[0])
			} else {
				out[n], err = u.gathered(ctx, id, n+1, pieces)
			}
			if err != nil {
				return fmt.Errorf("part %d of %d: %w", n+1, len(plan), err)
			}
			return nil
		})
	}
	return out, group.Wait()
}

// gathered sends a part as bytes.
func (u *uploading) gathered(ctx context.Context, id string, number int, pieces []splice.Piece) (part, error) {
	var body []byte
	for n := range pieces {
		b, err := pieces[n].Read()
		if err != nil {
			return part{}, err
		}
		body = append(body, b...)
	}
	sent := &uploading{w: u.w, name: u.name, file: bytes.NewReader(body)}
	return sent.part(ctx, id, number, 0, int64(len(body)))
}

// refusing makes parts that a store does not copy one after the other: each is held in memory.
var refusing sync.Mutex

// copied has the store copy a part. One that refuses to gets the bytes.
func (u *uploading) copied(ctx context.Context, id string, number int, p *splice.Piece) (part, error) {
	out := part{Number: number}
	var reqs []*executorv1.SignedRequest
	err := u.w.Retry.Do(ctx, func(renew bool) (err error) {
		if reqs == nil || renew {
			put := &executorv1.PutRequest{UploadId: id, Part: int32(number), Copy: &executorv1.CopyRange{Uri: p.From.URI, Offset: p.Offset, SizeBytes: p.Length}} //nolint:gosec // at most partsMost
			if reqs, err = u.sign(ctx, put); err != nil {
				return err
			}
		}
		var answer struct {
			XMLName xml.Name `xml:"CopyPartResult"`
			ETag    string   `xml:"ETag"`
			CRC32C  string   `xml:"ChecksumCRC32C"`
		}
		if err := u.ask(ctx, reqs[0], nil, &answer); err != nil {
			return err
		}
		out.ETag, out.CRC32C = answer.ETag, answer.CRC32C
		return nil
	})
	switch {
	case err == nil:
		signed.TrafficOf(ctx).Copied.Add(p.Length)
		return out, nil
	case errors.Is(err, signed.ErrRefused), errors.Is(err, signed.ErrDenied):
		refusing.Lock()
		defer refusing.Unlock()
		return u.gathered(ctx, id, number, []splice.Piece{*p})
	case errors.Is(err, signed.ErrExists), errors.Is(err, signed.ErrNotFound): // it is not what it was: reading says so better
		return part{}, errors.Join(unchanged([]splice.Piece{*p}), err)
	}
	return part{}, err
}

// unchanged makes sure that the objects are still of the versions that were looked at: not every store heeds the condition of a copy.
func unchanged(pieces []splice.Piece) error {
	seen := map[string]bool{}
	for _, p := range pieces {
		if p.From == nil || seen[p.From.URI] {
			continue
		}
		seen[p.From.URI] = true
		if _, err := p.From.ReadAt(make([]byte, 1), 0); err != nil {
			return err
		}
	}
	return nil
}

// asMade makes sure that the object is the one that was made, and as long as it has to be: some store may not know ranges of copies.
func (u *uploading) asMade(ctx context.Context, nonce string) error {
	var reqs []*executorv1.SignedRequest
	return u.w.Retry.Do(ctx, func(renew bool) (err error) {
		u.refused(renew)
		if reqs == nil || renew {
			if reqs, err = u.sign(ctx, &executorv1.PutRequest{Head: true}); err != nil {
				return err
			}
		}
		ours, err := u.ours(ctx, reqs[0], nonce)
		if err == nil && !ours {
			err = fmt.Errorf("the store has another object there, or one of another size: %w", fs.ErrExist)
		}
		return err
	})
}

// inParts makes parts of pieces: none but the last is shorter than a part may be, and long runs of objects are parts of their own.
func inParts(pieces []splice.Piece) ([][]splice.Piece, error) {
	pieces, err := withMagic(pieces)
	if err != nil {
		return nil, err
	}
	var out [][]splice.Piece
	var open []splice.Piece
	size := int64(0)
	flush := func() {
		if len(open) > 0 {
			out = append(out, open)
		}
		open, size = nil, 0
	}
	for _, p := range pieces {
		if size >= splice.LeastCopied {
			flush()
		}
		if p.From == nil {
			open, size = append(open, p), size+p.Size()
			continue
		}
		front := int64(0)
		if size > 0 {
			front = splice.LeastCopied - size
		}
		if p.Length-front < splice.LeastCopied {
			open, size = append(open, p), size+p.Length
			continue
		}
		if front > 0 {
			open = append(open, cut(p, 0, front))
		}
		flush()
		for at := front; at < p.Length; {
			n := p.Length - at
			if n >= mostCopied+splice.LeastCopied { // what is left is long enough, too
				n = mostCopied
			}
			out = append(out, []splice.Piece{cut(p, at, n)})
			at += n
		}
	}
	flush()
	if len(out) > partsMost {
		return nil, fmt.Errorf("%d parts are more than an upload can have", len(out))
	}
	return out, nil
}

func cut(p splice.Piece, at, n int64) splice.Piece {
	p.Offset, p.Length = p.Offset+at, n
	return p
}

// withMagic takes what a file begins with from the object whose row groups are first, where they stand right behind it.
func withMagic(pieces []splice.Piece) ([]splice.Piece, error) {
	const n = int64(len(footer.Magic))
	if len(pieces) < 2 || string(pieces[0].Data) != footer.Magic || pieces[1].From == nil || pieces[1].Offset != n {
		return pieces, nil
	}
	head := make([]byte, n)
	if _, err := pieces[1].From.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if string(head) != footer.Magic {
		return nil, fmt.Errorf("%s does not begin like a Parquet file", pieces[1].From.URI)
	}
	first := pieces[1]
	first.Offset, first.Length = 0, first.Length+n
	return append([]splice.Piece{first}, pieces[2:]...), nil
}
