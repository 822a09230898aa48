package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/protocol"
)

// Host speaks to the scheduler on behalf of one call. It is bound to the call's lease, hence to one job and one table, and is safe for
// concurrent use until the call returns. Refusals are *RefusalError; any other error means that the answer is missing.
type Host struct {
	lease    string
	track    *tracker
	catalog  hostv1.CatalogClient
	storage  hostv1.StorageClient
	seal     hostv1.SealClient
	secrets  hostv1.SecretsClient
	dial     hostv1.DialClient
	log      hostv1.LogClient
	progress hostv1.ProgressClient
}

type hostKey struct{}

// HostFrom gives the host of the call whose context this is. It is never nil; outside a call its methods return ErrNoHost.
func HostFrom(ctx context.Context) *Host {
	if h, ok := ctx.Value(hostKey{}).(*Host); ok {
		return h
	}
	return newHost(noConn{}, "")
}

// WithHost binds a context to a host connection and a lease. Serve does this for every call; tests of a sink's inner parts may use it too.
func WithHost(ctx context.Context, conn grpc.ClientConnInterface, lease string) context.Context {
	return context.WithValue(ctx, hostKey{}, newHost(conn, lease))
}

func newHost(conn grpc.ClientConnInterface, lease string) *Host {
	return &Host{
		lease: lease, track: &tracker{}, catalog: hostv1.NewCatalogClient(conn), storage: hostv1.NewStorageClient(conn),
		seal: hostv1.NewSealClient(conn), secrets: hostv1.NewSecretsClient(conn), dial: hostv1.NewDialClient(conn),
		log: hostv1.NewLogClient(conn), progress: hostv1.NewProgressClient(conn),
	}
}

func (h *Host) bind(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(passTrace(ctx), protocol.LeaseKey, h.lease)
}

// LoadTable loads the table's metadata from the host's catalog. Where known is still the current metadata location, loc equals known and
// metadata is nil. Where there is no table, missing is set and defaultLocation says where it would be created.
func (h *Host) LoadTable(ctx context.Context, known string) (loc string, meta []byte, missing bool, defaultLocation string, err error) {
	ctx, cancel := context.WithCancel(h.bind(ctx))
	defer cancel()
	stream, err := h.catalog.LoadTable(ctx, &hostv1.LoadTableRequest{KnownLocation: known})
	if err != nil {
		return "", nil, false, "", FromStatus(err)
	}
	for first := true; ; first = false {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && first:
			return "", nil, false, "", fmt.Errorf("LoadTable: %w", io.ErrUnexpectedEOF)
		case errors.Is(err, io.EOF):
			return loc, meta, missing, defaultLocation, nil
		case err != nil:
			return "", nil, false, "", FromStatus(err)
		}
		if first {
			loc, missing, defaultLocation = m.GetLocation(), m.GetMissing(), m.GetDefaultLocation()
			if m.GetUnchanged() {
				loc = known
			}
		}
		meta = append(meta, m.GetMetadata()...)
	}
}

// Location is the URI of the table's directory: where it is, or where it would be created. For a sink without a catalog it is the whole
// of what the host knows about the table.
func (h *Host) Location(ctx context.Context) (string, error) {
	_, meta, missing, location, err := h.LoadTable(ctx, "")
	if err != nil || missing {
		return location, err
	}
	var m struct {
		Location string `json:"location"`
	}
	if err := json.Unmarshal(meta, &m); err != nil {
		return "", fmt.Errorf("table metadata: %w", err)
	}
	return m.Location, nil
}

