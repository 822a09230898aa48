package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func node(op Op, inputs ...*Node) *Node { return &Node{Op: op, Inputs: inputs} }

func shape(n *Node) string {
	if n == nil {
		return "-"
	}
	out := string(n.Op)
	var in []string
	for _, i := range n.Inputs {
		in = append(in, shape(i))
	}
	if len(in) > 0 {
		out += "(" + strings.Join(in, ",") + ")"
	}
	return out
}

func TestSplitRoot(t *testing.T) {
	never := func(*Node) bool { return false }
	result := func(n *Node) bool { return n.Op == OpResult }
	limited := node(OpCoalesce, node(OpWrite))
	limited.Limit = 10
	for name, c := range map[string]struct {
		plan *Node
		pred Predicate
		root string
		rest string
		err  string
	}{
		"S1 no predicate, no commit":       {node(OpResult, node(OpScan)), nil, "-", "Result(Scan)", ""},
		"S2 a predicate selects the root":  {node(OpResult, node(OpScan)), result, "Result", "Scan", ""},
		"S3 a match below is not split":    {node(OpFragment, node(OpResult, node(OpScan))), result, "-", "Fragment(Result(Scan))", ""},
		"S4 a root that does not match":    {node(OpResult, node(OpScan)), DefaultRoot, "-", "Result(Scan)", ""},
		"S8 coalesce dropped":              {node(OpCommit, node(OpCoalesce, node(OpCoalesce, node(OpWrite)))), nil, "Commit", "Write", ""},
		"S8 only directly under the root":  {node(OpCommit, node(OpWrite, node(OpCoalesce, node(OpScan)))), nil, "Commit", "Write(Coalesce(Scan))", ""},
		"S9 coalesce with a limit stays":   {node(OpCommit, limited), nil, "Commit", "Coalesce(Write)", ""},
		"S56 commit by default":            {node(OpCommit, node(OpWrite)), nil, "Commit", "Write", ""},
		"S56 commit on executors: refused": {node(OpCommit, node(OpWrite)), never, "", "", "a commit runs on the scheduler"},
		"commit below the root":            {node(OpResult, node(OpFragment, node(OpCommit))), nil, "", "", "a commit below Fragment"},
		"two inputs":                       {node(OpCommit, node(OpWrite), node(OpWrite)), nil, "", "", "2 inputs"},
	} {
		t.Run(name, func(t *testing.T) {
			before := shape(c.plan)
			root, rest, err := SplitRoot(c.plan, c.pred)
			require.Equal(t, before, shape(c.plan), "the plan itself is not changed")
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.root, shape(root))
			require.Equal(t, c.rest, shape(rest))
		})
	}
}

func TestRootByName_S2_S56(t *testing.T) {
	pred, err := RootByName(" result ,")
	require.NoError(t, err)
	require.True(t, pred(node(OpResult)))
	require.True(t, pred(node(OpCommit)), "a setting cannot take the commit away")
	require.False(t, pred(node(OpWrite)))
	_, err = RootByName("Sort")
	require.ErrorContains(t, err, `there is no operator "Sort"`)
}

// S7: no stage holds the root; exchanges end stages, and a stage stands behind those it reads.
func TestCutStages_S5_S7(t *testing.T) {
	plan := node(OpCommit, node(OpWrite, node(OpExchange, node(OpFragment, node(OpExchange, node(OpScan)), node(OpExchange, node(OpScan))))))
	_, rest, err := SplitRoot(plan, nil)
	require.NoError(t, err)
	stages := CutStages(rest)
	require.Len(t, stages, 4)
	require.Equal(t, "Exchange(Scan)", shape(stages[0]))
	require.Equal(t, "Exchange(Scan)", shape(stages[1]))
	require.Equal(t, "Exchange(Fragment(Read,Read))", shape(stages[2]))
	require.Equal(t, "Write(Read)", shape(stages[3]))
	for i, s := range stages {
		s.Walk(func(n *Node) {
			require.NotEqual(t, OpCommit, n.Op)
			if n.Op == OpRead {
				require.Less(t, int(n.Stage), i)
			}
		})
	}
}
