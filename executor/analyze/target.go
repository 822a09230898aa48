package analyze

import (
	"strings"

	"github.com/signet-io/signet/executor/analyze/stages"
)

// target lets the query read the table that a row-level write changes by its view, and refer to it as the statement does.
func (a *analysis) target() {
	t := a.req.GetTarget()
	if t == nil {
		return
	}
	if a.rewriter.given == nil {
		a.rewriter.given = map[string]bool{}
	}
	a.rewriter.given[strings.ToLower(t.GetView())] = true
	if len(t.GetTable()) > 1 {
		a.rewriter.qualified = append(a.rewriter.qualified, qualified{t.GetTable(), t.GetAlias()})
	}
}

// checkTarget refuses what would change which rows a row-level write is about: the values that it writes are of one row each.
func (a *analysis) checkTarget(node queryNode) error {
	if a.req.GetTarget() == nil {
		return nil
	}
	for _, item := range node.List("select_list") {
		if what := stages.PerRow(item); what != "" {
			return refuse("put it into a subquery: (SELECT …)", "%s cannot stand in a value or condition of this statement, which are of one row each", what)
		}
	}
	return nil
}
