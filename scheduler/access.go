package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/objects"
)

const (
	maxAccessFiles  = 512    // that one request may ask for
	maxAttemptNames = 10_000 // files that one attempt may write
)

// Access implements dispatch.Handler: it answers, with requests that are signed, what an attempt or an analysis needs of object stores. The pool has made sure that the
// executor holds the one or was asked for the other. Nothing of the answer is journalled or logged.
func (s *Server) Access(ctx context.Context, executor string, r *executorv1.AccessRequest, analysis *executorv1.Analyze) *executorv1.Access {
	out, err := s.grant(ctx, r, analysis)
	if err == nil {
		return out
	}
	class := planv1.ErrorClass_ERROR_CLASS_IO // to be asked for again
	switch {
	case errors.Is(err, credentials.ErrRefused):
		class = planv1.ErrorClass_ERROR_CLASS_INTERNAL
	case errors.Is(err, credentials.ErrAssume): // whoever asks, and however often
		class = planv1.ErrorClass_ERROR_CLASS_USER
	}
	s.log.Warn("no access was given", "executor", executor, "attempt", r.GetAttempt().GetAttemptId(), "error", err)
	return &executorv1.Access{Error: &planv1.Error{Class: class, Message: err.Error()}}
}

func (s *Server) grant(ctx context.Context, r *executorv1.AccessRequest, analysis *executorv1.Analyze) (*executorv1.Access, error) {
	if n := len(r.GetReads()) + len(r.GetPuts()); n > maxAccessFiles {
		return nil, fmt.Errorf("%w: it asks for %d files at a time, and may ask for %d", credentials.ErrRefused, n, maxAccessFiles)
	}
	sources := analysisSources(analysis)
	var err error
	var a *attempt
	if ref := r.GetAttempt(); ref != nil {
		if a, err = s.openAs(ref); err != nil {
			return nil, err
		}
		sources = a.task.GetSources()
	}
	out := &executorv1.Access{}
	start := time.Now()
	until := start.Add(credentials.Lifetime)
	if out.Reads, err = s.reads(ctx, sources, r.GetReads(), &until); err != nil {
		return nil, err
	}
	if r.GetWrite() {
		session := start.Add(credentials.MaxSession)
		if out.Write, err = s.writeSession(ctx, a, &session); err != nil {
			return nil, err
		}
		if out.Write != nil { // with which the executor signs by itself
			r.Puts = nil
			if len(r.GetReads()) == 0 || session.Before(until) {
				until = session
			}
		}
	}
	if out.Puts, err = s.signPuts(ctx, a, r.GetPuts(), &until); err != nil {
		return nil, err
	}
	if a != nil { // it may have ended meanwhile
		if _, err := s.openAs(r.GetAttempt()); err != nil {
			return nil, err
		}
	}
	out.ValidMillis = max(until.Sub(start).Milliseconds(), 1)
	return out, nil
}

// writes is the write that the attempt is a part of.
func (a *attempt) writes() (*writeState, error) {
	var w *writeState
	if a != nil {
		a.job.mu.Lock()
		w = a.job.write
		a.job.mu.Unlock()
	}
	if w == nil || w.task(a.ref.GetStage(), a.ref.GetTask()) == nil {
		return nil, fmt.Errorf("%w: it writes no files", credentials.ErrRefused)
	}
	return w, nil
}

// openAs is the attempt that is open under exactly these ids.
func (s *Server) openAs(ref *executorv1.AttemptRef) (*attempt, error) {
	a := s.attempt(ref.GetAttemptId())
	if a != nil && mutant.On("scheduler/access-after-the-end") {
		return a, nil
	}
	if a == nil || a.job.ctx.Err() != nil || a.ref.Epoch != ref.GetEpoch() || a.ref.JobId != ref.GetJobId() || a.ref.Stage != ref.GetStage() || a.ref.Task != ref.GetTask() {
		return nil, fmt.Errorf("%w: attempt %q is not open", credentials.ErrRefused, ref.GetAttemptId())
	}
	return a, nil
}

// analysisSources are the sources of an analysis.
func analysisSources(r *executorv1.Analyze) []*planv1.Source {
	if r.GetSplice() != nil {
		return r.GetSplice().GetSources()
	}
	return r.GetSources()
}

// remoteFiles are the URIs of the files in object stores that sources name, each with the table whose catalog's store has it.
func remoteFiles(sources []*planv1.Source) map[string]*planv1.TableScan {
	out := map[string]*planv1.TableScan{}
	for _, src := range sources {
		t := src.GetTable()
		for _, f := range t.GetFiles() {
			if f.GetUri() != "" {
				out[f.GetUri()] = t
			}
			for _, d := range f.GetDeletes() {
				if d.GetUri() != "" {
					out[d.GetUri()] = t
				}
			}
		}
	}
	return out
}

