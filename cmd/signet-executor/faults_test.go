package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/internal/fault"
)

const bigSQL = "SELECT (hash(i) >> 1)::BIGINT AS a FROM range(1000000) t(i)" // some 8 MB

func launch(attempt string, work *planv1.Task) *executorv1.SessionResponse {
	work.JobId, work.AttemptId, work.Epoch = "job", attempt, 1
	return &executorv1.SessionResponse{Message: &executorv1.SessionResponse_Launch{Launch: &executorv1.Launch{Task: work}}}
}

func leaves(sql string) *planv1.Task {
	return &planv1.Task{Sql: sql, Work: &planv1.Task_Exchange{Exchange: &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_GATHER, Partitions: 1, Ticket: "t"}}}
}

// faulty starts an executor whose fault points are armed, and answers the address of its exchange.
func faulty(t *testing.T, points string, script ...*executorv1.SessionResponse) (s *scheduler, address string) {
	t.Helper()
	t.Setenv(fault.Env, points)
	s, at := schedule(t, script...)
	_, log := process(t, "--scheduler", at)
	found := regexp.MustCompile(`exchange=(127\.0\.0\.1:\d+)`).FindStringSubmatch(log.String())
	require.Len(t, found, 2)
	return s, found[1]
}

func part(address, attempt string, p *planv1.ExchangePartition) *planv1.ExchangePart {
	return &planv1.ExchangePart{AttemptId: attempt, Address: address, Ticket: "t", Bytes: p.GetBytes(), Sha256: p.GetSha256()}
}

// A stream that breaks, and an executor that is busy, are waited for; the bytes are the same.
func TestFaults_BrokenStreamsAreResumed(t *testing.T) {
	s, address := faulty(t, "executor.exchange.serve=2*error(busy);executor.exchange.chunk=2*off->1*error(cut)->1*off->1*error(cut)", launch("a", leaves(bigSQL)))
	st := s.next(t)
	require.Nil(t, st.GetError())
	d := exchangeclient.NewDialer(exchangeclient.Config{})
	defer d.Close()
	var out bytes.Buffer
	require.NoError(t, exchangeclient.Fetch(t.Context(), d, part(address, "a", st.GetOutput().GetPartitions()[0]), &out))
	require.Greater(t, out.Len(), 4<<20)
}

// What fails before its end is reported leaves nothing that can be fetched.
func TestFaults_FailedAttemptKeepsNoOutput(t *testing.T) {
	for _, point := range []string{"executor.exchange.before-copy", "executor.exchange.after-copy", "executor.exchange.after-keep"} {
		s, address := faulty(t, point+"=1*error(injected)", launch("a", leaves(bigSQL)), launch("b", leaves("SELECT 1 AS a")))
		ends := map[string]*executorv1.TaskStatus{}
		for len(ends) < 2 { // one may come twice, until it is acknowledged
			st := s.next(t)
			ends[st.GetAttempt().GetAttemptId()] = st
		}
		failed, kept := "a", "b"
		if ends["a"].GetError() == nil {
			failed, kept = "b", "a"
		}
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_IO, ends[failed].GetError().GetClass(), point)
		require.Nil(t, ends[failed].GetOutput())
		d := exchangeclient.NewDialer(exchangeclient.Config{})
		var out bytes.Buffer
		p := ends[kept].GetOutput().GetPartitions()[0]
		require.NoError(t, exchangeclient.Fetch(t.Context(), d, part(address, kept, p), &out))
		require.ErrorAs(t, exchangeclient.Fetch(t.Context(), d, part(address, failed, p), &out), new(*exchangeclient.LostError))
		require.NoError(t, d.Close())
	}
}

// A part that cannot be had is a loss; trouble of this executor while it fetches is not.
func TestFaults_ClassesOfFetchErrors(t *testing.T) {
	for points, class := range map[string]planv1.ErrorClass{
		"exchange.fetch.before-part=1*error(x)": planv1.ErrorClass_ERROR_CLASS_FETCH,
		"executor.fetch.before=1*error(x)":      planv1.ErrorClass_ERROR_CLASS_IO,
		"executor.fetch.after=1*error(x)":       planv1.ErrorClass_ERROR_CLASS_IO,
	} {
		made, address := faulty(t, "", launch("a", leaves("SELECT 1::BIGINT AS a")))
		p := part(address, "a", made.next(t).GetOutput().GetPartitions()[0])
		consumer := leaves("SELECT a FROM v")
		consumer.Sources = []*planv1.Source{{View: "v", Kind: &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{
			Columns: []*planv1.Column{{Name: "a", EngineType: "BIGINT"}}, Parts: []*planv1.ExchangePart{p},
		}}}}
		s, _ := faulty(t, points, launch("b", consumer))
		st := s.next(t)
		require.Equal(t, class, st.GetError().GetClass(), "%s: %v", points, st)
		if class == planv1.ErrorClass_ERROR_CLASS_FETCH {
			require.Equal(t, "a", st.GetError().GetLostAttempt())
		}
	}
}

// A drain that failed to begin does not begin; the next one does.
func TestFaults_DrainIsAskedForAgain(t *testing.T) {
	drain := &executorv1.SessionResponse{Message: &executorv1.SessionResponse_Drain{Drain: &executorv1.Drain{Reason: "maintenance"}}}
	t.Setenv(fault.Env, "executor.drain.received=1*error(x);executor.drain.before-leave=error(x)")
	s, address := schedule(t, drain, launch("a", leaves("SELECT error('as meant')")), drain)
	cmd, log := process(t, "--scheduler", address)
	require.Contains(t, s.next(t).GetError().GetMessage(), "as meant") // it began before the drain
	require.NoError(t, cmd.Wait(), "%s", log)
	require.Contains(t, log.String(), "drain ignored")
}
