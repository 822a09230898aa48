package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime/debug"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
)

// Connector gives the connection to the host's services. id is that of DescribeRequest.host_connection.
type Connector func(ctx context.Context, id uint32) (grpc.ClientConnInterface, error)

// server adapts a Sink to signet.sink.v1. It is the one edge at which errors become gRPC codes.
type server struct {
	sinkv1.UnimplementedSinkServer
	sink    Sink
	connect Connector

	mu   sync.Mutex
	host grpc.ClientConnInterface
}

// NewServer serves a sink inside this process; Serve and the test helpers are built on it.
func NewServer(sink Sink, connect Connector) sinkv1.SinkServer {
	return &server{sink: sink, connect: connect}
}

// describe completes the sink's own description with what its type says, and checks it.
func describe(sink Sink) (*sinkv1.DescribeResponse, error) {
	d := sink.Describe()
	if d.GetName() == "" || d.GetCommitPoint() == sinkv1.CommitPoint_COMMIT_POINT_UNSPECIFIED {
		return nil, errors.New("Describe must give a name and a commit point")
	}
	for _, p := range slices.Concat(d.GetCreates(), d.GetCommitPoints(), d.GetHints()) {
		if _, err := path.Match(p, "x"); err != nil || !fs.ValidPath(p) {
			return nil, fmt.Errorf("Describe: %q is not a relative pattern as Go's path.Match takes it", p)
		}
	}
	for c, has := range optional(sink) {
		declared := slices.Contains(d.GetCapabilities(), c)
		if declared && !has {
			return nil, fmt.Errorf("Describe declares %s without its method", c)
		}
		if has && !declared {
			d.Capabilities = append(d.Capabilities, c)
		}
	}
	slices.Sort(d.Capabilities)
	return d, nil
}

func optional(sink Sink) map[sinkv1.Capability]bool {
	_, create := sink.(TableCreator)
	_, drop := sink.(TableDropper)
	_, desc := sink.(TableDescriber)
	_, scan := sink.(ScanPlanner)
	_, alter := sink.(TableAlterer)
	_, abort := sink.(Aborter)
	_, history := sink.(Historian)
	_, maintain := sink.(Maintainer)
	return map[sinkv1.Capability]bool{
		sinkv1.Capability_CAPABILITY_CREATE_TABLE: create, sinkv1.Capability_CAPABILITY_DROP_TABLE: drop,
		sinkv1.Capability_CAPABILITY_DESCRIBE_TABLE: desc, sinkv1.Capability_CAPABILITY_PLAN_SCAN: scan,
		sinkv1.Capability_CAPABILITY_ALTER_TABLE: alter, sinkv1.Capability_CAPABILITY_ABORT: abort,
		sinkv1.Capability_CAPABILITY_HISTORY: history, sinkv1.Capability_CAPABILITY_MAINTAIN: maintain,
	}
}

func (s *server) Describe(ctx context.Context, req *sinkv1.DescribeRequest) (resp *sinkv1.DescribeResponse, err error) {
	defer recovered("Describe", &err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host == nil && s.connect != nil {
		host, err := s.connect(ctx, req.GetHostConnection())
		if err != nil {
			return nil, status.Errorf(codes.Unavailable, "connect to the host's services: %v", err)
		}
		s.host = host
	}
	d, err := describe(s.sink)
	return d, edge(err)
}

// bind gives the context of one call its host.
func (s *server) bind(ctx context.Context, lease string) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.host == nil {
		return ctx
	}
	return WithHost(ctx, s.host, lease)
}

func (s *server) PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	return unary(s, ctx, "PrepareWrite", req, s.sink.PrepareWrite)
}

func (s *server) Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	return unary(s, ctx, "Lookup", req, s.sink.Lookup)
}

func (s *server) Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	ctx = s.bind(ctx, req.GetLease())
	if err := fault.Hit("sdk.commit.before"); err != nil {
		return &sinkv1.CommitResponse{Outcome: sinkv1.Outcome_OUTCOME_RETRYABLE, Message: err.Error()}, nil //nolint:nilerr // it is in the outcome
	}
	resp, err := func() (resp *sinkv1.CommitResponse, err error) {
		defer recovered("Commit", &err)
		return s.sink.Commit(ctx, req)
	}()
	if lost := fault.Hit("sdk.commit.before-reply"); lost != nil {
		return nil, status.Error(codes.Unavailable, lost.Error())
	}
	return HostFrom(ctx).track.outcome(resp, err), nil
}

func (s *server) Stage(stream sinkv1.Sink_StageServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	header := first.GetHeader()
	if header == nil {
		return edge(fmt.Errorf("%w: it does not open with a header", ErrManifest))
	}
	source := &ManifestSource{recv: stream.Recv}
	ctx := s.bind(stream.Context(), header.GetLease())
	resp, err := func() (resp *sinkv1.StageResponse, err error) {
		defer recovered("Stage", &err)
		return s.sink.Stage(ctx, header, source)
	}()
	if err == nil {
		err = staged(resp, source)
	}
	if err == nil {
		err = fault.Hit("sdk.stage.before-reply")
	}
	if err != nil {
		return edge(err)
	}
	return stream.SendAndClose(resp)
}

