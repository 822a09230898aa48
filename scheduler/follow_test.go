package scheduler

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/scheduler/root"
)

// followers are the two ways in which a client follows a job: it subscribes, or it asks.
var followers = map[string][]client.Option{"push": nil, "pull": {client.WithPolling()}}

// Until the root has run the job is Running to those who subscribe and to those who ask; then both get its result with the terminal status.
func TestClient_FollowsUntilTheRootHasRun_S14_S27_S28(t *testing.T) {
	for name, opts := range followers {
		t.Run(name, func(t *testing.T) {
			began, release := make(chan struct{}), make(chan struct{})
			b := newBench(t, WithRoot(isResult, root.Func(func(ctx context.Context, in root.Input, out root.Output) error {
				close(began)
				<-release
				return root.Count.Run(ctx, in, out)
			})))
			b.actor()
			c, err := client.Dial(b.server.Addr(), opts...)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			id := b.submit("SELECT n", inParts("static"))
			<-began
			var mu sync.Mutex
			var states []schedulerv1.JobState
			seen := make(chan struct{}, 1000)
			ended := make(chan *schedulerv1.Job, 1)
			go func() {
				j, err := c.Wait(context.WithoutCancel(t.Context()), id, func(j *schedulerv1.Job) {
					mu.Lock()
					states = append(states, j.GetState())
					mu.Unlock()
					select {
					case seen <- struct{}{}:
					default:
					}
				})
				if err == nil {
					ended <- j
				}
				close(ended)
			}()
			<-seen
			select {
			case <-ended:
				t.Fatal("it says that the job has ended, and its root runs")
			default:
			}
			mu.Lock()
			for _, s := range states {
				require.Equal(t, schedulerv1.JobState_JOB_STATE_RUNNING, s)
			}
			mu.Unlock()
			close(release)
			j, ok := <-ended
			require.True(t, ok)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
			rows, partitions := counted(t, j.GetInlineResult())
			require.EqualValues(t, 10*partitions, rows)
		})
	}
}

// A subscriber that reads nothing while the job runs holds nobody up, and gets the terminal status when it reads; what it missed in between is skipped.
func TestWatch_SlowSubscriberGetsTheEnd_T4(t *testing.T) {
	b := newBench(t)
	b.actor()
	const tasks = 2000
	id := b.submitPlan(manyTasks(tasks), nil)
	var slow []interface {
		Recv() (*schedulerv1.WatchResponse, error)
	}
	for range 3 {
		st, err := b.client.Raw().Watch(t.Context(), &schedulerv1.WatchRequest{JobId: id})
		require.NoError(t, err)
		slow = append(slow, st)
	}
	// There are many tasks, and the race detector makes a slow machine slower.
	require.Eventually(t, func() bool { return isTerminal(b.job(id).GetJob().GetState()) }, 6*patience, lookAgain, "the job ends, which nobody holds up")
	for _, st := range slow {
		var last *schedulerv1.Job
		n := 0
		for {
			m, err := st.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.False(t, last != nil && isTerminal(last.GetState()), "the terminal status comes last")
			last, n = m.GetJob(), n+1
		}
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, last.GetState())
		require.EqualValues(t, tasks+1, last.GetProgress().GetTasksDone())
	}
	late, err := b.client.Wait(t.Context(), id, nil) // who comes when it is over is told, too
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, late.GetState())
}
