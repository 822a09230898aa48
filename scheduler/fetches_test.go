package scheduler

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/journal"
)

func TestFetches_Limits(t *testing.T) {
	var f fetches
	var ends []func()
	take := func(who string) error {
		end, err := f.begin(who)
		if err == nil {
			ends = append(ends, end)
		}
		return err
	}
	for range fetchesPerUser {
		require.NoError(t, take("ann"))
	}
	err := take("ann")
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, fmt.Sprint(fetchesPerUser))
	for i := range fetchesAtOnce - fetchesPerUser {
		require.NoError(t, take(fmt.Sprintf("user-%d", i)))
	}
	err = take("bob")
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, fmt.Sprint(fetchesAtOnce))
	ends[0]()
	require.NoError(t, take("bob"))
	for _, end := range ends[1:] {
		end()
	}
	require.Zero(t, f.all)
	require.Empty(t, f.open)
}

// Clients that open results and do not read them are refused from the limit on, cost little each, and a place is free again when one has gone.
func TestFetchResult_StreamsThatNobodyReadsAreLimited(t *testing.T) {
	b := newBench(t)
	j := newJob(t.Context(), journal.Job{ID: "big", State: journal.StateSuccessful})
	j.owner, j.output = localPrincipal, &output{dir: t.TempDir()}
	sp, err := j.output.begin("a")
	require.NoError(t, err)
	const size = 40 << 20 // more than the 16 MiB to which gRPC lets the window of a connection grow, so that no stream ends unread
	_, err = sp.Write(make([]byte, size))
	require.NoError(t, err)
	require.True(t, sp.complete())
	b.server.mu.Lock()
	b.server.jobs[j.id] = j
	b.server.mu.Unlock()

	var open []grpc.ServerStreamingClient[schedulerv1.FetchResultResponse]
	fetch := func() error {
		st, err := b.client.Raw().FetchResult(t.Context(), &schedulerv1.FetchResultRequest{JobId: j.id})
		require.NoError(t, err)
		m, err := st.Recv()
		if err == nil {
			open = append(open, st)
			require.LessOrEqual(t, len(m.Data), fetchChunk)
		}
		return err
	}
	for range fetchesPerUser {
		require.NoError(t, fetch())
	}
	err = fetch()
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	require.ErrorContains(t, err, fmt.Sprint(fetchesPerUser))
	for n := fetchChunk; ; {
		m, err := open[0].Recv()
		if errors.Is(err, io.EOF) {
			require.Equal(t, size, n)
			break
		}
		require.NoError(t, err)
		n += len(m.Data)
	}
	b.eventually("a place", func() bool { return fetch() == nil })
}
