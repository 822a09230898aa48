package fault

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets the tests of kill run this binary as the process that dies.
func TestMain(m *testing.M) {
	if os.Getenv("FAULT_TEST_HIT") != "" {
		for range 3 {
			_ = Hit("a.b")
			_, _ = os.Stdout.WriteString("passed\n")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(t *testing.T, term string) (passed int, killed bool) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FAULT_TEST_HIT=1", Env+"=a.b="+term)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
		ws, ok := exit.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		killed = ws.Signaled() && ws.Signal() == syscall.SIGKILL
	}
	return strings.Count(string(out), "passed"), killed
}

func TestKill_EndsTheProcess(t *testing.T) {
	passed, killed := child(t, "1*off->kill")
	require.True(t, killed)
	require.Equal(t, 1, passed)
}

// Only a process that is older than the file dies: its successor under the same list does not.
func TestKill_OfAFileSparesTheSuccessor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "arm")
	passed, killed := child(t, "kill("+file+")")
	require.False(t, killed, "nothing is armed")
	require.Equal(t, 3, passed)

	require.NoError(t, os.WriteFile(file, []byte("."), 0o600))
	require.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)))
	passed, killed = child(t, "kill("+file+")")
	require.True(t, killed)
	require.Equal(t, 1, passed, "the file's size is the number of hits that pass")

	require.NoError(t, os.Chtimes(file, time.Time{}, time.Now().Add(-time.Hour)))
	_, killed = child(t, "kill("+file+")")
	require.False(t, killed, "a process that is younger lives")
}

func TestParse_CountsAndRefuses(t *testing.T) {
	points, err := Parse("x=2*off->1*error(lost)->off; y=sleep(1ms)")
	require.NoError(t, err)
	require.Len(t, points, 2)
	require.NoError(t, points["x"].hit("x"))
	require.NoError(t, points["x"].hit("x"))
	err = points["x"].hit("x")
	require.True(t, errors.Is(err, ErrInjected), err)
	require.ErrorContains(t, err, "x: lost")
	require.NoError(t, points["x"].hit("x"))
	require.NoError(t, points["y"].hit("y"))
	for _, bad := range []string{"x", "x=boom", "x=0*kill", "x=error(open", "x=sleep(long)"} {
		_, err := Parse(bad)
		require.Error(t, err, bad)
	}
}
