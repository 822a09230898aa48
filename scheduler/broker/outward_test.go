package broker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/scheduler/broker"
)

func dial(ctx context.Context, c hostv1.DialClient, name string, data []byte) ([]byte, error) {
	st, err := c.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := st.Send(&hostv1.DialRequest{Name: name, Data: data}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := st.CloseSend(); err != nil {
		return nil, err
	}
	var out []byte
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m.GetData()...)
	}
}

// outwardJob is a storage job of a plugin for which the operator listed things.
func outwardJob(t *testing.T, c broker.Config, plugin string) *job {
	t.Helper()
	b := &bench{TB: t, config: c}
	b.restart()
	return b.storageJob("file://"+t.TempDir(), func(s *broker.LeaseSpec) { s.Plugin = plugin })
}

func TestSecrets_OnlyWhatIsListed(t *testing.T) {
	c := broker.Config{Secrets: map[string]map[string]func() ([]byte, error){
		"mine":   {"token": func() ([]byte, error) { return []byte("s3cret"), nil }, "broken": func() ([]byte, error) { return nil, errors.New("/run/secrets/x: denied") }},
		"theirs": {"other": func() ([]byte, error) { return []byte("not yours"), nil }},
	}}
	j := outwardJob(t, c, "mine")
	get := func(name string) ([]byte, error) {
		r, err := hostv1.NewSecretsClient(j.conn).GetSecret(j.sink.ctx, &hostv1.GetSecretRequest{Name: name})
		return r.GetValue(), err
	}
	v, err := get("token")
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(v))
	for _, name := range []string{"other", "", "../token", "TOKEN"} {
		_, err = get(name)
		requireRefusal(t, permanent, err, "not listed")
	}
	_, err = get("broken")
	r := requireRefusal(t, retryable, err, "cannot be read")
	require.NotContains(t, r.GetMessage(), "/run/secrets", "the plugin learns no path of the host")
}

func TestDial_OnlyWhatIsListed(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				b, _ := io.ReadAll(c) // ends with the plugin's half
				_, _ = c.Write(bytes.ToUpper(b))
				_ = c.Close()
			}()
		}
	}()
	gone, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	j := outwardJob(t, broker.Config{Dials: map[string]map[string]string{"mine": {"db": l.Addr().String(), "gone": gone.Addr().String()}, "theirs": {"x": l.Addr().String()}}}, "mine")
	c := hostv1.NewDialClient(j.conn)
	out, err := dial(j.sink.ctx, c, "db", []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, "HELLO", string(out))
	for _, name := range []string{"x", "", l.Addr().String(), "127.0.0.1:22"} {
		_, err = dial(j.sink.ctx, c, name, nil)
		requireRefusal(t, permanent, err, "not listed")
	}
	_, err = dial(j.sink.ctx, c, "gone", nil)
	require.NotContains(t, requireRefusal(t, retryable, err, "cannot be reached").GetMessage(), "127.0.0.1", "the plugin learns no address")
}

// A connection ends with its lease.
func TestDial_EndsWithTheLease(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
	}()
	j := outwardJob(t, broker.Config{Dials: map[string]map[string]string{"mine": {"db": l.Addr().String()}}}, "mine")
	st, err := hostv1.NewDialClient(j.conn).Dial(j.sink.ctx)
	require.NoError(t, err)
	require.NoError(t, st.Send(&hostv1.DialRequest{Name: "db"}))
	far := <-accepted
	defer far.Close()
	j.lease.Close()
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = st.Recv()
	requireRefusal(t, retryable, err, "lost")
}

func TestLog_BoundedAndNamed(t *testing.T) {
	var buf bytes.Buffer
	j := outwardJob(t, broker.Config{Logger: slog.New(slog.NewJSONHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))}, "mine")
	attrs := map[string]string{"k": strings.Repeat("v", 1<<20)}
	for i := range 100 {
		attrs[strings.Repeat("x", i+2)] = "y"
	}
	_, err := hostv1.NewLogClient(j.conn).Write(j.sink.ctx, &hostv1.WriteRequest{Level: "warn", Message: "line\nforged " + strings.Repeat("m", 1<<20), Attributes: attrs})
	require.NoError(t, err)
	require.Less(t, buf.Len(), 64<<10)
	require.Equal(t, 1, strings.Count(buf.String(), "\n"))
	require.Contains(t, buf.String(), `"level":"WARN"`)
	require.Contains(t, buf.String(), `"plugin":"mine"`)
	require.Contains(t, buf.String(), `"job":"job"`)
}

func TestProgress_ReachesTheJob(t *testing.T) {
	type update struct {
		job, phase string
		fraction   float64
	}
	got := make(chan update, 3)
	j := outwardJob(t, broker.Config{Progress: func(job, phase string, fraction float64) { got <- update{job, phase, fraction} }}, "mine")
	c := hostv1.NewProgressClient(j.conn)
	for _, f := range []float64{0.5, 7, math.NaN()} {
		_, err := c.Update(j.sink.ctx, &hostv1.UpdateRequest{Phase: "packing", Fraction: f})
		require.NoError(t, err)
	}
	require.Equal(t, update{"job", "packing", 0.5}, <-got)
	require.Equal(t, update{"job", "packing", 1}, <-got)
	require.Equal(t, update{"job", "packing", 0}, <-got)
}

// externalJob is one of a sink with a commit point of its own.
func externalJob(t *testing.T) (*job, hostv1.SealClient) {
	t.Helper()
	j := storageJob(t, func(s *broker.LeaseSpec) { s.Sink.CommitPoint = sinkv1.CommitPoint_COMMIT_POINT_EXTERNAL })
	return j, hostv1.NewSealClient(j.conn)
}

