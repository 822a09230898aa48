package credentials

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/signet-io/signet/internal/objects"
)

// NonceHeader marks an object with who wrote it, so that the loss of an answer is settled by a look at the object.
const NonceHeader = "X-Amz-Meta-Signet-Put" // objects.NonceHeader, as net/http spells it

// presigned signs single requests. It needs nothing of the store but signatures, and is exact to the object.
type presigned struct {
	sign     Sign
	lifetime time.Duration
}

// NewPresigned makes an issuer of presigned requests that are good for a time; 0: Lifetime.
func NewPresigned(sign Sign, lifetime time.Duration) Issuer {
	if lifetime <= 0 {
		lifetime = Lifetime
	}
	return &presigned{sign, lifetime}
}

func (p *presigned) Read(ctx context.Context, s Scope, uris []string) ([]objects.Signed, error) {
	for _, uri := range uris { // all of them, before anything is signed
		if _, ok := s.Reads[uri]; !ok {
			return nil, fmt.Errorf("%w: %q is none of the files that this is about", ErrRefused, uri)
		}
	}
	out := make([]objects.Signed, 0, len(uris))
	for _, uri := range uris {
		signed, err := p.sign(ctx, uri, objects.Signing{Method: http.MethodGet, For: p.lifetime})
		if err != nil {
			return nil, err
		}
		out = append(out, signed)
	}
	return out, nil
}

func (p *presigned) Put(ctx context.Context, s Scope, puts []Put) ([]objects.Signed, error) {
	if len(puts) > 0 && (s.Prefix == "" || s.Nonce == "") {
		return nil, fmt.Errorf("%w: it writes nothing", ErrRefused)
	}
	for n := range puts {
		if err := checkPut(&puts[n]); err != nil {
			return nil, err
		}
		if c := puts[n].Copy; c != nil {
			if _, ok := s.Copies[c.URI]; !ok {
				return nil, fmt.Errorf("%w: %q is none of the files that this may copy from", ErrRefused, c.URI)
			}
		}
	}
	out := make([]objects.Signed, 0, len(puts))
	for n := range puts {
		what := puts[n].Signing(s.Nonce)
		what.For = p.lifetime
		if c := puts[n].Copy; c != nil {
			from := s.Copies[c.URI]
			from.Off, from.Size = c.Off, c.Size
			what.From = &from
		}
		signed, err := p.sign(ctx, s.Prefix+"/"+puts[n].Name, what)
		if err != nil {
			return nil, err
		}
		out = append(out, signed)
	}
	return out, nil
}