// CommitTable is a commit point. Requirements and updates are Iceberg REST JSON arrays; version is the new snapshot's id.
func (h *Host) CommitTable(ctx context.Context, requirements, updates []byte) (loc, version string, err error) {
	ctx, cancel := context.WithCancel(h.bind(ctx))
	defer cancel()
	stream, err := h.catalog.CommitTable(ctx)
	if err != nil {
		return "", "", FromStatus(err)
	}
	if err := h.track.ask(); err != nil {
		return "", "", err
	}
	for send := true; send; send = len(requirements)+len(updates) > 0 {
		req := &hostv1.CommitTableRequest{}
		req.Requirements, requirements = split(requirements, rpc.Chunk)
		req.Updates, updates = split(updates, rpc.Chunk-len(req.Requirements))
		if err := stream.Send(req); err != nil {
			break // the reason comes with the reply
		}
	}
	resp, err := stream.CloseAndRecv()
	err = FromStatus(err)
	if err := h.track.answer(resp.GetVersion(), resp.GetLocation(), err); err != nil {
		return "", "", err
	}
	return resp.GetLocation(), resp.GetVersion(), nil
}

func split(b []byte, n int) (head, tail []byte) {
	n = min(max(n, 0), len(b))
	return b[:n], b[n:]
}

// CreateTable creates the table in the host's catalog and returns its metadata as the catalog has it: some reassign field ids.
func (h *Host) CreateTable(ctx context.Context, req *hostv1.CreateTableRequest) (loc string, meta []byte, err error) {
	resp, err := h.catalog.CreateTable(h.bind(ctx), req)
	return resp.GetLocation(), resp.GetMetadata(), FromStatus(err)
}

// DropTable removes the table from the host's catalog. Files stay.
func (h *Host) DropTable(ctx context.Context) error {
	_, err := h.catalog.DropTable(h.bind(ctx), &hostv1.DropTableRequest{})
	return FromStatus(err)
}

// TakeSeal asks for the durable seal of one attempt, for a commit point outside the host's catalog and storage. After it the commit request
// may be sent, once; ReportSeal must follow with what became of it.
func (h *Host) TakeSeal(ctx context.Context, point *hostv1.CommitPoint, requestDigest []byte) (attempt int64, err error) {
	resp, err := h.seal.Take(h.bind(ctx), &hostv1.TakeRequest{CommitPoint: point, RequestDigest: requestDigest})
	if err = FromStatus(err); err != nil {
		return 0, err
	}
	return resp.GetAttempt(), h.track.ask()
}

// ReportSeal says how the sealed attempt ended: nil means that it landed as version; a *RefusalError says otherwise; any other error
// leaves it unknown.
func (h *Host) ReportSeal(ctx context.Context, attempt int64, version string, outcome error) error {
	req := &hostv1.ReportRequest{Attempt: attempt, Version: version}
	if outcome != nil {
		req.Kind, req.Message = Unknown, outcome.Error()
		if r := new(RefusalError); errors.As(outcome, &r) {
			req.Kind = r.Kind
		}
	}
	_ = h.track.answer(version, "", outcome)
	_, err := h.seal.Report(h.bind(ctx), req)
	return FromStatus(err)
}

// Secret gives a secret that the operator listed for this plugin.
func (h *Host) Secret(ctx context.Context, name string) ([]byte, error) {
	resp, err := h.secrets.GetSecret(h.bind(ctx), &hostv1.GetSecretRequest{Name: name})
	return resp.GetValue(), FromStatus(err)
}

// Log writes to the operator's log, with the job and the table that the lease names. Level is debug, info, warn or error.
func (h *Host) Log(ctx context.Context, level, message string, attributes map[string]string) error {
	_, err := h.log.Write(h.bind(ctx), &hostv1.WriteRequest{Level: level, Message: message, Attributes: attributes})
	return FromStatus(err)
}

// Progress tells the user what the call is doing; fraction is 0 to 1.
func (h *Host) Progress(ctx context.Context, phase string, fraction float64) error {
	_, err := h.progress.Update(h.bind(ctx), &hostv1.UpdateRequest{Phase: phase, Fraction: fraction})
	return FromStatus(err)
}

// noConn answers every call with ErrNoHost.
type noConn struct{}

func (noConn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return ErrNoHost }

func (noConn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, ErrNoHost
}
