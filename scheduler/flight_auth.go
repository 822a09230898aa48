package scheduler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/internal/flightrows"
)

// Flight clients show a token as a bearer token, or as the password of the user whose name is its principal: many drivers know only that. A wrong
// password and an unknown user look the same.

var errFlightAuth = status.Error(codes.Unauthenticated,
	"this server asks for a token: as \"authorization: Bearer TOKEN\", or with basic authentication, where the user is the token's principal and the password is the token")

// flightUser answers the call's context with its principal, and the token that it showed.
func (g *guard) flightUser(ctx context.Context) (_ context.Context, token string, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	user, shown, isBasic := flightrows.Shown(md)
	if g.open() {
		return ctx, "none", nil
	}
	if !isBasic {
		ctx, err := g.authorize(ctx, "")
		if err != nil {
			if status.Code(err) == codes.Unavailable { // of an issuer: the token may be right
				return nil, "", err
			}
			return nil, "", errFlightAuth
		}
		return ctx, cmp.Or(shown, certificateToken), nil
	}
	who := ""
	sum := sha256.Sum256([]byte(shown))
	for _, c := range g.clients { // all are compared, so that time tells nothing
		if subtle.ConstantTimeCompare(sum[:], c.sum[:])&subtle.ConstantTimeCompare([]byte(user), []byte(c.principal)) == 1 {
			who = c.principal
		}
	}
	if who, _ = agreed(who, g.principalOf(shownCertificate(ctx))); who == "" {
		return nil, "", errFlightAuth
	}
	return context.WithValue(ctx, principalKey{}, who), shown, nil
}

// handshake gives the token for later calls.
func (g *guard) handshake(ctx context.Context) (string, error) {
	_, token, err := g.flightUser(ctx)
	return token, err
}

func (g *guard) flightOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			known, _, err := g.flightUser(ctx)
			if err != nil {
				return nil, g.refuse(ctx, info.FullMethod, err)
			}
			ctx = known
			return h(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			ctx, _, err := g.flightUser(ss.Context())
			if err != nil {
				return g.refuse(ss.Context(), info.FullMethod, err)
			}
			return h(srv, &authorized{ss, ctx})
		}),
	}
}
