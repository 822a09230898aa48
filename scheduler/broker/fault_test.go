package broker_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
)

// faultCases say what one append, and a second one, come to when a fault point fails: kinds of refusal ("" is none), the coordinator's
// state after the first, the outcomes it was told, and how many snapshots the table has in the end.
var faultCases = map[string]struct {
	first, second string
	state         coordinator.State
	outcomes      string
	snapshots     int
}{
	"broker.load.before=1*error(x)":                                     {"RETRYABLE", "", coordinator.Committing, "[landed]", 1},
	"broker.put.before=1*error(x)":                                      {"RETRYABLE", "", coordinator.Committing, "[landed]", 1},
	"broker.put.after=1*error(x)":                                       {"RETRYABLE", "", coordinator.Committing, "[landed]", 1},
	"broker.seal.before=1*error(x)":                                     {"RETRYABLE", "", coordinator.Committing, "[landed]", 1},
	"broker.seal.after=1*error(x)":                                      {"RETRYABLE", "", coordinator.Committing, "[conflict landed]", 1},
	"broker.commit.after-send=1*error(x)":                               {"", "ALREADY", coordinator.Committed, "[landed]", 1},
	"broker.commit.lost-reply=1*error(x)":                               {"", "ALREADY", coordinator.Committed, "[landed]", 1},
	"broker.commit.lost-reply=1*error(x);broker.look.before=3*error(y)": {"", "ALREADY", coordinator.Committed, "[unknown landed]", 1},
	"broker.settle.before=2*error(x)":                                   {"", "ALREADY", coordinator.Committed, "[landed]", 1},
	"broker.settle.after=2*error(x)":                                    {"", "ALREADY", coordinator.Committed, "[landed landed landed]", 1},
}

// TestFault_Points arms each fault point in a process of its own: points are read once, at start.
func TestFault_Points(t *testing.T) {
	for points := range faultCases {
		t.Run(points, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFault_Child$", "-test.v")
			cmd.Env = append(os.Environ(), fault.Env+"="+points)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Contains(t, string(out), "--- PASS: TestFault_Child")
		})
	}
}

func TestFault_Child(t *testing.T) {
	tc, ok := faultCases[os.Getenv(fault.Env)]
	if !ok {
		t.Skip("runs in processes that TestFault_Points starts")
	}
	b := newBench(t)
	b.createTable()
	j := b.job()
	kind := func(err error) string {
		if err == nil {
			return ""
		}
		return strings.TrimPrefix(kindOf(err).String(), "REFUSAL_KIND_")
	}
	_, err := j.sink.append()
	require.Equal(t, tc.first, kind(err), err)
	require.Equal(t, tc.state, j.gate.state())
	_, err = j.sink.append()
	require.Equal(t, tc.second, kind(err), err)
	require.Equal(t, tc.outcomes, fmt.Sprint(j.gate.outcomes()))
	require.Len(t, b.load().Metadata.Snapshots(), tc.snapshots)
	n, err := j.lease.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, tc.snapshots*2, exist(t, j.lease.Created()...), "%d swept", n)
	left, err := b.files()
	require.NoError(t, err)
	require.Equal(t, 2, left, "one list and one manifest: what faults left behind is swept")
}

// files counts the Avro files of the table.
func (b *bench) files() (int, error) {
	reader := b.job(func(s *broker.LeaseSpec) { s.ReadOnly = true })
	l, err := reader.sink.load()
	if err != nil {
		return 0, err
	}
	reader.spec.Location = l.md.Location()
	names, err := reader.list(l.md.Location() + "/metadata")
	n := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".avro") {
			n++
		}
	}
	return n, err
}
