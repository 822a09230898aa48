package sinktest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/protocol"
	"github.com/signet-io/signet/plugins/sdk"
)

// Host is host.v1 in memory, for one table of a sink without a catalog. The zero value is not usable.
type Host struct {
	Location string
	Lease    string

	mu      sync.Mutex
	objects map[string][]byte
	times   map[string]time.Time
	commits []*hostv1.CommitPoint // that landed, in order
	asked   int
	fenced  bool
	before  func(n int)  // runs before the n-th commit point, from 1
	lose    map[int]bool // commit points that land without an answer
}

// NewHost makes a host of an empty location.
func NewHost(location string) *Host {
	return &Host{Location: location, Lease: rand.Text(), objects: map[string][]byte{}, times: map[string]time.Time{}, lose: map[int]bool{}}
}

// Register registers Catalog and Storage.
func (h *Host) Register(r grpc.ServiceRegistrar) {
	hostv1.RegisterCatalogServer(r, catalogService{h: h})
	hostv1.RegisterStorageServer(r, storageService{h: h})
}

// BeforeCommit runs f before each commit point; f may call anything of the host.
func (h *Host) BeforeCommit(f func(n int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = f
}

// LoseReply lets the next commit point land without an answer.
func (h *Host) LoseReply() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose[h.asked+1] = true
}

// Fence refuses commit points, as after a cancel.
func (h *Host) Fence(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fenced = on
}

// Put creates an object as another writer would.
func (h *Host) Put(uri string, body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[uri], h.times[uri] = body, time.Now()
}

// Body is an object as it is; nil: there is none.
func (h *Host) Body(uri string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects[uri]
}

// Touch sets the time at which an object was made.
func (h *Host) Touch(uri string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[uri] = at
}

// Objects lists what exists.
func (h *Host) Objects() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.objects))
}

// Commits are the commit points that landed.
func (h *Host) Commits() []*hostv1.CommitPoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.commits)
}

func (h *Host) admit(ctx context.Context, uri string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if !slices.Equal(md.Get(protocol.LeaseKey), []string{h.Lease}) {
		return refuse(sdk.Fenced, "no such lease")
	}
	if uri != h.Location && (!strings.HasPrefix(uri, h.Location+"/") || path.Clean(uri[len(h.Location):]) != uri[len(h.Location):]) {
		return refuse(sdk.Permanent, "%s is outside the table", uri)
	}
	return nil
}

func refuse(kind hostv1.RefusalKind, format string, args ...any) error {
	return sdk.Refuse(kind, format, args...)
}

type catalogService struct {
	hostv1.UnimplementedCatalogServer
	h *Host
}

func (s catalogService) LoadTable(_ *hostv1.LoadTableRequest, out hostv1.Catalog_LoadTableServer) error {
	if err := s.h.admit(out.Context(), s.h.Location); err != nil {
		return err
	}
	return out.Send(&hostv1.LoadTableResponse{Missing: true, DefaultLocation: s.h.Location})
}

type storageService struct {
	hostv1.UnimplementedStorageServer
	h *Host
}

func (s storageService) object(ctx context.Context, uri string) ([]byte, error) {
	if err := s.h.admit(ctx, uri); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	body, ok := s.h.objects[uri]
	if !ok {
		return nil, refuse(sdk.NotFound, "%s does not exist", uri)
	}
	return body, nil
}

func (s storageService) Get(req *hostv1.GetRequest, out hostv1.Storage_GetServer) error {
	body, err := s.object(out.Context(), req.GetUri())
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
	body, err := s.object(ctx, req.GetUri())
	return &hostv1.HeadResponse{Size: int64(len(body)), Etag: etag(body), MtimeMillis: s.h.info(req.GetUri()).GetMtimeMillis()}, err
}

// ReplaceIf replaces what the suite takes for a hint: any object.
func (s storageService) ReplaceIf(ctx context.Context, req *hostv1.ReplaceIfRequest) (*hostv1.ReplaceIfResponse, error) {
	if err := s.h.admit(ctx, req.GetUri()); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	body, ok := s.h.objects[req.GetUri()]
	if ok != (req.GetEtag() != "") || ok && etag(body) != req.GetEtag() {
		return nil, refuse(sdk.Conflict, "%s is another one by now", req.GetUri())
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
	if err := s.h.admit(out.Context(), req.GetPrefix()); err != nil {
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
	if err := s.h.admit(in.Context(), first.GetUri()); err != nil {
		return err
	}
	body := bytes.NewBuffer(first.GetData())
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
	if err := s.h.put(first.GetUri(), body.Bytes(), first.GetCommitPoint()); err != nil {
		return err
	}
	return in.SendAndClose(&hostv1.PutIfAbsentResponse{Size: int64(body.Len())})
}

func (h *Host) put(uri string, body []byte, point *hostv1.CommitPoint) error {
	lost := false
	if point != nil {
		h.mu.Lock()
		h.asked++
		n, before := h.asked, h.before
		lost = h.lose[n]
		h.mu.Unlock()
		if before != nil {
			before(n)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, exists := h.objects[uri]
	switch {
	case point != nil && h.fenced:
		return refuse(sdk.Fenced, "the job was cancelled")
	case point != nil && exists:
		return refuse(sdk.Conflict, "version %s exists", point.GetVersion())
	case exists:
		return refuse(sdk.Exists, "%s exists", uri)
	}
	h.objects[uri], h.times[uri] = bytes.Clone(body), time.Now()
	if point != nil {
		h.commits = append(h.commits, point)
	}
	if lost {
		return refuse(sdk.Unknown, "the answer was lost")
	}
	return nil
}
