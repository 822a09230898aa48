package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// storeSession writes an attempt's files with a session of the store's, which the store's own policy engine bounds to the attempt's prefix. Where the scheduler gives none,
// each request is signed by the scheduler. The session's keys are in this process' memory while the attempt runs, and nowhere else.
type storeSession struct {
	access access
	prefix string

	mu     sync.Mutex
	none   bool // there is no session for this store
	client objects.Client
	keys   string    // what the client's keys begin with
	renew  time.Time // when four fifths of the session's life are over
	until  time.Time
}

// Puts signs what writes, or looks at, files of the attempt: by itself with a session, or through the scheduler.
func (s *storeSession) Puts(ctx context.Context, puts []*executorv1.PutRequest) ([]*executorv1.SignedRequest, error) {
	if slices.ContainsFunc(puts, func(p *executorv1.PutRequest) bool { return p.GetCopy() != nil }) { // a session reaches no source
		return s.access.Puts(ctx, puts)
	}
	client, signed, err := s.open(ctx, puts)
	switch {
	case err != nil:
		return nil, err
	case signed != nil:
		return signed, nil
	case client == nil:
		return s.access.Puts(ctx, puts)
	}
	out := make([]*executorv1.SignedRequest, 0, len(puts))
	for _, p := range puts {
		f := objects.FilePut{
			Name: p.GetName(), Size: p.GetSizeBytes(), CRC32C: p.GetCrc32C(), UploadID: p.GetUploadId(), Part: int(p.GetPart()), Begin: p.GetBegin(), Abort: p.GetAbort(), Head: p.GetHead(),
		}
		what := f.Signing(s.access.attempt.GetAttemptId())
		what.Key = s.keys + "/" + f.Name
		what.For = signedFor
		r, err := client.Sign(ctx, what)
		if err != nil {
			return nil, err
		}
		signed := &executorv1.SignedRequest{Uri: s.prefix + "/" + f.Name, Method: r.Method, Url: r.URL, Headers: map[string]string{}}
		for name, values := range r.Header {
			signed.Headers[name] = strings.Join(values, ",")
		}
		out = append(out, signed)
	}
	return out, nil
}

// signedFor is how long a request that is signed here is good for; it is sent at once.
const signedFor = 15 * time.Minute

// Refused says that the store does not take what was signed any more, though it should: the next request is signed with a new session.
func (s *storeSession) Refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew, s.until = time.Time{}, time.Time{}
	if s.access.e.objects.Ahead().Abs() > clocksApart {
		s.none, s.client = true, nil
	}
}

// clocksApart is how far the store's clock may be from this machine's where it refuses what was signed here; stores take signatures of 15 minutes. Beyond that the
// scheduler signs, which goes by the store's clock.
const clocksApart = 5 * time.Minute

// open asks for a session, and for another one before it runs out. Where none is given the client is nil, and the requests may have been signed instead.
func (s *storeSession) open(ctx context.Context, puts []*executorv1.PutRequest) (objects.Client, []*executorv1.SignedRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.none || s.client != nil && time.Now().Before(s.renew) {
		return s.client, nil, nil
	}
	if len(puts) > accessBatch {
		puts = nil
	}
	asked := time.Now()
	a, err := s.access.ask(ctx, &executorv1.AccessRequest{Write: true, Puts: puts})
	if err != nil {
		if s.client != nil && time.Now().Before(s.until) { // it still lives
			s.renew = time.Now().Add(time.Until(s.until) / 2)
			return s.client, nil, nil
		}
		return nil, nil, err
	}
	given := a.GetWrite()
	if given == nil {
		s.none, s.client = true, nil
		if len(a.GetPuts()) != len(puts) {
			return nil, nil, fmt.Errorf("%w: it answered %d requests for %d files", errNoAccess, len(a.GetPuts()), len(puts))
		}
		return nil, a.GetPuts(), nil
	}
	if given.GetPrefix() != s.prefix {
		return nil, nil, fmt.Errorf("%w: a session for %s was given instead of one for %s", errNoAccess, given.GetPrefix(), s.prefix)
	}
	at, err := uri.Parse(s.prefix)
	if err != nil {
		return nil, nil, err
	}
	props := objects.Props(given.GetProperties())
	client, err := objects.NewS3(props, at.Authority, objects.Static(props))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.prefix, err)
	}
	life := time.Duration(a.GetValidMillis()) * time.Millisecond
	s.client, s.keys, s.renew, s.until = client, at.Path(), asked.Add(life*4/5), asked.Add(life)
	return client, nil, nil
}
