package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Backend is the scheduler as this package needs it. It answers for the principal it is told.
type Backend interface {
	State(principal string) State
	Executors() []Executor
	// Jobs lists the principal's jobs, newest first.
	Jobs(principal string, f Filter) []Job
	// Job finds one of the principal's jobs; false: there is none.
	Job(principal, id string) (Job, bool)
	// Stages are a job's stages in order, with at most tasks tasks listed in each.
	Stages(principal, id string, tasks int) ([]Stage, bool)
	Plan(principal, id string) (string, bool)
	// Cancel asks for the job's end. Refused says why it cannot be cancelled any more.
	Cancel(principal, id string) (job Job, refused string, found bool)
	// NotReady says why statements would not run now; nothing: they would.
	NotReady() []string
}

// Filter of a job list. Zero values do not filter.
type Filter struct {
	State string
	Kind  string
	Limit int
}

// Config of a Server.
type Config struct {
	Backend Backend
	// Authenticate gives the principal of a request and its bearer token, which is "" where none was sent. No principal: why it is not known here.
	Authenticate func(r *http.Request, token string) (principal string, no *Refusal)
	// Open says that no tokens are asked: everybody on this machine is the local principal.
	Open bool
	// Metrics serves /api/metrics.
	Metrics http.Handler
	// Count is told of every answer; the route is a pattern.
	Count  func(route, code string)
	TLS    *tls.Config
	Logger *slog.Logger
}

// Bounds of requests.
const (
	maxBody        = 64 << 10
	maxHeader      = 32 << 10
	readTimeout    = 10 * time.Second
	writeTimeout   = 60 * time.Second
	idleTimeout    = 2 * time.Minute
	maxConnections = 1024
	shutdownWithin = 2 * time.Second
)

// Server is a listening API.
type Server struct {
	http *http.Server
	addr string
	done chan struct{}
}

// Listen starts the API at an address.
func Listen(ctx context.Context, addr string, cfg Config) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with http.listen in the configuration", addr, err)
	}
	s := &Server{addr: l.Addr().String(), done: make(chan struct{})}
	s.http = &http.Server{
		Handler: Handler(cfg), TLSConfig: cfg.TLS, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	l = bounded(l, maxConnections)
	go func() {
		defer close(s.done)
		var err error
		if cfg.TLS != nil {
			err = s.http.ServeTLS(l, "", "")
		} else {
			err = s.http.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("the HTTP listener ended", "error", err)
		}
	}()
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.addr }

// Close ends it; running requests get a moment.
func (s *Server) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownWithin)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.done
	return err
}
