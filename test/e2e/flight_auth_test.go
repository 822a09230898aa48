package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/test/harness"
)

// X22: a client without credentials, with half of them, or with wrong ones is refused at its first call, in the same words; tokens and basic
// authentication give the token's principal. Jobs, tickets and handles are the principal's alone.
func TestFlight_TokensAndTLS(t *testing.T) {
	cert, key := certificate(t)
	alice, bob, join := file(t, "alice", "al1ce"), file(t, "bob", "b0b"), file(t, "join", "j0in")
	c, addr := flightCluster(t, harness.Options{
		Executors: 1, ExecutorArgs: []string{"--tls-ca", cert, "--token-file", join}, ClientArgs: []string{"--tls-ca", cert, "--token-file", alice},
		Config: fmt.Sprintf("tls: {cert: %s, key: %s}\nauth:\n  join_token: {file: %s}\n  tokens:\n    - {principal: alice, token: {file: %s}}\n    - {principal: bob, token: {file: %s}}\n",
			cert, key, join, alice, bob),
	})
	pem, err := os.ReadFile(cert)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(pem))
	cl, err := flightsql.NewClient(addr, nil, nil, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})))
	require.NoError(t, err)
	defer cl.Close()
	as := func(header string) context.Context {
		if header == "" {
			return harness.Context(t)
		}
		return metadata.AppendToOutgoingContext(harness.Context(t), "authorization", header)
	}
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	refused := map[string]bool{}
	for _, header := range []string{"", "Bearer ", "Bearer wrong", "Bearer j0in", "Basic !", basic("alice", ""), basic("alice", "wrong"), basic("alice", "b0b"), basic("nobody", "al1ce"), basic("", ""), "al1ce"} {
		_, err := cl.Execute(as(header), "SHOW CATALOGS")
		require.Equal(t, codes.Unauthenticated, status.Code(err), header)
		refused[err.Error()] = true
		hs, err := cl.Client.Handshake(as(header))
		require.NoError(t, err)
		require.NoError(t, hs.CloseSend())
		_, err = hs.Recv()
		require.Equal(t, codes.Unauthenticated, status.Code(err), header)
		refused[err.Error()] = true
	}
	require.Len(t, refused, 1, "%v", refused)
	for text := range refused {
		require.Contains(t, text, "Bearer")
		require.Contains(t, text, "basic")
	}

	own, err := cl.Execute(as("Bearer al1ce"), "SELECT 7 AS n")
	require.NoError(t, err)
	require.Equal(t, []string{`{"n":7}`}, flightRows(as(basic("alice", "al1ce")), t, cl, own))
	fetch := func(header string, ticket *flight.Ticket) error {
		_, err := cl.DoGet(as(header), ticket)
		return err
	}
	foreign := fetch("Bearer b0b", own.Endpoint[0].Ticket)
	require.Equal(t, codes.NotFound, status.Code(foreign))
	made, err := flightsql.CreateStatementQueryTicket(own.AppMetadata)
	require.NoError(t, err)
	require.Equal(t, foreign.Error(), fetch("Bearer b0b", &flight.Ticket{Ticket: made}).Error(), "foreign and unknown look the same")
	_, err = cl.CancelFlightInfo(as("Bearer b0b"), &flight.CancelFlightInfoRequest{Info: own})
	require.Equal(t, codes.NotFound, status.Code(err))

	p, err := cl.Prepare(as("Bearer al1ce"), "SELECT 1")
	require.NoError(t, err)
	_, err = flightsql.NewPreparedStatement(cl, p.Handle()).Execute(as("Bearer b0b"))
	require.Equal(t, codes.NotFound, status.Code(err))
	require.Error(t, flightsql.NewPreparedStatement(cl, p.Handle()).Close(as("Bearer b0b")))
	_, err = p.Execute(as("Bearer al1ce"))
	require.NoError(t, err)

	// The handshake gives the token for later calls.
	ctx, err := cl.Client.AuthenticateBasicToken(harness.Context(t), "bob", "b0b")
	require.NoError(t, err)
	_, err = cl.Execute(ctx, "SELECT 8 AS n")
	require.NoError(t, err)
	require.Len(t, c.Jobs(), 2, "alice sees her own, and not the one of bob")

	plain, err := newFlightClient(addr)
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.Execute(as("Bearer al1ce"), "SHOW CATALOGS")
	require.Equal(t, codes.Unavailable, status.Code(err), "plain text to a TLS listener")
}

