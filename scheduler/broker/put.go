package broker

import (
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/rpc"
)

// maxObject caps an object that a plugin creates, in bytes.
const maxObject = 4 << 30

type putStream = grpc.ClientStreamingServer[hostv1.PutIfAbsentRequest, hostv1.PutIfAbsentResponse]

// PutIfAbsent creates an object, which may be a commit point.
func (s *storageService) PutIfAbsent(st putStream) error {
	l, store, err := s.open(st.Context())
	if err != nil {
		return err
	}
	first, err := st.Recv()
	if err != nil {
		return invalid("the first message names the object")
	}
	done, err := l.beginPut()
	if err != nil {
		return err
	}
	defer done()
	if err := l.creatable(store, first.GetUri(), first.GetCommitPoint() != nil); err != nil {
		return err
	}
	body := &putBody{lease: l, st: st, rest: first.GetData(), left: maxObject}
	var info storage.Info
	if cp := first.GetCommitPoint(); cp != nil {
		info, err = l.commitObject(st.Context(), store, first.GetUri(), cp, body)
	} else {
		info, err = l.put(st.Context(), store, first.GetUri(), body)
	}
	if err != nil {
		return s.b.explain(l, "create "+first.GetUri(), errors.Join(body.err, err))
	}
	return st.SendAndClose(&hostv1.PutIfAbsentResponse{Size: info.Size, Etag: info.ETag})
}

// beginPut lets a stream in; Close ends its body, and Sweep waits for it. A storage sink may create more after its commit has landed: a checkpoint of it.
func (l *Lease) beginPut() (func(), error) {
	if err := l.writable(); err != nil && (l.spec.Catalog != nil || l.hasLanded() == nil || l.spec.ReadOnly) {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, refuse(kindFenced, "the lease is closed")
	}
	l.puts.Add(1)
	return l.puts.Done, nil
}

func (l *Lease) put(ctx context.Context, store storage.Store, uri string, body io.Reader) (storage.Info, error) {
	if err := fault.Hit("broker.put.before"); err != nil {
		return storage.Info{}, err
	}
	info, err := store.PutIfAbsent(ctx, uri, body)
	switch {
	case err == nil:
		l.addCreated(uri, true)
	case !errors.Is(err, storage.ErrExists):
		l.addCreated(uri, false) // it may be there whole
	}
	if err == nil {
		err = fault.Hit("broker.put.after")
	}
	return info, err
}

// putBody reads the data of a stream. It ends well only when the plugin has ended the stream and the lease still lives.
type putBody struct {
	lease *Lease
	st    putStream
	rest  []byte
	left  int64
	err   error // why the body ended badly
}

func (p *putBody) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		m, err := p.st.Recv()
		if errors.Is(err, io.EOF) {
			return 0, p.end()
		}
		if err != nil {
			return 0, p.fail(err)
		}
		if m.GetUri() != "" || m.GetCommitPoint() != nil {
			return 0, p.fail(invalid("only the first message names the object"))
		}
		p.rest = m.GetData()
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	if p.left -= int64(n); p.left < 0 {
		return 0, p.fail(invalid("the object passes %d bytes", int64(maxObject)))
	}
	return n, nil
}

func (p *putBody) end() error {
	if err := p.lease.live(); err != nil {
		return p.fail(err)
	}
	return io.EOF
}

func (p *putBody) fail(err error) error {
	p.err = err
	return err
}

