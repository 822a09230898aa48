package scheduler

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/scheduler/config"
)

// joinToken is one that executors may show.
type joinToken struct {
	name  string
	sum   [32]byte
	until time.Time // zero: for ever
}

// unnamedJoin is what auth.join_token is called.
const unnamedJoin = "join_token"

func joinTokens(a *config.Auth) ([]joinToken, error) {
	var out []joinToken
	if !a.JoinToken.IsZero() {
		t, err := a.JoinToken.Resolve()
		if err != nil {
			return nil, fmt.Errorf("auth.join_token: %w", err)
		}
		out = append(out, joinToken{name: unnamedJoin, sum: sha256.Sum256([]byte(t))})
	}
	for i := range a.JoinTokens {
		c := &a.JoinTokens[i]
		t, err := c.Token.Resolve()
		if err != nil {
			return nil, fmt.Errorf("auth.join_tokens[%d]: %w", i, err)
		}
		out = append(out, joinToken{c.Name, sha256.Sum256([]byte(t)), c.Until()})
	}
	return out, nil
}

// executor refuses who shows none of the join tokens, or one that has expired. Of two names for the same token the one that lasts counts.
func (g *guard) executor(ctx context.Context, method, token string, shown bool) error {
	if !shown {
		return status.Error(codes.Unauthenticated, "this scheduler asks for the cluster's join token (metadata \"authorization: Bearer …\")")
	}
	now := time.Now
	if g.now != nil {
		now = g.now
	}
	at, sum := now(), sha256.Sum256([]byte(token))
	var good, expired *joinToken
	for i := range g.joins { // all are compared, so that time tells nothing
		t := &g.joins[i]
		match := subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
		switch {
		case !match:
		case !t.until.IsZero() && !at.Before(t.until):
			expired = t
		default:
			good = t
		}
	}
	switch {
	case good != nil:
		if g.joined != nil && method == executorv1.ExecutorGateway_Session_FullMethodName {
			address := ""
			if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
				address = p.Addr.String()
			}
			g.joined(address, good.name)
		}
		return nil
	case expired != nil:
		return status.Errorf(codes.Unauthenticated, "the join token %s has expired, at %s (auth.join_tokens): give the executor another", expired.name, expired.until.UTC().Format(time.RFC3339))
	}
	return status.Error(codes.Unauthenticated, "the join token is not this cluster's")
}
