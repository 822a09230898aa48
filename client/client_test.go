package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/client/clienttest"
)

func dial(t *testing.T, f *clienttest.Scheduler, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Dial(f.Start(t), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func texts(t *testing.T, rows *client.Rows) []string {
	t.Helper()
	var out []string
	for rows.Next() {
		col := rows.RecordBatch().Column(0).(*array.String)
		for i := range col.Len() {
			out = append(out, col.Value(i))
		}
	}
	require.NoError(t, rows.Err())
	return out
}

// S27 and S29: a subscriber decodes the inline result, and fetches nothing.
func TestExec_InlineResultByWatch(t *testing.T) {
	want := clienttest.ArrowStream(t, "a", "b")
	f := &clienttest.Scheduler{OnWatch: func(_ int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
		_ = s.Send(&schedulerv1.WatchResponse{Job: clienttest.Running("stages")})
		j := clienttest.Succeeded()
		j.InlineResult = want
		return s.Send(&schedulerv1.WatchResponse{Job: j})
	}, OnFetch: func(grpc.ServerStreamingServer[schedulerv1.FetchResultResponse]) error {
		t.Error("an inline result was fetched")
		return nil
	}}
	c := dial(t, f, client.WithToken("secret"))
	var phases []string
	rows, err := c.Query(t.Context(), "INSERT INTO t SELECT 1", client.WithProgress(func(j *schedulerv1.Job) { phases = append(phases, j.GetPhase()) }))
	require.NoError(t, err)
	defer rows.Close()
	require.True(t, rows.Inline())
	require.Equal(t, []string{"a", "b"}, texts(t, rows))
	require.Equal(t, []string{"stages", ""}, phases)
	require.Equal(t, []string{"Bearer secret"}, f.Seen().Tokens)
}

// S28: a poller decodes it too.
func TestExec_InlineResultByPolling(t *testing.T) {
	want := clienttest.ArrowStream(t, "a")
	f := &clienttest.Scheduler{OnJob: func(n int) (*schedulerv1.Job, error) {
		if n < 3 {
			return clienttest.Running("root"), nil
		}
		j := clienttest.Succeeded()
		j.InlineResult = want
		return j, nil
	}}
	c := dial(t, f, client.WithPolling())
	rows, err := c.Query(t.Context(), "x")
	require.NoError(t, err)
	defer rows.Close()
	require.Equal(t, []string{"a"}, texts(t, rows))
	require.Zero(t, f.Seen().Watches)
}

// S30: zero rows keep their columns; a statement without rows has none.
func TestRows_EmptyResultKeepsItsSchema(t *testing.T) {
	j := clienttest.Succeeded()
	j.InlineResult = clienttest.ArrowStream(t)
	c := dial(t, (&clienttest.Scheduler{}))
	rows, err := c.Rows(t.Context(), j)
	require.NoError(t, err)
	require.Equal(t, 2, rows.Schema().NumFields())
	require.Empty(t, texts(t, rows))
	rows.Close()

	rows, err = c.Rows(t.Context(), clienttest.Succeeded())
	require.NoError(t, err)
	require.Nil(t, rows.Schema())
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())
	rows.Close()
}

// X18: a value of 8 MiB in a streamed result, and a statement of 6 MiB.
func TestQuery_LargeValuesAndStatements(t *testing.T) {
	big := strings.Repeat("x", 8<<20)
	data := clienttest.ArrowStream(t, big)
	f := &clienttest.Scheduler{OnWatch: func(_ int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
		j := clienttest.Succeeded()
		j.HasRows = true
		return s.Send(&schedulerv1.WatchResponse{Job: j})
	}, OnFetch: func(s grpc.ServerStreamingServer[schedulerv1.FetchResultResponse]) error {
		for len(data) > 0 {
			n := min(len(data), 1<<20)
			if err := s.Send(&schedulerv1.FetchResultResponse{Data: data[:n]}); err != nil {
				return err
			}
			data = data[n:]
		}
		return nil
	}}
	c := dial(t, f)
	rows, err := c.Query(t.Context(), "SELECT '"+strings.Repeat("y", 6<<20)+"'")
	require.NoError(t, err)
	defer rows.Close()
	require.False(t, rows.Inline())
	require.Equal(t, []string{big}, texts(t, rows))
}

func TestQuery_BrokenResultStreamIsAnError(t *testing.T) {
	data := clienttest.ArrowStream(t, "a")
	f := &clienttest.Scheduler{OnWatch: func(_ int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
		j := clienttest.Succeeded()
		j.HasRows = true
		return s.Send(&schedulerv1.WatchResponse{Job: j})
	}, OnFetch: func(s grpc.ServerStreamingServer[schedulerv1.FetchResultResponse]) error {
		_ = s.Send(&schedulerv1.FetchResultResponse{Data: data[:len(data)/2]})
		return status.Error(codes.DataLoss, "executor e1 was lost")
	}}
	c := dial(t, f)
	rows, err := c.Query(t.Context(), "SELECT 1")
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
		rows.Close()
	}
	require.ErrorContains(t, err, "executor e1 was lost")
}

