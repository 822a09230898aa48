package sim_test

import (
	"flag"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/sim"
)

var (
	seeds  = flag.Int("seeds", 1000, "how many seeds to play")
	first  = flag.Uint64("first", 1, "the first seed")
	steps  = flag.Int("steps", 1000, "steps of each in which things go wrong")
	script = flag.String("script", "", "a script to replay")
)

// play plays n seeds, from first on and every so many, on all processors until one fails.
func play(first uint64, n, every, steps int) *sim.Failure {
	var next atomic.Uint64
	stride := uint64(every) //nolint:gosec // positive
	next.Store(first)
	var mu sync.Mutex
	var found *sim.Failure
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(stride) - stride
				mu.Lock()
				stop := found != nil
				mu.Unlock()
				if stop || seed >= first+uint64(n)*stride { //nolint:gosec // not negative
					return
				}
				if f := sim.Seed(seed, steps); f != nil {
					mu.Lock()
					if found == nil || f.Seed < found.Seed {
						found = f
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return found
}

// TestSim_NoScheduleBreaksARule plays seeds (S10 to S24, S40 to S44, S60 to S73, T1 to T6, T9).
func TestSim_NoScheduleBreaksARule(t *testing.T) {
	begun := time.Now()
	if f := play(*first, *seeds, 1, *steps); f != nil {
		min := sim.Shrink(f)
		t.Fatalf("%v\nThe script below does it: go test ./scheduler/sim -run Replay -v -script FILE\n\n%s", f, min.Script())
	}
	took := time.Since(begun)
	counts, never := sim.Seen()
	for what, n := range counts {
		t.Logf("%8d %s", n, what)
	}
	if *seeds >= 1000 && *steps >= 400 {
		require.Empty(t, never, "no schedule led there")
	}
	t.Logf("%d seeds in %s: %.0f a second", *seeds, took.Round(time.Millisecond), float64(*seeds)/took.Seconds())
}

// TestReplay plays a script and tells what happens.
func TestReplay(t *testing.T) {
	if *script == "" {
		t.Skip("no -script")
	}
	text, err := os.ReadFile(*script)
	require.NoError(t, err)
	seed, steps, err := sim.ParseScript(string(text))
	require.NoError(t, err)
	if f := sim.Play(seed, steps, func(s string) { t.Log(s) }); f != nil {
		t.Fatal(f)
	}
}

func TestStep_TextRoundTrip(t *testing.T) {
	for _, f := range []string{"submit j1", "deliver launch j1 a2 e3", "lose reply j2 a1", "rollback j1 x2", "fuse x7", "crash", "fail j1 a2 e1 x4", "lost e2 x1"} {
		s, err := sim.ParseStep(f)
		require.NoError(t, err)
		require.Equal(t, f, s.String())
	}
	for _, f := range []string{"", "explode", "submit one", "submit j", "submit q1"} {
		_, err := sim.ParseStep(f)
		require.Error(t, err, f)
	}
}

// TestPlay_StepsThatDoNotApplyDoNothing: a script with parts left out is a script, too.
func TestPlay_StepsThatDoNotApplyDoNothing(t *testing.T) {
	seed, steps, err := sim.ParseScript("seed 3\n# nothing of it exists\n" + strings.Join([]string{
		"deliver launch j1 a2 e3", "lose reply j9 a1", "rollback j7 x2", "loop j99", "accept j1 a5", "work j1 a1 e77", "sweep j1 a1", "lost e4 x9", "dispatch j1 e1", "root j1", "seal j1",
		"fuse x-1", "join e-1", "submit j-4", "write j1 x1", "begin e1",
	}, "\n"))
	require.NoError(t, err)
	require.Nil(t, sim.Play(seed, steps, nil))
}
