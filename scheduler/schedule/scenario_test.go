package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestMachine_Scenarios replays testdata/*.txt: a block is a machine with one catalog, and its lines are "seconds event arguments". -rewrite writes what is
// now the output; read the difference before keeping it. J16, J17.
func TestMachine_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var p Policy
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "every":
					arg.Scan(t, 0, &p.Every)
					p.Every *= 1000
				case "after":
					arg.Scan(t, 0, &p.AfterCommits)
				}
			}
			m := New(map[string]Policy{"c": p})
			var out strings.Builder
			for line := range strings.SplitSeq(d.Input, "\n") {
				if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				fmt.Fprintln(&out, line)
				words := strings.Fields(line)
				at, err := strconv.ParseInt(words[0], 10, 64)
				require.NoError(t, err)
				if words[1] == "restored" {
					m.Restore(at*1000, event(t, words[2:]))
					continue
				}
				for _, a := range m.Step(at*1000, event(t, words[1:])) {
					fmt.Fprintf(&out, "  %s\n", shown(a))
				}
				if next, ok := m.Next(); ok {
					fmt.Fprintf(&out, "  until %g\n", float64(next)/1000)
				}
			}
			return out.String()
		})
	})
}

func event(t *testing.T, words []string) Event {
	t.Helper()
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		return n
	}
	of := Table{"c", arg(1)}
	switch words[0] {
	case "tick":
		return Tick{}
	case "committed":
		return Committed{of, number(arg(2))}
	case "dropped":
		return Dropped{of}
	case "found":
		return Found{"c", arg(1)}
	case "unfound":
		return FindFailed{"c"}
	case "done", "nothing", "failed", "gone":
		return Ended{of, map[string]Result{"done": Done, "nothing": Nothing, "failed": Failed, "gone": Gone}[words[0]]}
	case "started": // a key begins with what made it due
		why, rest, _ := strings.Cut(arg(2), "/")
		e := Started{Table: of, Why: Why(why), Key: arg(2)}
		if e.Why == ByPeriod {
			e.Slot = number(rest)
		}
		return e
	}
	t.Fatalf("no event %q", words)
	return nil
}

func shown(a Action) string {
	switch a := a.(type) {
	case Find:
		return fmt.Sprintf("find behind %q", a.After)
	case Run:
		return fmt.Sprintf("run %s by %s as %s", a.Table.Name, a.Why, a.Key)
	}
	return fmt.Sprintf("%#v", a)
}

// Events about what the machine does not know of change nothing.
func TestMachine_ForeignEvents(t *testing.T) {
	m := New(map[string]Policy{"off": {}, "on": {AfterCommits: 1}})
	foreign := []Event{
		Tick{},
		Committed{Table{"off", "t"}, 1},
		Committed{Table{"none", "t"}, 1},
		Found{"on", "t"},
		FindFailed{"on"},
		Ended{Table{"on", "t"}, Failed},
		Dropped{Table{"on", "t"}},
		Started{Table: Table{"none", "t"}, Why: ByPeriod, Slot: 1},
	}
	for _, e := range foreign {
		require.Empty(t, m.Step(1, e), "%#v", e)
	}
	_, due := m.Next()
	require.False(t, due)
}

// A walk over a large catalog leaves nothing behind.
func TestMachine_ForgetsTables(t *testing.T) {
	m := New(map[string]Policy{"c": {Every: 1000, AfterCommits: 3}})
	actions := m.Step(0, Tick{})
	for i := range 1000 {
		require.Equal(t, []Action{Find{"c", prev(i)}}, actions)
		run := m.Step(1, Found{"c", name(i)})
		require.Len(t, run, 1)
		actions = m.Step(1, Ended{Table{"c", name(i)}, Done})
	}
	require.Empty(t, m.Step(1, Found{Catalog: "c"}))
	require.Empty(t, m.catalogs["c"].tables)
}

func name(i int) string { return fmt.Sprintf("t%04d", i) }

func prev(i int) string {
	if i == 0 {
		return ""
	}
	return name(i - 1)
}

// J16: whatever happens in whatever order, a table has one run at most, and a catalog no more than it may have.
func TestMachine_OneRunOfATable(t *testing.T) {
	seed := uint64(1)
	random := func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % n
	}
	m := New(map[string]Policy{"c": {Every: 50_000, AfterCommits: 2}})
	running, keys, now, finds := map[string]Run{}, map[string]bool{}, int64(0), 0
	for i := range 20_000 {
		var e Event = Tick{}
		of := Table{"c", name(random(8))}
		switch random(5) {
		case 0:
			e = Committed{of, int64(random(i + 1))}
		case 1:
			if finds > 0 {
				finds--
				next := ""
				if n := random(9); n < 8 {
					next = name(n)
				}
				e = Found{"c", next}
			}
		case 2, 3:
			if r, ok := running[of.Name]; ok {
				result := Result(1 + random(4))
				delete(running, of.Name)
				if result == Failed {
					delete(keys, of.Name+" "+r.Key)
				}
				e = Ended{of, result}
			}
		case 4:
			now += int64(random(5000))
		}
		for _, a := range m.Step(now, e) {
			switch a := a.(type) {
			case Find:
				finds++
			case Run:
				_, twice := running[a.Table.Name]
				require.False(t, twice, "two runs of %s", a.Table.Name)
				running[a.Table.Name] = a
				require.NotEmpty(t, a.Key)
			}
		}
		require.LessOrEqual(t, finds, 1)
		require.LessOrEqual(t, len(running), atOnce+1)
		for of, t := range m.catalogs["c"].tables {
			if (t.run != nil) != (running[of].Key != "") {
				panic(of)
			}
		}
	}
}
