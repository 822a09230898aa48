package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a plugin that ends when it is told to.
type fake struct {
	n      int
	exited chan struct{}
}

func (f *fake) Exited() <-chan struct{} { return f.exited }
func (f *fake) LastLines() []string     { return nil }
func (f *fake) Stop(context.Context) error {
	select {
	case <-f.exited:
	default:
		close(f.exited)
	}
	return nil
}

// world starts fakes, as often as it is asked, after so many failures.
type world struct {
	starts   []time.Time
	failures int
	takes    time.Duration
}

var errBroken = errors.New("broken")

func (w *world) start(context.Context) (*fake, error) {
	w.starts = append(w.starts, time.Now())
	time.Sleep(w.takes)
	if w.failures > 0 {
		w.failures--
		return nil, errBroken
	}
	return &fake{n: len(w.starts), exited: make(chan struct{})}, nil
}

func supervise(w *world) *supervisor[*fake] {
	b := Backoff{First: time.Second, Max: 8 * time.Second, Steady: time.Minute}
	return newSupervisor(w.start, b, func(*fake, time.Duration) {})
}

func TestSupervisor_RestartsAfterACrashWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := supervise(w)
		began := time.Now()
		p, err := s.get(t.Context())
		require.NoError(t, err)
		for range 5 {
			close(p.exited)
			synctest.Wait()
			p, err = s.get(t.Context()) // waits for the restart, and does not get the dead one
			require.NoError(t, err)
		}
		synctest.Wait()
		var gaps []time.Duration
		for i := range w.starts[1:] {
			gaps = append(gaps, w.starts[i+1].Sub(w.starts[i]))
		}
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second}, gaps)
		time.Sleep(time.Minute) // it lived long: the next crash starts over
		close(p.exited)
		synctest.Wait()
		p, err = s.get(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, began.Add(23*time.Second+time.Minute+time.Second), w.starts[6])
		require.NoError(t, s.stop(t.Context()))
		<-p.exited
		_, err = s.get(t.Context())
		require.ErrorIs(t, err, ErrStopping)
	})
}

func TestSupervisor_RestartsWithoutBeingAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := supervise(w)
		p, err := s.get(t.Context())
		require.NoError(t, err)
		close(p.exited)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, w.starts, 2)
		require.NoError(t, s.stop(t.Context()))
	})
}

func TestSupervisor_FailedStartIsSharedAndNotRepeatedUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{failures: 1, takes: time.Millisecond}
		s := supervise(w)
		errs := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := s.get(t.Context())
				errs <- err
			}()
		}
		for range 3 {
			require.ErrorIs(t, <-errs, errBroken)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, w.starts, 1)
		_, err := s.get(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.stop(t.Context()))
	})
}

func TestSupervisor_CallerMayGiveUpTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{failures: 1}
		s := supervise(w)
		_, err := s.get(t.Context())
		require.ErrorIs(t, err, errBroken)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = s.get(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errBroken, "the reason of the wait is told")
		p, err := s.get(t.Context())
		require.NoError(t, err, "the attempt goes on for others")
		require.Equal(t, 2, p.n)
		require.NoError(t, s.stop(t.Context()))
	})
}

func TestSupervisor_StopWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{failures: 1}
		s := supervise(w)
		_, err := s.get(t.Context())
		require.ErrorIs(t, err, errBroken)
		got := make(chan error, 1)
		go func() {
			_, err := s.get(t.Context())
			got <- err
		}()
		synctest.Wait()
		require.NoError(t, s.stop(t.Context()))
		require.ErrorIs(t, <-got, ErrStopping)
		synctest.Wait()
		require.Len(t, w.starts, 1)
	})
}
