package scheduler

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Those who ask while an answer is being made share the next, which begins after all of them have asked.
func TestFlights_NobodyGetsAnAnswerOlderThanHisQuestion(t *testing.T) {
	f := flights[int]{spawn: func(f func()) { go f() }}
	begun, release := make(chan struct{}, 10), make(chan struct{})
	answers := 0
	ask := func() (int, error) {
		answers++ // one at a time
		n := answers
		begun <- struct{}{}
		<-release
		return n, nil
	}
	var group sync.WaitGroup
	group.Go(func() {
		n, err := f.do(t.Context(), "k", ask)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
	<-begun
	var others []*flight[int]
	for range 5 {
		others = append(others, f.join("k", ask))
	}
	for _, o := range others {
		require.Same(t, others[0], o)
	}
	release <- struct{}{}
	<-begun
	release <- struct{}{}
	<-others[0].done
	require.Equal(t, 2, others[0].value)
	group.Wait()
	require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.keys) == 0 }, 10*time.Second, time.Millisecond)
}

func TestFlights_ErrorsAndImpatience(t *testing.T) {
	f := flights[int]{spawn: func(f func()) { go f() }}
	wrong := errors.New("wrong")
	_, err := f.do(t.Context(), "k", func() (int, error) { return 0, wrong })
	require.ErrorIs(t, err, wrong)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(wrong)
	release := make(chan struct{})
	_, err = f.do(ctx, "k", func() (int, error) { <-release; return 0, nil })
	require.ErrorIs(t, err, wrong)
	close(release)
}
