package coordinator

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // registers -rewrite
	"github.com/stretchr/testify/require"
)

// at returns a machine in the given state, in epoch 7, with two tasks.
func at(t testing.TB, s State) *Machine {
	t.Helper()
	m := New("job", 7)
	do := func(evs ...Event) {
		for _, ev := range evs {
			_, err := m.Step(ev)
			require.NoError(t, err)
		}
	}
	if s == Planned {
		return m
	}
	do(Begin{Tasks: 2, TableUUID: "uuid"})
	switch s {
	case Writing:
		do(accept0())
	case Ready:
		do(accept0(), accept1())
	case Committing:
		do(accept0(), accept1(), Start{})
	case Sealed:
		do(accept0(), accept1(), Start{}, Seal{Attempt: attempt(7, "100")})
	case Resolving:
		do(accept0(), accept1(), Start{}, Seal{Attempt: attempt(7, "100")}, Unknown{Seq: 1})
	case Committed:
		do(accept0(), accept1(), Start{}, Seal{Attempt: attempt(7, "100")}, Landed{Seq: 1, Version: "100", Location: "v2.json"})
	case Aborted:
		do(accept0(), Cancel{Reason: "by the user"})
	}
	require.Equal(t, s, m.State())
	return m
}

func accept0() Accept {
	return Accept{Task: 0, Attempt: "a0", Epoch: 7, Digest: "00", Totals: Totals{Files: 1, Rows: 10, Bytes: 100}, Paths: []string{"file:///t/a0/x"}}
}

func accept1() Accept {
	return Accept{Task: 1, Attempt: "a1", Epoch: 7, Digest: "01", Totals: Totals{Files: 1, Rows: 20, Bytes: 200}, Paths: []string{"file:///t/a1/x"}}
}

func attempt(epoch uint64, version string) Attempt {
	return Attempt{
		Epoch: epoch, Kind: KindCatalog, SnapshotID: 100, Version: version, SequenceNumber: 5, TableUUID: "uuid", Markers: []string{"m1"},
		Requirements: json.RawMessage(`[]`), Updates: json.RawMessage(`[]`),
	}
}

// wellFormed is one event of each kind that is valid by itself, about the attempt that at seals.
var wellFormed = [eventCount]Event{
	Begin{Tasks: 2},
	accept1(),
	Start{},
	Skip{},
	Seal{Attempt: attempt(7, "101")},
	Landed{Seq: 1, Version: "100"},
	Found{Version: "100"},
	Conflict{Seq: 1},
	Refused{Seq: 1},
	Unknown{Seq: 1},
	Dead{Seq: 1},
	Cancel{Reason: "again"},
	Fail{Reason: "broken"},
	Restart{Epoch: 8},
}

// TestTable_EveryCell steps every event in every state and holds the machine to its table: an allowed event leads to one of the cell's
// states, a denied one changes nothing and says why.
func TestTable_EveryCell(t *testing.T) {
	for s := range stateCount {
		for k := range eventCount {
			t.Run(fmt.Sprintf("%s/%s", s, k), func(t *testing.T) {
				c := transitions[s][k]
				require.True(t, (c.do == nil) != (c.deny == nil), "a cell allows or denies")
				require.Equal(t, c.do == nil, len(c.to) == 0)
				m := at(t, s)
				before := m.Record()
				eff, err := m.Step(wellFormed[k])
				require.Equal(t, m.State(), eff.State)
				if err != nil {
					require.Equal(t, before, m.Record(), "a refused event changes nothing")
					require.Nil(t, eff.Record)
					require.Empty(t, eff.Actions)
					require.ErrorContains(t, err, "job job: "+k.String()+" while "+s.String())
				}
				if c.deny != nil {
					require.ErrorContains(t, err, c.deny(m).Error())
					return
				}
				if err == nil {
					require.Contains(t, c.to, m.State())
				}
			})
		}
	}
}

// TestTable_AllowedCellsAllow: the refusals of allowed cells that well-formed events meet are few and listed.
func TestTable_AllowedCellsAllow(t *testing.T) {
	expected := map[string]error{
		"Ready/Skip":      ErrNotEmpty,
		"Committing/Skip": ErrNotEmpty,
	}
	for s := range stateCount {
		for k := range eventCount {
			if transitions[s][k].do == nil {
				continue
			}
			_, err := at(t, s).Step(wellFormed[k])
			name := fmt.Sprintf("%s/%s", s, k)
			require.ErrorIs(t, err, expected[name], name)
		}
	}
}

