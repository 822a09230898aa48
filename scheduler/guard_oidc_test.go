package scheduler

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/oidc/oidctest"
)

// A token of an issuer is the same principal at gRPC, Flight SQL and REST: it owns its jobs, permissions and the audit log go by it, and nobody becomes by it who is known
// otherwise. While the issuer is down, static tokens go on.
func TestOIDC_AtEveryListener(t *testing.T) {
	issuer, down, dir := oidctest.Start(t), oidctest.Start(t), t.TempDir()
	cfg := viewedConfig(t, dir)
	cfg.Flight.Listen, cfg.Audit.File = "127.0.0.1:0", filepath.Join(dir, "audit.jsonl")
	cfg.Auth.Tokens = []config.Token{{Principal: "bob", Token: secret(t, "bob-token")}, {Principal: "oidc:root", Token: secret(t, "root-token")}} // the second is what validation refuses
	cfg.Auth.OIDC = []config.OIDC{{Issuer: issuer.URL, Audience: oidctest.Audience, Operators: []string{"oidc:op"}}, {Issuer: down.URL, Audience: oidctest.Audience, PrincipalPrefix: "down:"}}
	lake := cfg.Catalogs["lake"]
	lake.Permissions = []config.Permission{{Principals: []string{"oidc:ann"}, Allow: []string{"all"}}, {Principals: []string{"oidc:*"}, Allow: []string{"read"}}}
	cfg.Catalogs["lake"] = lake
	v := startViewed(t, cfg)
	fl, err := flightsql.NewClient(v.FlightAddr(), nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { fl.Close() })
	type codesOf struct {
		grpc, flight codes.Code
		rest         int
	}
	try := func(token string, want codesOf) {
		t.Helper()
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		_, err := v.client.ListJobs(ctx, &schedulerv1.ListJobsRequest{})
		require.Equal(t, want.grpc, status.Code(err), "%v", err)
		_, err = fl.GetCatalogs(ctx)
		require.Equal(t, want.flight, status.Code(err), "%v", err)
		v.call("GET", "/api/state", token, "", want.rest)
	}
	good, no, later := codesOf{codes.OK, codes.OK, 200}, codesOf{codes.Unauthenticated, codes.Unauthenticated, 401}, codesOf{codes.Unavailable, codes.Unavailable, 503}

	down.Down(true)
	try(down.Token(t, "ec-1", nil), later)
	try("bob-token", good)
	try("nobody's", no)
	ann := issuer.Token(t, "ec-1", nil)
	try(ann, good)
	try(issuer.Token(t, "rsa-1", map[string]any{"sub": "carl"}), good)
	try(issuer.Token(t, "rsa-1", map[string]any{"sub": "root"}), no)
	try(issuer.Token(t, "rsa-1", map[string]any{"aud": "other"}), no)
	try(issuer.Token(t, "rsa-1", map[string]any{"iss": "https://elsewhere.invalid"}), no)

	submit := func(token, sql string) *schedulerv1.Job {
		return v.submit(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), sql)
	}
	carl := issuer.Token(t, "ec-1", map[string]any{"sub": "carl"})
	refused := submit(carl, "CREATE SCHEMA lake.r")
	require.Equal(t, "oidc:carl", refused.Principal)
	require.Equal(t, "denied", refused.Error.GetCode())
	j := submit(ann, "CREATE SCHEMA lake.s")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.State, "%v", j.Error)
	require.Equal(t, "oidc:ann", j.Principal)
	v.call("GET", "/api/job/"+j.JobId, ann, "", 200)
	v.call("GET", "/api/job/"+j.JobId, carl, "", 404)
	require.True(t, v.mayOperate("oidc:op"))
	require.False(t, v.mayOperate("oidc:ann"))

	v.stopNow()
	b, err := os.ReadFile(cfg.Audit.File)
	require.NoError(t, err)
	seen := map[string]string{}
	for line := range strings.Lines(string(b)) {
		var e auditEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		seen[e.Event+" "+e.Principal] = e.Message
	}
	require.Contains(t, seen, "create oidc:ann")
	require.Contains(t, seen, "refused oidc:carl")
	require.Contains(t, seen, "refused ")
	for _, token := range []string{ann, carl} {
		_, signature, _ := strings.Cut(token[strings.IndexByte(token, '.')+1:], ".")
		require.NotContains(t, string(b)+v.logs.String(), signature)
	}
}
