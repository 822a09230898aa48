package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOIDC_Validate(t *testing.T) {
	one := OIDC{Issuer: "https://login.example.org", Audience: "signet"}
	with := func(change func(*OIDC)) OIDC {
		o := one
		change(&o)
		return o
	}
	for name, tc := range map[string]struct {
		auth Auth
		says string // "": it is valid
	}{
		"one":                {Auth{OIDC: []OIDC{one}}, ""},
		"operators":          {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.Operators = []string{"oidc:ann"} })}}, ""},
		"another's operator": {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.Operators = []string{"ann"} })}}, "with its prefix: oidc:"},
		"no issuer":          {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.Issuer = "" })}}, "auth.oidc[0].issuer"},
		"plain text":         {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.Issuer = "http://login.example.org" })}}, "want https"},
		"no audience":        {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.Audience = "" })}}, "auth.oidc[0].audience"},
		"the scheduler's":    {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.PrincipalPrefix = "signet/x" })}}, "scheduler's own"},
		"a part of it":       {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.PrincipalPrefix = "sig" })}}, "scheduler's own"},
		"no such ca":         {Auth{OIDC: []OIDC{with(func(o *OIDC) { o.CA = "/nowhere" })}}, "no such file"},
		"two audiences":      {Auth{OIDC: []OIDC{one, with(func(o *OIDC) { o.Audience = "other" })}}, ""},
		"twice":              {Auth{OIDC: []OIDC{one, one}}, "is there twice"},
		"two claims":         {Auth{OIDC: []OIDC{one, with(func(o *OIDC) { o.Audience, o.PrincipalClaim = "other", "email" })}}, "one person would be two"},
		"one prefix for two": {Auth{OIDC: []OIDC{one, with(func(o *OIDC) { o.Issuer = "https://b" })}}, "none begins with the other"},
		"prefix of a prefix": {Auth{OIDC: []OIDC{one, with(func(o *OIDC) { o.Issuer, o.PrincipalPrefix = "https://b", "oidc:b:" })}}, "none begins with the other"},
		"two prefixes":       {Auth{OIDC: []OIDC{one, with(func(o *OIDC) { o.Issuer, o.PrincipalPrefix = "https://b", "b:" })}}, ""},
		"a token's":          {Auth{OIDC: []OIDC{one}, Tokens: []Token{{Principal: "oidc:ann", Token: SecretEnv("X")}}}, "could be a principal of auth.oidc[0]"},
		"join tokens":        {Auth{JoinTokens: []JoinToken{{Name: "a", Token: SecretEnv("X")}, {Name: "b", Token: SecretEnv("Y"), Expires: "2027-01-31T00:00:00Z"}}}, ""},
		"no name":            {Auth{JoinTokens: []JoinToken{{Token: SecretEnv("X")}}}, "auth.join_tokens[0].name"},
		"a name twice":       {Auth{JoinTokens: []JoinToken{{Name: "a", Token: SecretEnv("X")}, {Name: "a", Token: SecretEnv("Y")}}}, "is there twice"},
		"the other's name":   {Auth{JoinTokens: []JoinToken{{Name: "join_token", Token: SecretEnv("X")}}}, "name of auth.join_token"},
		"no token":           {Auth{JoinTokens: []JoinToken{{Name: "a"}}}, "auth.join_tokens[0].token"},
		"no time":            {Auth{JoinTokens: []JoinToken{{Name: "a", Token: SecretEnv("X"), Expires: "soon"}}}, "want a time like"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Embedded(t.TempDir())
			c.Auth = tc.auth
			err := c.Validate()
			if tc.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.says)
			}
		})
	}
}

// A time is one with quotes and without; executors that the scheduler starts get the token that lasts longest, where there is none without a name.
func TestJoinTokens_Read(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t"), []byte("x"), 0o600))
	file := filepath.Join(dir, "signet.yaml")
	require.NoError(t, os.WriteFile(file, []byte("data_dir: "+dir+"/d\nauth:\n  join_tokens:\n    - {name: a, token: {file: t}, expires: 2027-01-31}\n    - {name: b, token: {file: u}, expires: \"2027-01-31T01:00:00+01:00\"}\n"+
		"    - {name: c, token: {file: v}, expires: 2026-01-31T00:00:00Z}\n"), 0o600))
	c, err := Load(file, nil, nil)
	require.NoError(t, err)
	for i := range 2 {
		require.True(t, c.Auth.JoinTokens[i].Until().Equal(time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)), c.Auth.JoinTokens[i].Expires)
	}
	require.Equal(t, filepath.Join(dir, "t"), c.Auth.LocalJoin().File())
	c.Auth.JoinTokens[2].Expires = ""
	require.Equal(t, filepath.Join(dir, "v"), c.Auth.LocalJoin().File())
	c.Auth.JoinToken = SecretFile("/w")
	require.Equal(t, "/w", c.Auth.LocalJoin().File())
	require.True(t, (&Auth{JoinTokens: c.Auth.JoinTokens}).JoinAsked())
	require.False(t, (&Auth{}).JoinAsked())
}