func TestFlight_OpenAddressNeedsTLSAndTokens(t *testing.T) {
	cert, key := certificate(t)
	for config, missing := range map[string]string{
		"flight: {listen: '0.0.0.0:0'}\n": "tls.cert",
		fmt.Sprintf("flight: {listen: '0.0.0.0:0'}\ntls: {cert: %s, key: %s}\n", cert, key): "auth.tokens",
		"flight: {listen: nonsense}\n":                                 "host:port",
		"flight: {listen: '127.0.0.1:0', max_message_bytes: 1KiB}\n":   "max_message_bytes",
		"flight: {listen: '127.0.0.1:0', max_message_bytes: -1MiB}\n":  "max_message_bytes",
		"flight: {listen: '127.0.0.1:0', max_message_bytes: 100TiB}\n": "max_message_bytes",
	} {
		r := harness.RunCommand(t, "", nil, "scheduler", "--config", file(t, "signet.yaml", "data_dir: "+t.TempDir()+"\nlisten: 127.0.0.1:0\n"+config))
		require.NotEqual(t, 0, r.Code, config)
		require.Contains(t, r.Err, missing, config)
		require.NotContains(t, r.Out, "listening")
	}
}

// Tickets and handles do not survive a restart, and say so; the rows of a commit are asked for by its key.
func TestFlight_RestartOfTheScheduler(t *testing.T) {
	c, addr := flightCluster(t, harness.Options{Executors: 1})
	cl := flightDial(t, addr)
	ctx := harness.Context(t)
	flightUpdate(t, cl, "CREATE SCHEMA lake.f")
	flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT)")
	keyed := metadata.AppendToOutgoingContext(ctx, "signet-idempotency-key", "once")
	const insert = "INSERT INTO lake.f.t VALUES (1)"
	_, err := cl.ExecuteUpdate(keyed, insert)
	require.NoError(t, err)
	info, err := cl.Execute(ctx, "SELECT * FROM lake.f.t")
	require.NoError(t, err)
	p, err := cl.Prepare(ctx, "SELECT 1")
	require.NoError(t, err)

	c.Scheduler.Kill()
	c.StartScheduler()
	c.AwaitExecutors(1)
	again := flightDial(t, addr)
	_, err = again.DoGet(ctx, info.Endpoint[0].Ticket)
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = flightsql.NewPreparedStatement(again, p.Handle()).Execute(ctx)
	require.Equal(t, codes.NotFound, status.Code(err))
	n, err := again.ExecuteUpdate(keyed, insert)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.Equal(t, 1, c.Table("f", "t").Snapshots)
}

// S62: an ingest whose rows had all come goes on after the scheduler was killed, from its file; one that was still coming is gone with its file.
func TestFlight_KilledDuringAnIngest(t *testing.T) {
	for point, snapshots := range map[string]int{
		"scheduler.submit.after-journal": 1, "scheduler.plan.before-journal": 1, "scheduler.launch.before": 1, "broker.seal.before": 1, "catalog.commit.after-swap": 1,
	} {
		t.Run(point, func(t *testing.T) {
			faults := harness.NewFaults(t)
			c, addr := flightCluster(t, harness.Options{Executors: 1, SchedulerEnv: []string{faults.Env(point)}})
			cl := flightDial(t, addr)
			flightUpdate(t, cl, "CREATE SCHEMA lake.f")
			flightUpdate(t, cl, "CREATE TABLE lake.f.t (id BIGINT)")
			schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
			inputs := filepath.Join(c.Dir, "data", "inputs")
			require.NoError(t, os.MkdirAll(inputs, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(inputs, "of-a-client-that-is-gone.parquet"), []byte("half"), 0o600))
			faults.Arm(t, point, 0)
			ctx := metadata.AppendToOutgoingContext(harness.Context(t), "signet-idempotency-key", "load")
			ingest := func(cl *flightsql.Client) (int64, error) {
				return cl.ExecuteIngest(ctx, reader(t, schema, batch(t, schema, `[{"id":1},{"id":2}]`)), ingestInto(appendTo, "f", "t"))
			}
			_, err := ingest(cl)
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
			c.Scheduler.Wait(t)
			c.StartScheduler()
			for _, j := range c.AwaitJobs() {
				require.Equal(t, "Successful", j.State, j.Statement)
			}
			require.Equal(t, snapshots, c.Table("f", "t").Snapshots)
			requireNoInputs(t, c)
			n, err := ingest(flightDial(t, addr))
			require.NoError(t, err)
			require.EqualValues(t, 2, n)
			require.Equal(t, 1, c.Table("f", "t").Snapshots, "the key finds the commit")
			requireNoInputs(t, c)
		})
	}
}
