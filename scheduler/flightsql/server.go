package flightsql

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	fsql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Headers that calls may carry, and those of answers.
const (
	KeyHeader     = "signet-idempotency-key"
	CatalogHeader = "signet-catalog"
	SchemaHeader  = "signet-schema"
	JobHeader     = "signet-job-id"  // in answers: the job of the statement, sent as soon as it is known
	MessageHeader = "signet-message" // in trailers: why a cancel was refused
)

// Config of a server.
type Config struct {
	Backend Backend
	// Principal tells who calls.
	Principal func(context.Context) string
	Version   string
	// MaxMessage bounds one message of a client, in bytes.
	MaxMessage int
	// Kept is how long the rows of a query can be fetched after its end.
	Kept   time.Duration
	Logger *slog.Logger
	// Handshake gives a client that has shown who it is the bearer token for its other calls.
	Handshake func(context.Context) (token string, err error)
}

// Service implements the Flight RPC service.
type Service struct {
	flight.FlightServer // everything that is not overridden here, by way of arrow-go's routing
	s                   *server
}

// server implements the methods of Flight SQL.
type server struct {
	fsql.BaseServer
	Config
	backend  Backend
	mem      memory.Allocator
	seal     *sealer
	calls    *calls
	prepared *preparedStore
	known    []uint32      // ids of SqlInfo
	ingests  chan struct{} // as many may be under way
	closing  chan struct{}
	once     sync.Once
}

// ingestsAtOnce bounds the memory of ingests: each holds a message and a row group.
const ingestsAtOnce = 8

// New makes a service.
func New(cfg Config) *Service {
	s := &server{
		Config: cfg, backend: cfg.Backend, mem: memory.DefaultAllocator, seal: newSealer(), prepared: newPreparedStore(),
		ingests: make(chan struct{}, ingestsAtOnce), closing: make(chan struct{}),
	}
	s.calls = newCalls(s)
	s.Alloc = s.mem
	s.registerInfo()
	return &Service{FlightServer: fsql.NewFlightServerWithAllocator(s, s.mem), s: s}
}

// Register adds the service to a gRPC server.
func (s *Service) Register(g *grpc.Server) { flight.RegisterFlightServiceServer(g, s) }

// Handshake implements Flight's: basic authentication in, a bearer token out.
func (s *Service) Handshake(stream flight.FlightService_HandshakeServer) error {
	token, err := s.s.Config.Handshake(stream.Context())
	if err != nil {
		return err
	}
	return stream.SendHeader(metadata.Pairs("authorization", "Bearer "+token))
}

// Close lets waiting calls end. Their jobs go on.
func (s *Service) Close() {
	s.s.calls.close() // first: those that wake up must not cancel
	s.s.once.Do(func() { close(s.s.closing) })
}

// statement is the text with what the call's headers and session say.
func (s *server) statement(ctx context.Context, text string) Statement {
	catalog, schema := defaults(ctx)
	return Statement{SQL: text, Key: header(ctx, KeyHeader), Catalog: catalog, Schema: schema, Settings: settings(ctx)}
}

// SettingPrefix begins the names of settings, which are headers of the same names.
const SettingPrefix = "signet."

func settings(ctx context.Context) map[string]string {
	md, _ := metadata.FromIncomingContext(ctx)
	var out map[string]string
	for name, v := range md {
		if !strings.HasPrefix(name, SettingPrefix) || len(v) == 0 {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = v[len(v)-1]
	}
	return out
}

func header(ctx context.Context, name string) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get(name); len(v) > 0 {
		return v[0]
	}
	return ""
}
