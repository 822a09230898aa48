package analyze

import "strings"

// bindGiven binds a query over sources that came with it, each under a view name of the author's choice: a task of a physical plan. It may read them
// and nothing else, and goes through the same hands as a statement: one SELECT, the time as it was at submission, no function that is not allowed.
func (a *analysis) bindGiven() error {
	if err := a.bindSources(); err != nil {
		return err
	}
	node, err := a.parse(a.req.GetSql())
	if err != nil {
		return err
	}
	a.rewriter = newRewriter(a.req.GetNowMicros())
	a.rewriter.given = map[string]bool{}
	for _, s := range a.req.GetSources() {
		a.rewriter.given[strings.ToLower(s.GetView())] = true
	}
	for _, s := range a.out.GetStats() {
		for _, c := range s.GetColumns() {
			a.rewriter.hide(c.GetName())
		}
	}
	if err := a.rewriter.statement(node); err != nil {
		return err
	}
	if len(a.rewriter.sources) > 0 {
		return refuse("name it as an input, and read it by the name of its view", "%s is none of the inputs of this task", a.rewriter.sources[0].alias)
	}
	if a.out.Sql, err = a.rewritten(node); err != nil {
		return err
	}
	a.literals, a.nulls = literalColumns(node)
	a.node = node
	return a.bind()
}
