package coordinator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// stage is one scenario: named machines over journals of their own.
type stage struct {
	t       *testing.T
	m       map[string]*Machine
	journal map[string][]byte
	groups  map[string][]byte // seals of groups, as journalled
	broken  bool              // the journal cannot be written
}

// TestScenarios replays testdata/scenarios/*.txt. Each directive is one event; its output is what the caller has to do. "-rewrite" writes the
// outputs anew.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &stage{t: t, m: map[string]*Machine{}, journal: map[string][]byte{}, groups: map[string][]byte{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(d) })
	})
}

func (s *stage) run(d *datadriven.TestData) string {
	who := s.arg(d, "as", "job")
	switch d.Cmd {
	case "new":
		s.m[who] = New(who, s.num(d, "epoch", 1))
		return s.show(who)
	case "committing": // the way there is the subject of other scenarios
		s.m[who] = New(who, s.num(d, "epoch", 1))
		for _, ev := range []Event{Begin{TableUUID: s.arg(d, "table", "")}, Start{}} {
			s.step(who, ev)
		}
		return s.show(who)
	case "journal":
		s.broken = d.HasArg("broken")
		return ""
	case "crash":
		var r Record
		require.NoError(s.t, json.Unmarshal(s.journal[who], &r))
		if r.Open != nil && r.Open.Group != "" {
			g := s.group(r.Open.Group)
			if g == nil {
				return "error: its group is gone"
			}
			require.NoError(s.t, g.Fill(&r))
		}
		m, eff, err := Restore(r, s.num(d, "epoch", 2))
		if err != nil {
			return "error: " + err.Error()
		}
		s.m[who] = m
		s.persist(who, eff)
		return s.effects(who, eff)
	case "seal-group":
		return s.sealGroup(d)
	case "settle-group":
		return s.settleGroup(d)
	case "fork": // an incarnation that does not know that it is dead
		c := *s.m[who]
		s.m[s.arg(d, "to", "zombie")] = &c
		s.journal[s.arg(d, "to", "zombie")] = s.journal[who]
		return ""
	case "show":
		return s.show(who)
	case "record":
		b, err := json.MarshalIndent(s.m[who].Record(), "", " ")
		require.NoError(s.t, err)
		return string(b)
	}
	return s.step(who, s.event(d))
}

func (s *stage) step(who string, ev Event) string {
	next := *s.m[who]
	eff, err := next.Step(ev)
	if err != nil {
		return "error: " + err.Error()
	}
	if eff.Record != nil && s.broken {
		return "not journalled: nothing has happened"
	}
	s.persist(who, eff)
	s.m[who] = &next
	return s.effects(who, eff)
}

func (s *stage) persist(who string, eff Effects) {
	if eff.Record == nil {
		return
	}
	b, err := json.Marshal(eff.Record.Apart())
	require.NoError(s.t, err)
	s.journal[who] = b
}

func (s *stage) effects(who string, eff Effects) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.show(who))
	if eff.Record != nil {
		fmt.Fprintln(&b, "journal")
	}
	for _, a := range eff.Actions {
		b.WriteString("do " + a.Kind.String())
		switch a.Kind {
		case ActAcknowledge:
			fmt.Fprintf(&b, " task %d attempt %s", a.Task, a.AttemptID)
		case ActSend, ActResolve:
			fmt.Fprintf(&b, " attempt %d version %s", a.Attempt.Seq, a.Attempt.Version)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (s *stage) show(who string) string {
	m := s.m[who]
	out := m.State().String()
	if m.CancelPending() {
		out += ", cancel waits"
	}
	if r := m.Result(); r != nil {
		out += fmt.Sprintf(" version %q", r.Version)
		if r.Already {
			out += ", by an earlier run"
		}
	}
	if f := m.Failure(); f != nil {
		out += map[bool]string{true: ", cancelled: ", false: ", failed: "}[f.Cancelled] + f.Reason
	}
	return out
}

func (s *stage) event(d *datadriven.TestData) Event {
	seq, version := int(s.num(d, "seal", 0)), s.arg(d, "version", "")
	reason := strings.ReplaceAll(s.arg(d, "reason", ""), "_", " ")
	switch d.Cmd {
	case "begin":
		return Begin{Tasks: int(s.num(d, "tasks", 1)), TableUUID: s.arg(d, "table", "")}
	case "accept":
		a := Accept{Task: int(s.num(d, "task", 0)), Attempt: s.arg(d, "attempt", "a"), Epoch: s.num(d, "epoch", 1), Digest: s.arg(d, "digest", "00")}
		for p := range strings.SplitSeq(s.arg(d, "paths", "/"+a.Attempt), ";") {
			a.Paths = append(a.Paths, p)
		}
		a.Totals = Totals{Files: int64(len(a.Paths)), Rows: 10, Bytes: 100}
		return a
	case "start":
		return Start{}
	case "skip":
		return Skip{Version: version}
	case "seal":
		a := attempt(s.num(d, "epoch", 1), version)
		a.TableUUID = s.arg(d, "table", "uuid")
		return Seal{Attempt: a}
	case "landed":
		return Landed{Seq: seq, Version: version, Location: "v.json"}
	case "found":
		return Found{Seq: seq, Version: version, Location: "v.json"}
	case "conflict":
		return Conflict{Seq: seq, Reason: reason}
	case "refused":
		return Refused{Seq: seq, Reason: reason}
	case "unknown":
		return Unknown{Seq: seq, Reason: reason}
	case "dead":
		return Dead{Seq: seq, Reason: reason}
	case "cancel":
		return Cancel{Reason: reason}
	case "fail":
		return Fail{Reason: reason}
	default:
		s.t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
		return nil
	}
}

func (s *stage) arg(d *datadriven.TestData, key, def string) string {
	if d.HasArg(key) {
		d.ScanArgs(s.t, key, &def)
	}
	return def
}

func (s *stage) num(d *datadriven.TestData, key string, def uint64) uint64 {
	if d.HasArg(key) {
		d.ScanArgs(s.t, key, &def)
	}
	return def
}
