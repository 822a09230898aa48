package coordinator

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// group reads a journalled seal; nil: there is none.
func (s *stage) group(id string) *GroupRecord {
	b := s.groups[id]
	if b == nil {
		return nil
	}
	g := &GroupRecord{}
	require.NoError(s.t, json.Unmarshal(b, g))
	return g
}

// members are the machines of "units=a;b", whose markers are their names.
func (s *stage) members(d *datadriven.TestData) (names []string, units []Unit) {
	for who := range strings.SplitSeq(s.arg(d, "units", ""), ";") {
		names, units = append(names, who), append(units, Unit{Job: who, Marker: "m-" + who, Machine: s.m[who]})
	}
	return names, units
}

func (s *stage) sealGroup(d *datadriven.TestData) string {
	names, units := s.members(d)
	a := attempt(s.num(d, "epoch", 1), s.arg(d, "version", ""))
	a.Markers = nil
	for _, u := range units {
		a.Markers = append(a.Markers, u.Marker)
	}
	rec, step, err := SealGroup(s.arg(d, "group", "g"), units, a)
	if err != nil {
		return "error: " + err.Error()
	}
	return s.keepGroup(rec, names, step)
}

func (s *stage) settleGroup(d *datadriven.TestData) string {
	names, units := s.members(d)
	rec := s.group(s.arg(d, "group", "g"))
	if rec == nil {
		return "error: no such group"
	}
	o := Outcome{Version: s.arg(d, "version", ""), Location: "v.json", Reason: strings.ReplaceAll(s.arg(d, "reason", ""), "_", " ")}
	for k, name := range outcomeNames {
		if name == s.arg(d, "outcome", "") {
			o.Kind = OutcomeKind(k)
		}
	}
	if d.HasArg("versions") {
		o.Versions = map[string]string{}
		for v := range strings.SplitSeq(s.arg(d, "versions", ""), ";") {
			who, version, _ := strings.Cut(v, ":")
			o.Versions["m-"+who] = version
		}
	}
	step, err := SettleGroup(rec, units, o)
	if err != nil {
		return "error: " + err.Error()
	}
	return s.keepGroup(rec, names, step)
}

// keepGroup does what a caller must: everything in one transaction, then the machines, then the actions.
func (s *stage) keepGroup(rec *GroupRecord, names []string, step *GroupStep) string {
	if s.broken {
		return "not journalled: nothing has happened"
	}
	var b strings.Builder
	for i, who := range names {
		s.persist(who, step.Effects[i])
		s.m[who] = step.Machines[i]
		for _, line := range strings.SplitAfter(strings.TrimSuffix(s.effects(who, step.Effects[i]), "\n"), "\n") {
			b.WriteString(who + ": " + line)
		}
		b.WriteString("\n")
	}
	if step.Over {
		delete(s.groups, rec.ID)
		return b.String() + fmt.Sprintf("forget group %s\n", rec.ID)
	}
	j, err := json.Marshal(rec)
	require.NoError(s.t, err)
	s.groups[rec.ID] = j
	return b.String() + fmt.Sprintf("journal group %s\n", rec.ID)
}
