package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

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

// mayOperate tells whether a principal may do what concerns all. Where nobody has to show who he is, there is only one.
func (s *Server) mayOperate(who string) bool {
	for _, t := range s.cfg.Auth.Tokens {
		if t.Principal == who && t.Operator {
			return true
		}
	}
	for _, c := range s.cfg.Auth.Certificates {
		if c.Principal == who && c.Operator {
			return true
		}
	}
	for _, o := range s.cfg.Auth.OIDC {
		if slices.Contains(o.Operators, who) {
			return true
		}
	}
	return !s.cfg.Auth.Asked()
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

// authorize returns the context with the caller's principal, or UNAUTHENTICATED.
func (g *guard) authorize(ctx context.Context, method string) (context.Context, error) {
	executor := strings.HasPrefix(method, "/signet.executor.v1.")
	if executor && len(g.joins) == 0 || !executor && g.open() {
		return ctx, nil
	}
	token, ok := bearer(ctx)
	if executor {
		return ctx, g.executor(ctx, method, token, ok)
	}
	who, err := g.client(ctx, token, shownCertificate(ctx), "metadata")
	if err != nil {
		return nil, err.grpc()
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
			known, err := g.authorize(ctx, info.FullMethod)
			if err != nil {
				return nil, g.refuse(ctx, info.FullMethod, err)
			}
			ctx = known
			return h(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			ctx, err := g.authorize(ss.Context(), info.FullMethod)
			if err != nil {
				return g.refuse(ss.Context(), info.FullMethod, err)
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