// commitObject creates the object that makes a commit visible, under the seal.
func (l *Lease) commitObject(ctx context.Context, store storage.Store, uri string, cp *hostv1.CommitPoint, body io.Reader) (storage.Info, error) {
	l.committing.Lock()
	defer l.committing.Unlock()
	if err := l.mayCommit(ctx); err != nil {
		return storage.Info{}, err
	}
	if l.spec.Sink.GetCommitPoint() != sinkv1.CommitPoint_COMMIT_POINT_STORAGE {
		return storage.Info{}, refuse(kindPermanent, "sink %s has no commit point in storage", l.spec.Sink.GetName())
	}
	content, err := l.b.bodies.read(body, l.spec.Markers)
	if err != nil {
		return storage.Info{}, err
	}
	sealed := false
	defer func() {
		if !sealed { // from the seal on the attempt needs it
			l.b.Forget(&coordinator.Attempt{Apart: content.apart})
		}
	}()
	if err := l.vetObject(cp, content); err != nil {
		return storage.Info{}, err
	}
	a := coordinator.Attempt{
		Kind: coordinator.KindStorage, Version: cp.GetVersion(), ParentVersion: cp.GetParent(), Markers: l.spec.Markers,
		TableUUID: l.spec.TableUUID, Location: store.Location(), URI: uri, Body: content.data, Apart: content.apart,
	}
	t := &storageTarget{store: store, bodies: &l.b.bodies}
	if err := l.taken(ctx, t, &a); err != nil {
		return storage.Info{}, err
	}
	r, err := l.seal(ctx, a, t)
	if err != nil {
		return storage.Info{}, err
	}
	sealed = true
	if _, err := l.outcomeOf(ctx, r); err != nil {
		return storage.Info{}, err
	}
	l.addCreated(uri, true)
	info, err := store.Stat(ctx, uri)
	if err != nil { // it landed: what is known must still get through
		return storage.Info{URI: uri, Size: content.size()}, nil
	}
	return info, nil
}

// taken looks before anything is sealed: the name may hold this very commit from before a crash, or somebody else's.
func (l *Lease) taken(ctx context.Context, t target, a *coordinator.Attempt) error {
	switch o, err := look(ctx, t, a); {
	case err != nil:
		return err
	case o.Kind == coordinator.OutcomeLanded:
		l.markLanded(o.Version, o.Location)
		return alreadyAt(o.Version, o.Location)
	case o.Kind == coordinator.OutcomeDead:
		return refuse(kindConflict, "%s", o.Reason)
	default:
		return nil
	}
}

// vetObject: the object carries the markers in clear, so that two jobs never write the same bytes and a later look finds them.
func (l *Lease) vetObject(cp *hostv1.CommitPoint, content *body) error {
	switch {
	case content.size() == 0:
		return invalid("an empty commit object")
	case cp.GetVersion() == "":
		return invalid("the commit point has no version")
	}
	got := slices.Sorted(slices.Values(cp.GetMarkers()))
	if want := slices.Sorted(slices.Values(l.spec.Markers)); !slices.Equal(got, want) {
		return invalid("the commit point names markers %q: want exactly %q", got, want)
	}
	if len(content.lacks) > 0 {
		return invalid("the commit object does not contain marker %q: it could not be found again", content.lacks[0])
	}
	return nil
}

// ReplaceIf replaces a declared hint.
func (s *storageService) ReplaceIf(ctx context.Context, r *hostv1.ReplaceIfRequest) (*hostv1.ReplaceIfResponse, error) {
	l, store, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	rel, err := store.Rel(r.GetUri())
	switch {
	case err != nil:
		return nil, refuse(kindPermanent, "%q is outside of the table", r.GetUri())
	case l.spec.ReadOnly:
		return nil, refuse(kindPermanent, "the lease is read-only")
	case !slices.Contains(l.spec.Sink.GetHints(), rel):
		return nil, refuse(kindPermanent, "%q is none of the hints that sink %s declared", rel, l.spec.Sink.GetName())
	case len(r.GetData()) > rpc.Chunk:
		return nil, invalid("a hint of %d bytes, limit %d", len(r.GetData()), rpc.Chunk)
	}
	if err := fault.Hit("broker.hint.before"); err != nil {
		return nil, s.b.explain(l, "replace "+r.GetUri(), err)
	}
	i, err := store.ReplaceIf(ctx, r.GetUri(), r.GetEtag(), r.GetData())
	if err != nil {
		return nil, s.b.explain(l, "replace "+r.GetUri(), err)
	}
	return &hostv1.ReplaceIfResponse{Etag: i.ETag}, nil
}
