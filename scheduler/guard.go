package scheduler

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/oidc"
)

// guard checks who calls: clients show one of their tokens or a certificate that is known, executors the join token.
type guard struct {
	joins   []joinToken // none: none asked
	clients []clientToken
	issuers []*oidc.Verifier
	certs   []config.Certificate
	refused func(peer, method, certificate, why string) // told of every caller who is not known; nil: nobody
	joined  func(peer, token string)                    // told of every executor that opens a session, and of the name of the token that it showed; nil: nobody
	now     func() time.Time                            // nil: time.Now
}

type clientToken struct {
	sum       [32]byte
	principal string
}

func newGuard(cfg *config.Config) (*guard, error) {
	g := &guard{}
	var err error
	if g.joins, err = joinTokens(&cfg.Auth); err != nil {
		return nil, err
	}
	if g.issuers, err = issuers(&cfg.Auth); err != nil {
		return nil, err
	}
	for i, c := range cfg.Auth.Tokens {
		t, err := c.Token.Resolve()
		if err != nil {
			return nil, fmt.Errorf("auth.tokens[%d]: %w", i, err)
		}
		g.clients = append(g.clients, clientToken{sha256.Sum256([]byte(t)), c.Principal})
	}
	g.certs = cfg.Auth.Certificates
	return g, nil
}

// refuse tells of a caller who is not known.
func (g *guard) refuse(ctx context.Context, method string, err error) error {
	if g.refused == nil {
		return err
	}
	address := ""
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		address = p.Addr.String()
	}
	g.refused(address, method, commonName(shownCertificate(ctx)), status.Convert(err).Message())
	return err
}

func commonName(cert *x509.Certificate) string {
	if cert == nil {
		return ""
	}
	return cert.Subject.CommonName
}

// open says that everybody is the local principal.
func (g *guard) open() bool { return len(g.clients) == 0 && len(g.certs) == 0 && len(g.issuers) == 0 }

// certificateToken is what the handshake of Flight answers to clients that are known by their certificate, which is shown with every call anyway.
const certificateToken = "certificate"

// client gives the principal of a client by what it shows, either of which may be missing. Both together have to be of one principal: a stolen token is of
// no use to whom has another certificate that is known. where is how a token is shown here, for why.
func (g *guard) client(ctx context.Context, token string, cert *x509.Certificate, where string) (who string, no *refusal) {
	if g.open() {
		return localPrincipal, nil
	}
	byCert := g.principalOf(cert)
	if token == "" || token == certificateToken && byCert != "" {
		switch {
		case byCert != "":
			return byCert, nil
		case len(g.clients) == 0 && len(g.issuers) == 0:
			return "", &refusal{why: "this scheduler knows its clients by certificates (auth.certificates), and the one that was shown, if any, is none of them"}
		}
		return "", &refusal{why: fmt.Sprintf("this scheduler asks for a client token (%s \"authorization: Bearer …\")", where)}
	}
	sum := sha256.Sum256([]byte(token))
	for _, c := range g.clients { // all are compared, so that time tells nothing
		if subtle.ConstantTimeCompare(sum[:], c.sum[:]) == 1 {
			who = c.principal
		}
	}
	if who == "" {
		if who, no = g.issued(ctx, token); no != nil {
			return "", no
		}
	}
	who, why := agreed(who, byCert)
	if why != "" {
		return "", &refusal{why: why}
	}
	return who, nil
}

// agreed is the principal of a token, unless the certificate is another's.
func agreed(who, byCert string) (_, why string) {
	if who == "" || byCert != "" && byCert != who { // which of both it is, is not told
		why = "the token is not known here"
		if byCert != "" {
			why += ", or not with this certificate, which is another principal's"
		}
		return "", why
	}
	return who, ""
}

// principalOf is the principal of a certificate that the TLS listener has verified; "" if none is known for it. The first entry that fits counts.
func (g *guard) principalOf(cert *x509.Certificate) string {
	if cert == nil {
		return ""
	}
	for _, e := range g.certs {
		if e.CN != "" && e.CN == cert.Subject.CommonName || e.SAN != "" && slices.Contains(alternativeNames(cert), e.SAN) {
			return e.Principal
		}
	}
	return ""
}

func alternativeNames(cert *x509.Certificate) []string {
	out := slices.Concat(cert.DNSNames, cert.EmailAddresses)
	for _, u := range cert.URIs {
		out = append(out, u.String())
	}
	for _, ip := range cert.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}

// shownCertificate is what the caller has shown and the listener verified; nil if nothing.
func shownCertificate(ctx context.Context) *x509.Certificate {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return verified(&info.State)
}

func verified(state *tls.ConnectionState) *x509.Certificate {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil
	}
	return state.VerifiedChains[0][0]
}
