package dispatch_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/dispatch"
)

func (s *session) ask(r *executorv1.AccessRequest) {
	s.t.Helper()
	s.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_AccessRequest{AccessRequest: r}})
}

func (s *session) access(r *executorv1.AccessRequest) *executorv1.Access {
	s.t.Helper()
	s.ask(r)
	a := s.recv().GetAccess()
	require.NotNil(s.t, a)
	require.Equal(s.t, r.GetRequestId(), a.GetRequestId())
	return a
}

func aboutAttempt(id string, ref *executorv1.AttemptRef) *executorv1.AccessRequest {
	return &executorv1.AccessRequest{RequestId: id, Attempt: ref}
}

// Access is for the attempt that an executor holds in this session, under the ids that it was launched with; nothing else is answered.
func TestAccess_OnlyForWhatTheSessionHolds_J19(t *testing.T) {
	p, _, c := newPool(t, dispatch.Config{})
	mine, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	launch(p, &planv1.Task{JobId: "j", Stage: 1, Task: 2, AttemptId: "a", Epoch: 5})
	require.Equal(t, "a", mine.recv().GetLaunch().GetTask().GetAttemptId())
	other, _ := join(t, c, &executorv1.Register{ExecutorId: "y", Slots: 1})

	ref := &executorv1.AttemptRef{JobId: "j", Stage: 1, Task: 2, AttemptId: "a", Epoch: 5}
	require.Equal(t, "https://signed", mine.access(aboutAttempt("r1", ref)).GetReads()[0].GetUrl())
	for name, change := range map[string]func(*executorv1.AttemptRef){
		"older epoch": func(r *executorv1.AttemptRef) { r.Epoch = 4 }, "other job": func(r *executorv1.AttemptRef) { r.JobId = "k" },
		"other task": func(r *executorv1.AttemptRef) { r.Task = 3 }, "other attempt": func(r *executorv1.AttemptRef) { r.AttemptId = "b" },
	} {
		wrong := proto.CloneOf(ref)
		change(wrong)
		a := mine.access(aboutAttempt("r2", wrong))
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, a.GetError().GetClass(), name)
		require.Empty(t, a.GetReads(), name)
	}
	a := other.access(aboutAttempt("r3", ref))
	require.Contains(t, a.GetError().GetMessage(), "none that this executor holds")
	require.Empty(t, a.GetReads())
	for _, r := range []*executorv1.AccessRequest{{RequestId: "r4"}, {RequestId: "r4", Attempt: ref, Analysis: "q"}, {RequestId: "r4", Analysis: "q"}} {
		require.NotNil(t, mine.access(r).GetError())
	}

	p.Ended("a")
	require.NotNil(t, mine.access(aboutAttempt("r5", ref)).GetError(), "the attempt is over")
}

// A slot that is given away while access is being made takes the access with it.
func TestAccess_NothingForAnAttemptThatEndsMeanwhile(t *testing.T) {
	p, rec, c := newPool(t, dispatch.Config{})
	rec.granting = func(context.Context) { p.Ended("a") }
	x, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	launch(p, task("j", "a"))
	x.recv()
	a := x.access(aboutAttempt("r", &executorv1.AttemptRef{JobId: "j", AttemptId: "a", Epoch: 5}))
	require.NotNil(t, a.GetError())
	require.Empty(t, a.GetReads())
}

func TestAccess_OfAnAnalysis(t *testing.T) {
	p, _, c := newPool(t, dispatch.Config{})
	x, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	done := make(chan error, 1)
	go func() {
		_, err := p.Analyze(t.Context(), &executorv1.Analyze{RequestId: "q", Sql: "SELECT 1"})
		done <- err
	}()
	require.Equal(t, "q", x.recv().GetAnalyze().GetRequestId())
	y, _ := join(t, c, &executorv1.Register{ExecutorId: "y", Slots: 1})
	require.NotNil(t, y.access(&executorv1.AccessRequest{RequestId: "r", Analysis: "q"}).GetError(), "another executor was asked")
	require.Equal(t, "SELECT 1", x.access(&executorv1.AccessRequest{RequestId: "r", Analysis: "q"}).GetReads()[0].GetUri(), "the handler knows what the analysis is")
	x.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Analyzed{Analyzed: &executorv1.AnalyzeResult{RequestId: "q"}}})
	require.NoError(t, <-done)
	require.NotNil(t, x.access(&executorv1.AccessRequest{RequestId: "r", Analysis: "q"}).GetError(), "it is answered")
}

// An executor that asks and asks keeps a bounded number of goroutines, and its context ends with its session.
func TestAccess_Bounded(t *testing.T) {
	p, rec, c := newPool(t, dispatch.Config{})
	entered, ended := make(chan struct{}, 100), make(chan struct{}, 100)
	rec.granting = func(ctx context.Context) {
		entered <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
	}
	x, _ := join(t, c, &executorv1.Register{ExecutorId: "x", Slots: 1})
	launch(p, task("j", "a"))
	x.recv()
	for n := range 65 {
		x.ask(aboutAttempt(fmt.Sprint(n), &executorv1.AttemptRef{JobId: "j", AttemptId: "a", Epoch: 5}))
	}
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_IO, x.recv().GetAccess().GetError().GetClass(), "to be asked again later")
	for range 64 {
		<-entered
	}
	x.cancel()
	for range 64 {
		<-ended
	}
}
