package scheduler

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/scheduler/config"
)

// localPrincipal owns the jobs of clients that need no token.
const localPrincipal = "local"

type principalKey struct{}

func principal(ctx context.Context) string {
	if p, ok := ctx.Value(principalKey{}).(string); ok {
		return p
	}
	return localPrincipal
}

// guard checks tokens: clients show one of theirs, executors the join token.
type guard struct {
	join    [32]byte // zero: none asked
	hasJoin bool
	clients []clientToken
}

type clientToken struct {
	sum       [32]byte
	principal string
}

func newGuard(cfg *config.Config) (*guard, error) {
	g := &guard{}
	if !cfg.Auth.JoinToken.IsZero() {
		t, err := cfg.Auth.JoinToken.Resolve()
		if err != nil {
			return nil, fmt.Errorf("auth.join_token: %w", err)
		}
		g.join, g.hasJoin = sha256.Sum256([]byte(t)), true
	}
	for i, c := range cfg.Auth.Tokens {
		t, err := c.Token.Resolve()
		if err != nil {
			return nil, fmt.Errorf("auth.tokens[%d]: %w", i, err)
		}
		g.clients = append(g.clients, clientToken{sha256.Sum256([]byte(t)), c.Principal})
	}
	return g, nil
}

// mayOperate tells whether a principal may do what concerns all. Without tokens there is only one.
func (s *Server) mayOperate(who string) bool {
	for _, t := range s.cfg.Auth.Tokens {
		if t.Principal == who {
			return t.Operator
		}
	}
	return len(s.cfg.Auth.Tokens) == 0
}

// ErrOpenListener is returned for a listener that others could reach without TLS or tokens.
var ErrOpenListener = errors.New("refusing to listen where others can connect")

// checkListen holds the rule that every address but loopback demands TLS and client tokens, and a join token where executors come to.
func checkListen(cfg *config.Config, key, listen string, executors bool) error {
	if missing := cfg.Missing(listen, executors); missing != "" {
		return fmt.Errorf("%w: %s is %q, which needs %s; or listen on 127.0.0.1", ErrOpenListener, key, listen, missing)
	}
	return nil
}

// serverTLS is nil where the listener is plain.
func serverTLS(cfg *config.Config) (credentials.TransportCredentials, error) {
	tc, err := tlsConfig(cfg)
	if tc == nil || err != nil {
		return nil, err
	}
	return credentials.NewTLS(tc), nil
}

// tlsConfig is what all listeners share; nil where they are plain.
func tlsConfig(cfg *config.Config) (*tls.Config, error) {
	if !cfg.TLS.Enabled() {
		return nil, nil //nolint:nilnil // no TLS is a valid answer
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLS.Cert, cfg.TLS.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	tc := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	if cfg.TLS.ClientCA != "" {
		pem, err := os.ReadFile(cfg.TLS.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		tc.ClientCAs = x509.NewCertPool()
		if !tc.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.client_ca: %s holds no certificate", cfg.TLS.ClientCA)
		}
		tc.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return tc, nil
}

// authorize returns the context with the caller's principal, or UNAUTHENTICATED.
func (g *guard) authorize(ctx context.Context, method string) (context.Context, error) {
	executor := strings.HasPrefix(method, "/signet.executor.v1.")
	if executor && !g.hasJoin || !executor && len(g.clients) == 0 {
		return ctx, nil
	}
	token, ok := bearer(ctx)
	if !ok {
		kind := "a client token"
		if executor {
			kind = "the cluster's join token"
		}
		return nil, status.Errorf(codes.Unauthenticated, "this scheduler asks for %s (metadata \"authorization: Bearer …\")", kind)
	}
	sum := sha256.Sum256([]byte(token))
	if executor {
		if subtle.ConstantTimeCompare(sum[:], g.join[:]) == 1 {
			return ctx, nil
		}
		return nil, status.Error(codes.Unauthenticated, "the join token is not this cluster's")
	}
	who := ""
	for _, c := range g.clients { // all are compared, so that time tells nothing
		if subtle.ConstantTimeCompare(sum[:], c.sum[:]) == 1 {
			who = c.principal
		}
	}
	if who == "" {
		return nil, status.Error(codes.Unauthenticated, "the token is not known here")
	}
	return context.WithValue(ctx, principalKey{}, who), nil
}

func bearer(ctx context.Context) (string, bool) {
	md, _ := metadata.FromIncomingContext(ctx)
	v := md.Get("authorization")
	if len(v) != 1 || len(v[0]) < 8 || !strings.EqualFold(v[0][:7], "bearer ") {
		return "", false
	}
	return v[0][7:], true
}

func (g *guard) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			ctx, err := g.authorize(ctx, info.FullMethod)
			if err != nil {
				return nil, err
			}
			return h(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			ctx, err := g.authorize(ss.Context(), info.FullMethod)
			if err != nil {
				return err
			}
			return h(srv, &authorized{ss, ctx})
		}),
	}
}

type authorized struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // that is how gRPC hands it on
}

func (a *authorized) Context() context.Context { return a.ctx }