// staged holds a sink to its contract: everything was read, and the totals are those of what was read.
func staged(resp *sinkv1.StageResponse, source *ManifestSource) error {
	if _, err := source.Next(); err == nil {
		return fmt.Errorf("%w: the sink returned before it had read every manifest", ErrManifest)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	if resp == nil {
		return errors.New("the sink returned no answer from Stage; this is a defect of the sink")
	}
	if t := resp.GetTotals(); t != nil && tallyOf(t) != source.totals {
		return fmt.Errorf("%w: the sink staged %v of %+v", ErrManifest, t, source.totals)
	}
	resp.Totals = source.Totals()
	return nil
}

func (s *server) CreateTable(ctx context.Context, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error) {
	if o, ok := s.sink.(TableCreator); ok {
		return unary(s, ctx, "CreateTable", req, o.CreateTable)
	}
	return s.UnimplementedSinkServer.CreateTable(ctx, req)
}

func (s *server) DropTable(ctx context.Context, req *sinkv1.DropTableRequest) (*sinkv1.DropTableResponse, error) {
	if o, ok := s.sink.(TableDropper); ok {
		return unary(s, ctx, "DropTable", req, o.DropTable)
	}
	return s.UnimplementedSinkServer.DropTable(ctx, req)
}

func (s *server) DescribeTable(ctx context.Context, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	if o, ok := s.sink.(TableDescriber); ok {
		return unary(s, ctx, "DescribeTable", req, o.DescribeTable)
	}
	return s.UnimplementedSinkServer.DescribeTable(ctx, req)
}

func (s *server) AlterTable(ctx context.Context, req *sinkv1.AlterTableRequest) (*sinkv1.AlterTableResponse, error) {
	if o, ok := s.sink.(TableAlterer); ok {
		return unary(s, ctx, "AlterTable", req, o.AlterTable)
	}
	return s.UnimplementedSinkServer.AlterTable(ctx, req)
}

func (s *server) Abort(ctx context.Context, req *sinkv1.AbortRequest) (*sinkv1.AbortResponse, error) {
	if o, ok := s.sink.(Aborter); ok {
		return unary(s, ctx, "Abort", req, o.Abort)
	}
	return s.UnimplementedSinkServer.Abort(ctx, req)
}

func (s *server) PlanScan(req *sinkv1.PlanScanRequest, stream sinkv1.Sink_PlanScanServer) (err error) {
	o, ok := s.sink.(ScanPlanner)
	if !ok {
		return s.UnimplementedSinkServer.PlanScan(req, stream)
	}
	defer func() { err = edge(err) }()
	defer recovered("PlanScan", &err)
	return o.PlanScan(s.bind(stream.Context(), req.GetLease()), req, stream.Send)
}

func (s *server) History(req *sinkv1.HistoryRequest, stream sinkv1.Sink_HistoryServer) (err error) {
	o, ok := s.sink.(Historian)
	if !ok {
		return s.UnimplementedSinkServer.History(req, stream)
	}
	defer func() { err = edge(err) }()
	defer recovered("History", &err)
	return o.History(s.bind(stream.Context(), req.GetLease()), req, stream.Send)
}

func (s *server) Maintain(req *sinkv1.MaintainRequest, stream sinkv1.Sink_MaintainServer) (err error) {
	o, ok := s.sink.(Maintainer)
	if !ok {
		return s.UnimplementedSinkServer.Maintain(req, stream)
	}
	defer func() { err = edge(err) }()
	defer recovered("Maintain", &err)
	return o.Maintain(s.bind(stream.Context(), req.GetLease()), req, stream.Send)
}

// unary is the frame of every call that takes and gives one message.
func unary[Req interface{ GetLease() string }, Resp any](s *server, ctx context.Context, name string, req Req,
	call func(context.Context, Req) (*Resp, error),
) (resp *Resp, err error) {
	defer func() { err = edge(err) }()
	defer recovered(name, &err)
	resp, err = call(s.bind(ctx, req.GetLease()), req)
	if err == nil && resp == nil {
		err = fmt.Errorf("the sink returned no answer from %s; this is a defect of the sink", name)
	}
	return resp, err
}

// ErrPanic is wrapped by the error of a call in which the sink panicked.
var ErrPanic = errors.New("the sink panicked")

func recovered(name string, err *error) {
	if r := recover(); r != nil {
		log().Error("the sink panicked", "call", name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w in %s: %v; this is a defect of the sink, its stack is in the log", ErrPanic, name, r)
	}
}

// edge maps errors to gRPC codes.
func edge(err error) error {
	if err == nil {
		return nil
	}
	refusal := new(RefusalError)
	switch {
	case errors.As(err, &refusal):
		out := *refusal
		out.Message = err.Error() // with what the sink wrapped around it
		return out.GRPCStatus().Err()
	case errors.Is(err, ErrPanic):
		return status.Error(codes.Internal, err.Error())
	case errors.Is(err, ErrManifest):
		return status.Error(codes.DataLoss, err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(status.Code(err), err.Error())
}
