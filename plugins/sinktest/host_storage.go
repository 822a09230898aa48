package sinktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/sdk"
)

type storageService struct {
	hostv1.UnimplementedStorageServer
	h *Host
}

func (s storageService) object(ctx context.Context, call, uri string) ([]byte, error) {
	if _, err := s.h.enter(ctx, call); err != nil {
		return nil, err
	}
	if _, err := s.h.rel(uri); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	body, ok := s.h.objects[uri]
	catalog := s.h.catalog
	s.h.mu.Unlock()
	if !ok && catalog != nil { // what the catalog itself wrote
		var err error
		if body, err = catalog.Object(uri); err != nil {
			return nil, err
		}
		ok = body != nil
	}
	if !ok {
		return nil, sdk.Refuse(sdk.NotFound, "%s does not exist", uri)
	}
	return body, nil
}

func (s storageService) Get(req *hostv1.GetRequest, out hostv1.Storage_GetServer) error {
	body, err := s.object(out.Context(), "Get", req.GetUri())
	if err != nil {
		return err
	}
	size := int64(len(body))
	part := body[min(req.GetOffset(), size):]
	if n := req.GetLength(); n > 0 {
		part = part[:min(n, int64(len(part)))]
	}
	if len(part) == 0 {
		return out.Send(&hostv1.GetResponse{Size: size})
	}
	for chunk := range slices.Chunk(part, rpc.Chunk) {
		if err := out.Send(&hostv1.GetResponse{Data: chunk, Size: size}); err != nil {
			return err
		}
	}
	return nil
}

func (s storageService) Head(ctx context.Context, req *hostv1.HeadRequest) (*hostv1.HeadResponse, error) {
	body, err := s.object(ctx, "Head", req.GetUri())
	return &hostv1.HeadResponse{Size: int64(len(body)), Etag: etag(body), MtimeMillis: s.h.info(req.GetUri()).GetMtimeMillis()}, err
}

func (s storageService) ReplaceIf(ctx context.Context, req *hostv1.ReplaceIfRequest) (*hostv1.ReplaceIfResponse, error) {
	l, err := s.h.enter(ctx, "ReplaceIf")
	if err != nil {
		return nil, err
	}
	rel, err := s.h.rel(req.GetUri())
	switch {
	case err != nil:
		return nil, err
	case l.use == reading:
		return nil, s.h.overstepped("replace %s in a call that only reads", rel)
	case s.h.desc != nil && !slices.Contains(s.h.desc.GetHints(), rel):
		return nil, s.h.overstepped("replace %s, which is none of the hints that Describe declares", rel)
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	body, ok := s.h.objects[req.GetUri()]
	if ok != (req.GetEtag() != "") || ok && etag(body) != req.GetEtag() {
		return nil, sdk.Refuse(sdk.Conflict, "%s is another one by now", req.GetUri())
	}
	s.h.objects[req.GetUri()], s.h.times[req.GetUri()] = bytes.Clone(req.GetData()), time.Now()
	return &hostv1.ReplaceIfResponse{Etag: etag(req.GetData())}, nil
}

func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (h *Host) info(uri string) *hostv1.ObjectInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &hostv1.ObjectInfo{Uri: uri, Size: int64(len(h.objects[uri])), MtimeMillis: h.times[uri].UnixMilli()}
}

func (s storageService) List(req *hostv1.ListRequest, out hostv1.Storage_ListServer) error {
	if _, err := s.h.enter(out.Context(), "List"); err != nil {
		return err
	}
	if _, err := s.h.rel(req.GetPrefix()); err != nil {
		return err
	}
	resp := &hostv1.ListResponse{}
	for _, uri := range s.h.Objects() {
		if strings.HasPrefix(uri, req.GetPrefix()+"/") {
			resp.Objects = append(resp.Objects, s.h.info(uri))
		}
	}
	return out.Send(resp)
}

func (s storageService) PutIfAbsent(in hostv1.Storage_PutIfAbsentServer) error {
	first, err := in.Recv()
	if err != nil {
		return err
	}
	l, err := s.h.enter(in.Context(), "PutIfAbsent")
	if err != nil {
		return err
	}
	point := first.GetCommitPoint()
	if err := s.h.creatable(l, first.GetUri(), point != nil); err != nil {
		return err
	}
	body := bytes.NewBuffer(bytes.Clone(first.GetData()))
	for {
		m, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		body.Write(m.GetData())
	}
	put := func() error { return s.h.put(first.GetUri(), body.Bytes(), point) }
	if point == nil {
		err = put()
	} else if err = s.carries(l, body.Bytes()); err == nil {
		err = s.h.point(in.Context(), l, point, put)
	}
	if err != nil {
		return err
	}
	return in.SendAndClose(&hostv1.PutIfAbsentResponse{Size: int64(body.Len()), Etag: etag(body.Bytes())})
}

// carries: a commit is found again by the markers in it.
func (s storageService) carries(l *lease, body []byte) error {
	for _, m := range l.markers {
		if !bytes.Contains(body, []byte(m)) {
			return s.h.overstepped("a commit object that does not contain the marker %s", m)
		}
	}
	return nil
}

func (h *Host) put(uri string, body []byte, point *hostv1.CommitPoint) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, exists := h.objects[uri]
	switch {
	case point != nil && exists:
		return sdk.Refuse(sdk.Conflict, "version %s exists", point.GetVersion())
	case exists:
		return sdk.Refuse(sdk.Exists, "%s exists", uri)
	}
	h.objects[uri], h.times[uri] = body, time.Now()
	return nil
}