// T4: a subscription that breaks loses no status; the client comes back by job id and never submits twice.
func TestExec_ReconnectsByJobID(t *testing.T) {
	f := &clienttest.Scheduler{OnWatch: func(n int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
		_ = s.Send(&schedulerv1.WatchResponse{Job: clienttest.Running("stages")})
		if n < 4 {
			return status.Error(codes.Unavailable, "going down")
		}
		return s.Send(&schedulerv1.WatchResponse{Job: clienttest.Succeeded()})
	}}
	c := dial(t, f)
	_, err := c.Exec(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, 4, f.Seen().Watches)
	require.Len(t, f.Seen().Submits, 1)
}

func TestExec_FallsBackToPolling(t *testing.T) {
	for name, code := range map[string]codes.Code{"no watch": codes.Unimplemented, "streams are cut": codes.Unavailable} {
		t.Run(name, func(t *testing.T) {
			f := &clienttest.Scheduler{
				OnWatch: func(int, grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
					return status.Error(code, "no")
				},
				OnJob: func(int) (*schedulerv1.Job, error) { return clienttest.Succeeded(), nil },
			}
			_, err := dial(t, f).Exec(t.Context(), "x")
			require.NoError(t, err)
			require.Equal(t, 1, f.Seen().Polls)
		})
	}
}

// S63: a scheduler that goes away after the submission leaves an unknown outcome, not a failure.
func TestExec_LostSchedulerIsPending(t *testing.T) {
	f := &clienttest.Scheduler{OnWatch: func(_ int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
		_ = s.Send(&schedulerv1.WatchResponse{Job: clienttest.Running("resolving")})
		return status.Error(codes.Unavailable, "gone")
	}, OnJob: func(int) (*schedulerv1.Job, error) { return nil, status.Error(codes.Unavailable, "gone") }}
	c := dial(t, f, client.WithRetry(0))
	_, err := c.Exec(t.Context(), "x", client.WithIdempotencyKey("k"))
	var p *client.PendingError
	require.ErrorAs(t, err, &p)
	require.ErrorIs(t, err, client.ErrPending)
	require.Equal(t, "job-k", p.JobID)
	require.Equal(t, "resolving", p.Phase)
}

// S64: the answer to a submission was lost; it is repeated under the same key and names the same job.
func TestExec_RepeatsALostSubmission(t *testing.T) {
	f := &clienttest.Scheduler{OnSubmit: func(n int, _ *schedulerv1.SubmitRequest) error {
		if n < 3 {
			return status.Error(codes.Unavailable, "connection cut")
		}
		return nil
	}}
	res, err := dial(t, f).Exec(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, res.Existing)
	require.Len(t, f.Seen().Submits, 3)
	require.Equal(t, 1, f.Seen().Keys)
	require.NotEmpty(t, f.Seen().Submits[0].GetIdempotencyKey())
}

func TestExec_LostSubmissionWithoutRetryIsPending(t *testing.T) {
	f := &clienttest.Scheduler{OnSubmit: func(int, *schedulerv1.SubmitRequest) error { return status.Error(codes.Unavailable, "cut") }}
	_, err := dial(t, f, client.WithRetry(0)).Exec(t.Context(), "x", client.WithIdempotencyKey("k"))
	var p *client.PendingError
	require.ErrorAs(t, err, &p)
	require.Empty(t, p.JobID)
	require.Equal(t, "k", p.IdempotencyKey)
}

