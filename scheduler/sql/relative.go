package sql

import "strings"

// NamesRelativeFile reports whether a statement may read a file by a name that is relative, so that what it means depends on a directory.
// It looks for text in FROM clauses. In doubt the answer is yes: also for text that does not lex.
func NamesRelativeFile(text string) bool {
	toks, err := Tokenize(text)
	if err != nil {
		return true
	}
	from := []bool{false} // whether this is a FROM clause, by depth of brackets
	for i, t := range toks {
		prev := eof
		if i > 0 {
			prev = toks[i-1]
		}
		top := len(from) - 1
		switch {
		case isSourceArgument(toks, i):
			return true
		case prev.is("."): // part of a name
		case t.is("("):
			from = append(from, from[top])
		case t.is("["): // a list of files, or the value of an option
			from = append(from, from[top] && !prev.is("="))
		case t.is("{"):
			from = append(from, false)
		case t.isAny(")", "]", "}"):
			from = from[:max(top, 1)]
		case t.is("FROM"):
			from[top] = from[top] || !prev.is("DISTINCT") // IS DISTINCT FROM
		case t.isAny("JOIN", "PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE"):
			from[top] = true
		case t.isAny("SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT"), t.is("VALUES") && prev.is("("):
			from[top] = false
		case from[top] && !prev.is("=") && isRelativeFile(t):
			return true
		}
	}
	return false
}

func isRelativeFile(t Token) bool {
	if strings.HasPrefix(t.Value, "/") || strings.HasPrefix(t.Value, "file://") {
		return false
	}
	return t.Kind == KindString || t.Kind == KindQuoted && strings.ContainsAny(t.Value, "./")
}

// isSourceArgument reports whether a token is the relative name of files in CALL system.add_files(…).
func isSourceArgument(toks []Token, i int) bool {
	if !toks[0].is("CALL") || !isRelativeFile(toks[i]) {
		return false
	}
	if i > 3 && toks[i-1].is(">") && toks[i-2].is("=") {
		return toks[i-3].is("SOURCE")
	}
	return i > 2 && toks[i-1].is(",") // by its place
}
