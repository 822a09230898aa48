package scheduler

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/scheduler/config"
)

// Which join tokens let an executor in, and under which name it is told.
func TestGuard_JoinTokens(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	var joined []string
	g := &guard{now: func() time.Time { return now }, joined: func(_, token string) { joined = append(joined, token) }}
	for name, until := range map[string]time.Time{"old": now, "good": now.Add(time.Second), unnamedJoin: {}} {
		g.joins = append(g.joins, joinToken{name, sha256.Sum256([]byte(name + "'s")), until})
	}
	g.joins = append(g.joins, joinToken{"renewed", sha256.Sum256([]byte("old-and-new")), now.Add(-time.Hour)}, joinToken{"again", sha256.Sum256([]byte("old-and-new")), time.Time{}})
	for token, want := range map[string]struct{ name, says string }{
		"good's": {name: "good"}, unnamedJoin + "'s": {name: unnamedJoin}, "old-and-new": {name: "again"},
		"old's": {says: "the join token old has expired, at 2026-06-01T00:00:00Z"}, "x": {says: "not this cluster's"}, "": {says: "asks for the cluster's join token"},
	} {
		joined = nil
		ctx := t.Context()
		if token != "" {
			ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", "Bearer "+token))
		}
		_, err := g.authorize(ctx, executorv1.ExecutorGateway_Session_FullMethodName)
		if want.says != "" {
			require.Equal(t, codes.Unauthenticated, status.Code(err), token)
			require.ErrorContains(t, err, want.says)
			require.Empty(t, joined)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{want.name}, joined)
		_, err = g.authorize(ctx, executorv1.ExecutorGateway_ReportManifest_FullMethodName)
		require.NoError(t, err)
		require.Len(t, joined, 1, "only sessions are told")
	}
}

// The audit log says which token an executor has opened its session with, and never a token.
func TestGuard_JoinsAreAudited(t *testing.T) {
	cfg := viewedConfig(t, t.TempDir())
	cfg.Audit.File = filepath.Join(cfg.DataDir, "audit.jsonl")
	cfg.Auth.JoinToken = secret(t, "canary-0")
	cfg.Auth.JoinTokens = []config.JoinToken{
		{Name: "rack-7", Token: secret(t, "canary-1")}, {Name: "old", Token: secret(t, "canary-2"), Expires: "2020-01-01T00:00:00Z"},
	}
	v := startViewed(t, cfg)
	open := func(token string) error {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		st, err := executorv1.NewExecutorGatewayClient(v.conn).Session(ctx)
		require.NoError(t, err)
		require.NoError(t, st.CloseSend())
		_, err = st.Recv()
		return err
	}
	require.NotEqual(t, codes.Unauthenticated, status.Code(open("canary-0")))
	require.NotEqual(t, codes.Unauthenticated, status.Code(open("canary-1")))
	require.ErrorContains(t, open("canary-2"), "the join token old has expired")
	require.Equal(t, codes.Unauthenticated, status.Code(open("canary-3")))
	v.stopNow()
	b, err := os.ReadFile(cfg.Audit.File)
	require.NoError(t, err)
	require.NotContains(t, string(b)+v.logs.String(), "canary")
	var joined, refused []string
	for line := range strings.Lines(string(b)) {
		var e auditEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Event == auditJoined {
			joined = append(joined, e.Token)
			require.NotEmpty(t, e.Peer)
		} else {
			refused = append(refused, e.Message)
		}
	}
	require.Equal(t, []string{unnamedJoin, "rack-7"}, joined)
	require.Len(t, refused, 2)
	require.Contains(t, refused[0], "the join token old has expired")
}
