package analyze

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// planNode is one operator of DuckDB's physical plan.
type planNode struct {
	Name     string         `json:"name"`
	Children []planNode     `json:"children"`
	Extra    map[string]any `json:"extra_info"`
}

// perRow are the operators that treat each row by itself, so that the plan over a part of the rows gives that part of the result. UNION is UNION ALL: if
// both sides read the same source, each part of the rows passes through both.
var perRow = []string{"PROJECTION", "FILTER", "UNION", "UNNEST"}

const (
	parquetScan = "READ_PARQUET"
	emptyScan   = "EMPTY_RESULT"
)

// operators says in words why an operator needs all rows.
var operators = map[string]string{
	"HASH_GROUP_BY": "GROUP BY or DISTINCT", "PERFECT_HASH_GROUP_BY": "GROUP BY", "PARTITIONED_AGGREGATE": "GROUP BY", "UNGROUPED_AGGREGATE": "an aggregate",
	"SIMPLE_AGGREGATE": "an aggregate", "ORDER_BY": "ORDER BY", "TOP_N": "ORDER BY with LIMIT", "LIMIT": "LIMIT", "STREAMING_LIMIT": "LIMIT",
	"LIMIT_PERCENT": "LIMIT", "WINDOW": "a window function", "STREAMING_WINDOW": "a window function", "HASH_JOIN": "a join", "NESTED_LOOP_JOIN": "a join",
	"PIECEWISE_MERGE_JOIN": "a join", "IE_JOIN": "a join", "ASOF_JOIN": "a join", "CROSS_PRODUCT": "a join", "BLOCKWISE_NL_JOIN": "a join",
	"POSITIONAL_JOIN": "a join", "LEFT_DELIM_JOIN": "a correlated subquery", "RIGHT_DELIM_JOIN": "a correlated subquery",
	"STREAMING_SAMPLE": "a sample", "RESERVOIR_SAMPLE": "a sample", "CTE": "a common table expression used more than once",
	"RECURSIVE_CTE": "a recursive query", "REC_CTE": "a recursive query", "COLUMN_DATA_SCAN": "a constant part", "DUMMY_SCAN": "a constant part", "PIVOT": "PIVOT",
}

// explain fills in the plan and whether the query may be split by rows.
func (a *analysis) explain() error {
	if a.values > 0 { // nothing to plan, and planning a long list takes as long as binding it
		a.out.PlanText = fmt.Sprintf("VALUES  rows: %d\n", a.values)
		a.out.NotRowWise = a.notRowWise(nil)
		return nil
	}
	text, err := a.planJSON()
	if err != nil {
		return err
	}
	var plan []planNode
	if err := json.Unmarshal(text, &plan); err != nil {
		return fmt.Errorf("DuckDB's plan: %w", err)
	}
	a.reads = slices.ContainsFunc(plan, reads)
	var b strings.Builder
	for _, n := range plan {
		a.render(&b, n, 0)
	}
	a.out.PlanText = b.String()
	a.out.NotRowWise = a.notRowWise(plan)
	a.out.RowWise = a.out.GetNotRowWise() == ""
	return nil
}

func (a *analysis) planJSON() ([]byte, error) {
	var key string
	var text []byte
	err := a.inst.Conn().QueryRowContext(a.ctx, "EXPLAIN (FORMAT json) "+a.out.GetSql()).Scan(&key, &text)
	return text, err
}

// notRowWise answers why the query cannot be split by rows of its source; empty if it can.
func (a *analysis) notRowWise(plan []planNode) string {
	switch sources := a.req.GetSources(); {
	case len(sources) == 0:
		return "it reads no table or file"
	case len(sources) > 1:
		return fmt.Sprintf("it reads %d sources", len(sources))
	case !isParquet(sources[0]):
		return "the schema of CSV and JSON is inferred over all files together"
	case a.rewriter != nil && a.rewriter.sampled:
		return "a sample is taken of all rows"
	case a.rewriter != nil && a.rewriter.seeded:
		return "setseed() holds for all rows together"
	}
	for _, n := range plan {
		if reason := needsAll(n); reason != "" {
			return reason
		}
	}
	return ""
}

// reads reports whether a plan has a leaf that is no constant: DuckDB answers count(*) from the files' footers, and WHERE false from nothing.
func reads(n planNode) bool {
	if len(n.Children) == 0 {
		return !slices.Contains([]string{emptyScan, "COLUMN_DATA_SCAN", "DUMMY_SCAN"}, n.Name)
	}
	return slices.ContainsFunc(n.Children, reads)
}

func needsAll(n planNode) string {
	if len(n.Children) == 0 {
		switch n.Name {
		case parquetScan:
			return ""
		case emptyScan:
			return "it has no rows"
		}
	}
	if !slices.Contains(perRow, n.Name) {
		if words, ok := operators[n.Name]; ok {
			return "it has " + words
		}
		return "it has a " + n.Name + " step"
	}
	for _, c := range n.Children {
		if reason := needsAll(c); reason != "" {
			return reason
		}
	}
	return ""
}

// render writes the plan as an indented list, in the user's names.
func (a *analysis) render(b *strings.Builder, n planNode, depth int) {
	fmt.Fprintf(b, "%s%s", strings.Repeat("  ", depth), n.Name)
	keys := make([]string, 0, len(n.Extra))
	for k := range n.Extra {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if s := renderExtra(n.Extra[k]); s != "" && k != "Function" {
			fmt.Fprintf(b, "  %s: %s", k, s)
		}
	}
	b.WriteByte('\n')
	for _, c := range n.Children {
		a.render(b, c, depth+1)
	}
}

func renderExtra(v any) string {
	switch x := v.(type) {
	case []any:
		parts := make([]string, len(x))
		for i, e := range x {
			parts[i] = fmt.Sprint(e)
		}
		return strings.Join(parts, ", ")
	case nil:
		return ""
	default:
		return fmt.Sprint(x)
	}
}
