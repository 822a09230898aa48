package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
)

func TestRefOfPart(t *testing.T) {
	for _, c := range []struct {
		parts       []string
		branch, tag string
	}{
		{[]string{"t"}, "", ""},
		{[]string{"branch_x"}, "", ""},
		{[]string{"s", "t"}, "", ""},
		{[]string{"t", "branch_"}, "", ""},
		{[]string{"t", "branch_A b"}, "A b", ""},
		{[]string{"lake", "s", "t", "BRANCH_x"}, "x", ""},
		{[]string{"t", "tag_v1"}, "", "v1"},
		{[]string{"t", "tags_v1"}, "", ""},
	} {
		branch, tag := refOfPart(c.parts)
		require.Equal(t, []string{c.branch, c.tag}, []string{branch, tag}, "%v", c.parts)
	}
}

// C16, and what is no such write: an overwrite of nothing empties what its scope says, except where that is the partitions that are written.
func TestEmptyCommit(t *testing.T) {
	all, some := &planv1.Scope{Kind: &planv1.Scope_All{All: true}}, &planv1.Scope{Kind: &planv1.Scope_Partitions{Partitions: true}}
	filter := &planv1.Scope{Kind: &planv1.Scope_Filter{Filter: &planv1.Predicate{}}}
	for _, c := range []struct {
		mode  sinkv1.WriteMode
		scope *planv1.Scope
		empty bool
	}{
		{sinkv1.WriteMode_WRITE_MODE_APPEND, nil, true},
		{sinkv1.WriteMode_WRITE_MODE_CREATE, nil, false},
		{sinkv1.WriteMode_WRITE_MODE_REPLACE, nil, false},
		{sinkv1.WriteMode_WRITE_MODE_OVERWRITE, all, false},
		{sinkv1.WriteMode_WRITE_MODE_OVERWRITE, filter, false},
		{sinkv1.WriteMode_WRITE_MODE_OVERWRITE, some, true},
	} {
		m := coordinator.New("j", 1)
		_, err := m.Step(coordinator.Begin{Tasks: 1})
		require.NoError(t, err)
		w := &writeState{mode: c.mode, spec: &planv1.WriteSpec{Scope: c.scope}, machine: m}
		require.Equal(t, c.empty, w.nothing(), "%s %s", c.mode, c.scope)
		_, err = m.Step(coordinator.Accept{Attempt: "a", Epoch: 1, Digest: "00", Totals: coordinator.Totals{Files: 1, Rows: 1, Bytes: 1}})
		require.NoError(t, err)
		require.False(t, w.nothing(), "with a file: %s %s", c.mode, c.scope)
	}
}
