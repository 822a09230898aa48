package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/oidc"
)

// refusal says why a caller has no principal.
type refusal struct {
	why         string
	unavailable bool // an issuer does not answer: the same call may go through later
}

func (r *refusal) grpc() error {
	if r.unavailable {
		return status.Error(codes.Unavailable, r.why)
	}
	return status.Error(codes.Unauthenticated, r.why)
}

func issuers(a *config.Auth) ([]*oidc.Verifier, error) {
	var out []*oidc.Verifier
	for i := range a.OIDC {
		c := &a.OIDC[i]
		v, err := oidc.New(oidc.Options{Issuer: c.Issuer, Audience: c.Audience, Claim: c.Claim(), Prefix: c.Prefix(), CA: c.CA})
		if err != nil {
			return nil, fmt.Errorf("auth.oidc[%d]: %w", i, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// issued is whose a token of an issuer is; "" without a refusal: it is no such token. Whom a token or certificate of the configuration stands for, no issuer can make anybody.
func (g *guard) issued(ctx context.Context, token string) (string, *refusal) {
	issuer, ok := oidc.Issuer(token)
	if !ok || len(g.issuers) == 0 {
		return "", nil
	}
	var no *refusal
	for _, v := range g.issuers { // one for each audience
		if v.Issuer() != issuer {
			continue
		}
		who, err := v.Principal(ctx, token)
		switch {
		case err == nil && g.taken(who):
			return "", &refusal{why: "the token's principal is one of auth.tokens or auth.certificates, or the scheduler's own"}
		case err == nil:
			return who, nil
		case no == nil || errors.Is(err, oidc.ErrUnavailable):
			no = &refusal{err.Error(), errors.Is(err, oidc.ErrUnavailable)}
		}
	}
	if no == nil {
		no = &refusal{why: "the token's issuer is none of auth.oidc"}
	}
	return "", no
}

// taken says whether a principal is known otherwise.
func (g *guard) taken(who string) bool {
	return who == localPrincipal || config.Reserved(who) ||
		slices.ContainsFunc(g.clients, func(c clientToken) bool { return c.principal == who }) ||
		slices.ContainsFunc(g.certs, func(c config.Certificate) bool { return c.Principal == who })
}