func (s *Server) signReads(ctx context.Context, sources []*planv1.Source, uris []string, until *time.Time) ([]*executorv1.SignedRequest, error) {
	if len(uris) == 0 {
		return nil, nil
	}
	files := remoteFiles(sources)
	if mutant.On("scheduler/access-to-any-file") {
		for _, u := range uris {
			files[u] = &planv1.TableScan{Catalog: s.catalogNames()[0]}
		}
	}
	out := make([]*executorv1.SignedRequest, 0, len(uris))
	scope := credentials.Scope{Reads: map[string]struct{}{}}
	for u := range files {
		scope.Reads[u] = struct{}{}
	}
	for _, u := range uris {
		entry := s.catalogs[files[u].GetCatalog()]
		if entry == nil { // which no scope has either
			return nil, fmt.Errorf("%w: %q is none of the files that this is about", credentials.ErrRefused, u)
		}
		signed, err := entry.issuer(files[u].GetIdent()).Read(ctx, scope, []string{u})
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", u, err)
		}
		out = append(out, signedRequest(u, signed[0], until))
	}
	return out, nil
}

func (s *Server) signPuts(ctx context.Context, a *attempt, puts []*executorv1.PutRequest, until *time.Time) ([]*executorv1.SignedRequest, error) {
	if len(puts) == 0 {
		return nil, nil
	}
	w, err := a.writes()
	if err != nil {
		return nil, err
	}
	ref, requests := a.ref, make([]credentials.Put, 0, len(puts))
	for _, p := range puts {
		if !a.names.add(p.GetName()) {
			return nil, fmt.Errorf("%w: attempt %s asks for more than %d files", credentials.ErrRefused, ref.GetAttemptId(), maxAttemptNames)
		}
		requests = append(requests, credentials.Put{
			Name: p.GetName(), Size: p.GetSizeBytes(), CRC32C: p.GetCrc32C(), UploadID: p.GetUploadId(), Part: int(p.GetPart()), Begin: p.GetBegin(), Abort: p.GetAbort(),
			Head: p.GetHead(), Copy: copyRange(p.GetCopy()),
		})
	}
	scope := credentials.Scope{
		Prefix: attemptPrefix(w.spec, ref.GetJobId(), ref.GetStage(), ref.GetTask(), ref.GetAttemptId()), Nonce: ref.GetAttemptId(),
	}
	if scope.Copies, err = s.copySources(ctx, w.target, a.task, puts); err != nil {
		return nil, err
	}
	signed, err := w.target.entry.issuer(w.target.ident).Put(ctx, scope, requests)
	if err != nil {
		return nil, fmt.Errorf("files below %s: %w", scope.Prefix, err)
	}
	out := make([]*executorv1.SignedRequest, 0, len(signed))
	for n := range signed {
		out = append(out, signedRequest(scope.Prefix+"/"+requests[n].Name, signed[n], until))
	}
	return out, nil
}

func signedRequest(uri string, s objects.Signed, until *time.Time) *executorv1.SignedRequest {
	out := &executorv1.SignedRequest{Uri: uri, Method: s.Method, Url: s.URL, Headers: map[string]string{}, UploadId: s.UploadID}
	for name, values := range s.Header {
		out.Headers[name] = strings.Join(values, ",")
	}
	if !s.Until.IsZero() && s.Until.Before(*until) {
		*until = s.Until
	}
	return out
}

// names are those of the files that an attempt has asked to write.
type names struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// add counts a name once. False: there are too many.
func (n *names) add(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[name]; ok {
		return true
	}
	if len(n.seen) >= maxAttemptNames {
		return false
	}
	if n.seen == nil {
		n.seen = map[string]struct{}{}
	}
	n.seen[name] = struct{}{}
	return true
}

// issuer gives access to the files of a table, with what the catalog gives for that table, or with the operator's own credentials.
func (e *catalogEntry) issuer(table catalog.Ident) credentials.Issuer {
	return credentials.NewPresigned(func(ctx context.Context, uri string, what objects.Signing) (objects.Signed, error) {
		return e.sign(ctx, table, uri, what)
	}, 0)
}

// sign presigns a request for one object.
func (e *catalogEntry) sign(ctx context.Context, table catalog.Ident, uri string, what objects.Signing) (objects.Signed, error) {
	store, err := e.store(ctx, table, uri[:max(strings.LastIndexByte(uri, '/'), 0)])
	if err != nil {
		return objects.Signed{}, err
	}
	signer, ok := store.(storage.Signer)
	if !ok {
		return objects.Signed{}, fmt.Errorf("%w: the store of %s signs no requests", credentials.ErrRefused, uri)
	}
	return signer.Sign(ctx, uri, what)
}
