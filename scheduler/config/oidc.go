package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/signet-io/signet/scheduler/oidc"
)

// OIDC is an issuer of OpenID Connect whose tokens clients may show.
type OIDC struct {
	// Issuer as its tokens name it: https://login.example.org/realm. What it says of its keys is found there.
	Issuer string `koanf:"issuer"`
	// Audience that tokens have to be for.
	Audience string `koanf:"audience"`
	// PrincipalClaim names who it is; sub by default.
	PrincipalClaim string `koanf:"principal_claim"`
	// PrincipalPrefix begins the principals of this issuer, and no other's; oidc: by default.
	PrincipalPrefix string `koanf:"principal_prefix"`
	// Operators are principals, with the prefix, that may do what concerns all.
	Operators []string `koanf:"operators"`
	// CA is a PEM file that verifies the issuer; by default the system's authorities.
	CA string `koanf:"ca" kind:"path"`
}

// Prefix is what principals of the issuer begin with.
func (o *OIDC) Prefix() string {
	if o.PrincipalPrefix == "" {
		return "oidc:"
	}
	return o.PrincipalPrefix
}

// Claim names who it is.
func (o *OIDC) Claim() string {
	if o.PrincipalClaim == "" {
		return "sub"
	}
	return o.PrincipalClaim
}

// JoinToken is one of several tokens of executors.
type JoinToken struct {
	// Name is told in the audit log and in refusals.
	Name  string `koanf:"name"`
	Token Secret `koanf:"token"`
	// Expires is when it ends to be taken, as 2027-01-31T00:00:00Z; never by default.
	Expires string `koanf:"expires"`
}

// Until is when the token expires; zero: never. Validate has checked it.
func (t *JoinToken) Until() time.Time {
	at, err := time.Parse(time.RFC3339, t.Expires)
	if err != nil {
		return time.Time{}
	}
	return at
}

// JoinAsked says whether executors have to show a token.
func (a *Auth) JoinAsked() bool { return !a.JoinToken.IsZero() || len(a.JoinTokens) > 0 }

// LocalJoin is the token that executors get which the scheduler starts itself: the one without a name, or else the one that lasts longest.
func (a *Auth) LocalJoin() Secret {
	if !a.JoinToken.IsZero() || len(a.JoinTokens) == 0 {
		return a.JoinToken
	}
	best := a.JoinTokens[0]
	for _, t := range a.JoinTokens[1:] {
		if u, b := t.Until(), best.Until(); !b.IsZero() && (u.IsZero() || u.After(b)) {
			best = t
		}
	}
	return best.Token
}

func (v *validator) joinTokens(list []JoinToken) {
	seen := map[string]bool{"join_token": true}
	for i, t := range list {
		key := fmt.Sprintf("auth.join_tokens[%d]", i)
		v.check(validName(t.Name), key+".name", t.Name, "want 1 to 64 letters, digits, _ and -")
		v.check(!seen[t.Name], key+".name", t.Name, "is there twice, or is the name of auth.join_token")
		seen[t.Name] = true
		if t.Token.IsZero() {
			v.say(key+".token", "missing; write {file: PATH} or {env: NAME}")
		}
		if t.Expires != "" {
			_, err := time.Parse(time.RFC3339, t.Expires)
			v.check(err == nil, key+".expires", t.Expires, "want a time like 2027-01-31T00:00:00Z")
		}
	}
}

// oidc checks auth.oidc. No two issuers, and no issuer and a token or certificate, can stand for the same principal.
func (v *validator) oidc(a *Auth) {
	for i := range a.OIDC {
		o := &a.OIDC[i]
		key := fmt.Sprintf("auth.oidc[%d]", i)
		if problem := oidc.CheckIssuer(o.Issuer); problem != "" {
			v.say(key+".issuer", problem)
		}
		if o.Audience == "" {
			v.say(key+".audience", "missing; without it a token that was made for somebody else would be taken here")
		}
		p := o.Prefix()
		v.check(len(p) <= 64, key+".principal_prefix", p, "want at most 64 bytes")
		v.check(!strings.HasPrefix(p, ReservedPrincipals) && !strings.HasPrefix(ReservedPrincipals, p), key+".principal_prefix", p, "names that begin with "+ReservedPrincipals+" are the scheduler's own")
		for n, who := range o.Operators {
			v.check(strings.HasPrefix(who, p) && who != p, fmt.Sprintf("%s.operators[%d]", key, n), who, "want a principal of this issuer, with its prefix: "+p+"…")
		}
		v.files(map[string]string{key + ".ca": o.CA})
		for n := range a.OIDC[:i] {
			e := &a.OIDC[n]
			other := e.Prefix()
			if e.Issuer == o.Issuer {
				v.check(other == p && e.Claim() == o.Claim(), key, o.Issuer, fmt.Sprintf("has another prefix or claim in auth.oidc[%d]: one person would be two", n))
				v.check(e.Audience != o.Audience, key+".audience", o.Audience, "is there twice for this issuer")
			} else {
				v.check(!strings.HasPrefix(p, other) && !strings.HasPrefix(other, p), key+".principal_prefix", p,
					fmt.Sprintf("principals could be those of auth.oidc[%d], whose prefix is %q: set prefixes of which none begins with the other", n, other))
			}
		}
		for n, t := range a.Tokens {
			v.apart(fmt.Sprintf("auth.tokens[%d].principal", n), t.Principal, p, i)
		}
		for n, c := range a.Certificates {
			v.apart(fmt.Sprintf("auth.certificates[%d].principal", n), c.Principal, p, i)
		}
	}
}

func (v *validator) apart(key, principal, prefix string, i int) {
	v.check(!strings.HasPrefix(principal, prefix), key, principal, fmt.Sprintf("could be a principal of auth.oidc[%d], which begin with %q", i, prefix))
}