// TestTable_ReachesEveryTarget: no cell names a state that nothing leads to.
func TestTable_ReachesEveryTarget(t *testing.T) {
	extra := map[string]func(t *testing.T) State{
		"Planned/Begin/Ready":         func(t *testing.T) State { return stepped(t, at(t, Planned), Begin{}) },
		"Writing/Accept/Writing":      func(t *testing.T) State { return stepped(t, at(t, Writing), accept0()) },
		"Sealed/Conflict/Aborted":     func(t *testing.T) State { return stepped(t, at(t, Sealed), Cancel{}, Conflict{Seq: 1}) },
		"Sealed/Dead/Aborted":         func(t *testing.T) State { return stepped(t, at(t, Sealed), Cancel{}, Dead{Seq: 1}) },
		"Resolving/Dead/Aborted":      func(t *testing.T) State { return stepped(t, at(t, Resolving), Cancel{}, Dead{Seq: 1}) },
		"Ready/Skip/Committed":        func(t *testing.T) State { return stepped(t, at(t, Planned), Begin{}, Skip{}) },
		"Committing/Skip/Committed":   func(t *testing.T) State { return stepped(t, at(t, Planned), Begin{}, Start{}, Skip{}) },
		"Committing/Seal/Sealed":      func(t *testing.T) State { return stepped(t, at(t, Committing), Seal{attempt(7, "1")}) },
		"Committed/Landed/Committed":  func(t *testing.T) State { return stepped(t, at(t, Committed), Landed{Seq: 1, Version: "100"}) },
		"Resolving/Unknown/Resolving": func(t *testing.T) State { return stepped(t, at(t, Resolving), Unknown{Seq: 1}) },
	}
	for s := range stateCount {
		for k := range eventCount {
			for _, to := range transitions[s][k].to {
				name := fmt.Sprintf("%s/%s/%s", s, k, to)
				var got State
				if f := extra[name]; f != nil {
					got = f(t)
				} else {
					got = stepped(t, at(t, s), wellFormed[k])
				}
				require.Equal(t, to, got, name)
			}
		}
	}
}

func stepped(t testing.TB, m *Machine, evs ...Event) State {
	t.Helper()
	for _, ev := range evs {
		_, err := m.Step(ev)
		require.NoError(t, err)
	}
	return m.State()
}

func TestREADME_TransitionTable(t *testing.T) {
	const begin, end = "<!-- table: begin -->\n", "<!-- table: end -->"
	raw, err := os.ReadFile("README.md")
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok)
	got, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := renderTable()
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile("README.md", []byte(head+begin+want+end+tail), 0o644))
		return
	}
	require.Equal(t, want, got, "run: go test ./coordinator -run README -rewrite")
}

func renderTable() string {
	var b strings.Builder
	b.WriteString("| event |")
	for s := range stateCount {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", int(stateCount)) + "\n")
	for k := range eventCount {
		fmt.Fprintf(&b, "| %s |", k)
		for s := range stateCount {
			fmt.Fprintf(&b, " %s |", renderCell(s, transitions[s][k]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func renderCell(s State, c cell) string {
	if c.do != nil {
		var to []string
		for _, x := range c.to {
			if x == s {
				to = append(to, "·")
				continue
			}
			to = append(to, "**"+x.String()+"**")
		}
		return strings.Join(to, " or ")
	}
	m := &Machine{r: Record{Result: &Result{}, Failure: &Failure{}}}
	err := c.deny(m)
	var done *AlreadyError
	var over *EndedError
	switch {
	case errors.As(err, &done):
		return "already"
	case errors.As(err, &over):
		return "ended"
	}
	names := map[error]string{
		ErrNotReady: "not ready", ErrStarted: "started", ErrNoSeal: "no seal", ErrSealed: "sealed", ErrUnsettled: "unsettled", ErrContradiction: "contradiction",
	}
	name, ok := names[err]
	if !ok {
		panic(err)
	}
	return name
}

func TestState_TextRoundTrip(t *testing.T) {
	for s := range stateCount {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		var back State
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, s, back)
	}
	var s State
	require.ErrorIs(t, json.Unmarshal([]byte(`"Sold"`), &s), ErrCorrupt)
	_, err := State(99).MarshalText()
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, "State(99)", State(99).String())
	require.True(t, slices.Contains([]State{Committed, Aborted}, Aborted))
}