func (j *job) take(c hostv1.SealClient, version string) (int64, error) {
	r, err := c.Take(j.sink.ctx, &hostv1.TakeRequest{CommitPoint: &hostv1.CommitPoint{Version: version, Markers: j.spec.Markers}, RequestDigest: []byte("d")})
	return r.GetAttempt(), err
}

func (j *job) report(c hostv1.SealClient, n int64, kind hostv1.RefusalKind, version string) error {
	_, err := c.Report(j.sink.ctx, &hostv1.ReportRequest{Attempt: n, Kind: kind, Version: version})
	return err
}

func TestSeal_TakeAndReport(t *testing.T) {
	j, c := externalJob(t)
	n, err := j.take(c, "7")
	require.NoError(t, err)
	require.Equal(t, coordinator.Sealed, j.gate.state())
	_, err = j.take(c, "8")
	requireRefusal(t, unknown, err, "not been reported")
	requireRefusal(t, permanent, j.report(c, n+1, 0, "7"), "not open")
	requireRefusal(t, permanent, j.report(c, n, fenced, "7"), "outcome")
	require.NoError(t, j.report(c, n, conflict, ""))
	require.Equal(t, coordinator.Committing, j.gate.state())
	n, err = j.take(c, "8")
	require.NoError(t, err)
	require.NoError(t, j.report(c, n, 0, "8"))
	require.Equal(t, coordinator.Committed, j.gate.state())
	requireRefusal(t, permanent, j.report(c, n, 0, "8"), "not open")
	_, err = j.take(c, "9")
	requireRefusal(t, already, err, "committed")
}

// After an unknown outcome only landed, found and dead settle; the sink's "conflict" then is its word that the request is dead.
func TestSeal_UnknownThenDead(t *testing.T) {
	j, c := externalJob(t)
	n, err := j.take(c, "7")
	require.NoError(t, err)
	require.NoError(t, j.report(c, n, unknown, ""))
	require.Equal(t, coordinator.Resolving, j.gate.state())
	_, err = j.take(c, "8")
	requireRefusal(t, unknown, err, "")
	require.NoError(t, j.report(c, n, conflict, ""))
	require.Equal(t, coordinator.Committing, j.gate.state())
	require.Equal(t, []coordinator.OutcomeKind{coordinator.OutcomeUnknown, coordinator.OutcomeDead}, j.gate.outcomes())
}

func TestSeal_NobodyReports(t *testing.T) {
	j, c := externalJob(t)
	_, err := j.take(c, "7")
	require.NoError(t, err)
	_, err = j.lease.Sweep(t.Context(), nil)
	require.ErrorIs(t, err, broker.ErrUnsettled)
	require.Equal(t, coordinator.Resolving, j.gate.state(), "the lease is closed: the outcome is unknown, not nothing")
	_, err = j.broker.Resolve(t.Context(), j.spec, *j.gate.m.Open())
	require.ErrorIs(t, err, broker.ErrExternal)
}

func TestSeal_Refusals(t *testing.T) {
	j, c := externalJob(t)
	_, err := c.Take(j.sink.ctx, &hostv1.TakeRequest{CommitPoint: &hostv1.CommitPoint{Markers: j.spec.Markers}})
	requireRefusal(t, permanent, err, "no version")
	_, err = c.Take(j.sink.ctx, &hostv1.TakeRequest{CommitPoint: &hostv1.CommitPoint{Version: "1", Markers: []string{"ab"}}})
	requireRefusal(t, permanent, err, "exactly")
	require.NoError(t, j.gate.Step(coordinator.Cancel{}))
	_, err = j.take(c, "1")
	requireRefusal(t, fenced, err, "fenced")
	s := storageJob(t)
	_, err = s.take(hostv1.NewSealClient(s.conn), "1")
	requireRefusal(t, permanent, err, "no external commit point")
}

// What a sink dials through the SDK is a connection like any other: it carries HTTP, has deadlines, and says why it ended.
func TestDial_AConnectionOfTheSDK(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 20<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = w.Write(bytes.ToUpper(got))
		}
		assert.NoError(t, err)
	}))
	defer server.Close()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	gone, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	j := outwardJob(t, broker.Config{Dials: map[string]map[string]string{"mine": {
		"web": server.Listener.Addr().String(), "silent": silent.Addr().String(), "gone": gone.Addr().String(),
	}}}, "mine")
	ctx := sdk.WithHost(t.Context(), j.conn, j.lease.Token())
	dial := func(name string) net.Conn {
		c, err := sdk.HostFrom(ctx).Dial(ctx, name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}

	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return sdk.HostFrom(ctx).Dial(ctx, "web") }}
	defer transport.CloseIdleConnections()
	for range 2 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://any.name/", bytes.NewReader(body))
		require.NoError(t, err)
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, bytes.ToUpper(body), got)
	}

	quiet := dial("silent")
	require.NoError(t, quiet.SetReadDeadline(time.Now().Add(-time.Second)))
	_, err = quiet.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, quiet.Close())
	_, err = quiet.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)

	_, err = dial("gone").Read(make([]byte, 1))
	require.ErrorIs(t, err, sdk.ErrRetryable)
	_, err = dial("unlisted").Read(make([]byte, 1))
	require.ErrorIs(t, err, sdk.ErrPermanent)
	require.ErrorContains(t, err, "not listed")
	open := dial("silent")
	for range 2 { // the first was the quiet one
		far, err := silent.Accept()
		require.NoError(t, err)
		defer far.Close()
	}
	j.lease.Close()
	_, err = open.Read(make([]byte, 1))
	require.ErrorIs(t, err, sdk.ErrRetryable)
}
