package broker

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/rpc"
)

// storageService serves host.v1.Storage.
type storageService struct {
	hostv1.UnimplementedStorageServer
	b *Broker
}

// open finds the lease of a call and its store.
func (s *storageService) open(ctx context.Context) (*Lease, storage.Store, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := l.live(); err != nil {
		return nil, nil, err
	}
	st, err := l.openStore(ctx)
	if err != nil {
		return nil, nil, s.b.explain(l, "open the table's storage", err)
	}
	return l, st, nil
}

// within refuses a URI outside of the table before anything looks at it.
func within(s storage.Store, uri string) error {
	if _, err := s.Rel(uri); err != nil {
		return refuse(kindPermanent, "%q is outside of the table", uri)
	}
	return nil
}

// Get streams an object, or a part of it.
func (s *storageService) Get(r *hostv1.GetRequest, st grpc.ServerStreamingServer[hostv1.GetResponse]) error {
	l, store, err := s.open(st.Context())
	if err != nil {
		return err
	}
	if err := within(store, r.GetUri()); err != nil {
		return err
	}
	o, err := store.Open(st.Context(), r.GetUri())
	if err != nil {
		return s.b.explain(l, "get "+r.GetUri(), err)
	}
	defer o.Close()
	size := o.Size()
	if r.GetOffset() < 0 || r.GetLength() < 0 || r.GetOffset() > size {
		return invalid("range %d+%d of an object of %d bytes", r.GetOffset(), r.GetLength(), size)
	}
	end := size
	if n := r.GetLength(); n > 0 && n < size-r.GetOffset() {
		end = r.GetOffset() + n
	}
	for off := r.GetOffset(); ; {
		buf := make([]byte, min(rpc.Chunk, end-off))
		if n, err := o.ReadAt(buf, off); err != nil && (!errors.Is(err, io.EOF) || n < len(buf)) {
			return s.b.explain(l, "get "+r.GetUri(), err)
		}
		if err := st.Send(&hostv1.GetResponse{Data: buf, Size: size}); err != nil {
			return err
		}
		if off += int64(len(buf)); off >= end {
			return nil
		}
		if err := l.live(); err != nil {
			return err
		}
	}
}

// Head describes an object.
func (s *storageService) Head(ctx context.Context, r *hostv1.HeadRequest) (*hostv1.HeadResponse, error) {
	l, store, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := within(store, r.GetUri()); err != nil {
		return nil, err
	}
	i, err := store.Stat(ctx, r.GetUri())
	if err != nil {
		return nil, s.b.explain(l, "head "+r.GetUri(), err)
	}
	return &hostv1.HeadResponse{Size: i.Size, MtimeMillis: i.ModTime.UnixMilli(), Etag: i.ETag}, nil
}

const listPage = 1000

// List lists what lies below a directory of the table.
func (s *storageService) List(r *hostv1.ListRequest, st grpc.ServerStreamingServer[hostv1.ListResponse]) error {
	l, store, err := s.open(st.Context())
	if err != nil {
		return err
	}
	if err := within(store, r.GetPrefix()); err != nil {
		return err
	}
	page := &hostv1.ListResponse{}
	err = store.List(st.Context(), r.GetPrefix(), func(i storage.Info) error {
		page.Objects = append(page.Objects, &hostv1.ObjectInfo{Uri: i.URI, Size: i.Size, MtimeMillis: i.ModTime.UnixMilli()})
		if len(page.GetObjects()) < listPage {
			return nil
		}
		full := page
		page = &hostv1.ListResponse{}
		return st.Send(full)
	})
	if err != nil {
		return s.b.explain(l, "list "+r.GetPrefix(), err)
	}
	return st.Send(page)
}