func TestExec_ContextEndLeavesTheJobRunning(t *testing.T) {
	f := &clienttest.Scheduler{OnWatch: func(_ int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
		_ = s.Send(&schedulerv1.WatchResponse{Job: clienttest.Running("stages")})
		<-s.Context().Done()
		return s.Context().Err()
	}}
	c := dial(t, f)
	stop := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := c.Exec(ctx, "x", client.WithProgress(func(*schedulerv1.Job) { cancel(stop) }))
	require.ErrorIs(t, err, client.ErrPending)
	require.ErrorIs(t, err, stop)
}

func TestExec_NobodyThere(t *testing.T) {
	const addr = "127.0.0.1:1"
	c, err := client.Dial(addr)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = c.Exec(ctx, "x")
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.NotErrorIs(t, err, client.ErrPending, "nothing was sent")
	require.ErrorContains(t, err, addr)
}

func TestExec_JobErrors(t *testing.T) {
	fail := func(state schedulerv1.JobState, e *schedulerv1.JobError) *clienttest.Scheduler {
		return &clienttest.Scheduler{OnWatch: func(_ int, s grpc.ServerStreamingServer[schedulerv1.WatchResponse]) error {
			return s.Send(&schedulerv1.WatchResponse{Job: &schedulerv1.Job{JobId: "j", State: state, Error: e}})
		}}
	}
	_, err := dial(t, fail(schedulerv1.JobState_JOB_STATE_FAILED, &schedulerv1.JobError{Code: "user", Message: "no column x", Hint: "did you mean y?"})).Exec(t.Context(), "x")
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, client.Error{Code: "user", Message: "no column x", Hint: "did you mean y?", JobID: "j"}, *e)

	_, err = dial(t, fail(schedulerv1.JobState_JOB_STATE_CANCELLED, nil)).Exec(t.Context(), "x")
	require.ErrorIs(t, err, client.ErrCancelled)
}

func TestExec_RefusalCarriesTheSchedulersWords(t *testing.T) {
	f := &clienttest.Scheduler{OnSubmit: func(int, *schedulerv1.SubmitRequest) error {
		st, err := status.New(codes.InvalidArgument, "raw").WithDetails(&schedulerv1.JobError{Code: "key-reused", Message: "key k names another statement", Hint: "use a new key"})
		require.NoError(t, err)
		return st.Err()
	}}
	_, err := dial(t, f).Exec(t.Context(), "x")
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "key-reused", e.Code)
	require.Equal(t, "use a new key", e.Hint)

	g := &clienttest.Scheduler{OnSubmit: func(int, *schedulerv1.SubmitRequest) error { return status.Error(codes.Unauthenticated, "token?") }}
	_, err = dial(t, g).Exec(t.Context(), "x")
	require.ErrorIs(t, err, client.ErrUnauthenticated)
}

func TestJobAndCancel(t *testing.T) {
	f := &clienttest.Scheduler{OnCancel: func(id string) (*schedulerv1.CancelJobResponse, error) {
		return &schedulerv1.CancelJobResponse{Message: id + " has committed"}, nil
	}}
	c := dial(t, f)
	ok, msg, err := c.Cancel(t.Context(), "j1")
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, "j1 has committed", msg)
	_, err = c.Job(t.Context(), "nope")
	require.ErrorIs(t, err, client.ErrNotFound)
}

func TestDial_RefusesBadAddressesAndPlainTextElsewhere(t *testing.T) {
	for addr, want := range map[string]string{"": "empty", "nohost": "want host:port", ":7070": "want host:port", "10.0.0.1:7070": "needs TLS", "example.org:7070": "needs TLS"} {
		_, err := client.Dial(addr, client.WithToken("t"))
		require.ErrorContains(t, err, want, addr)
	}
	junk := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(junk, []byte("junk"), 0o600))
	_, err := client.Dial("example.org:7070", client.WithCA(junk))
	require.ErrorContains(t, err, "holds no PEM certificate")
	for _, addr := range []string{"127.0.0.1:1", "[::1]:1", "localhost:1"} {
		c, err := client.Dial(addr)
		require.NoError(t, err, addr)
		require.NoError(t, c.Close())
	}
}
