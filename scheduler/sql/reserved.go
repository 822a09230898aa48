package sql

import "regexp"

// own are the names that Signet writes into the queries that it makes of statements: for the tables that they read, and for what it computes beside
// their columns. A name of the user's would take their place, or be taken for them, without a word.
var own = regexp.MustCompile(`(?i)^(signet_(source_\d+|stage_\d+|target|changed|matched|clause|choice)|__signet_rows)$`)

// IsReserved reports whether a name is one that only Signet may use in a query.
func IsReserved(name string) bool { return own.MatchString(name) }

// refuseReserved refuses names in a statement that only Signet may use, whatever they are names of. Statements without a query may have them: they are how
// such a column or table of another engine gets another name, or goes.
func (p *parser) refuseReserved() error {
	switch keyword(p.toks[0]) {
	case "ALTER", "DROP", "SHOW", "DESCRIBE", "DESC", "VACUUM":
		return nil
	}
	for i, t := range p.toks {
		named := t.isName() || t.Kind == KindString && i > 0 && p.toks[i-1].is("AS") // which names a column, too
		if named && IsReserved(t.Value) {
			return p.failAt(t, DisplayIdent(t.Value)+" is a name that Signet needs for itself in queries", "choose another name")
		}
	}
	return nil
}
