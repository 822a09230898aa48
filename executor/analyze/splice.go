package analyze

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

// The rewritten statement is the user's own text with the changed places replaced, not DuckDB's rendering of the tree: json_deserialize_sql of 1.5.6
// writes DOUBLE constants as DECIMALs (1e3 becomes 1000.0), and CROSS JOIN as a comma, which binds less tightly. Each change of the tree is recorded as
// an edit; the spliced text is parsed again and must give the changed tree.

type editKind int

const (
	editName     editKind = iota + 1 // a qualified name: replace parts of it
	editCall                         // name(...): replace all
	editTime                         // name or name(): replace all
	editFirstArg                     // name(: add a first argument
	editAlias                        // a select list item: add its name
)

// edit is one change of the text.
type edit struct {
	kind  editKind
	at    string // query_location
	parts int    // editName: how many parts of the name
	text  string
}

func (r *rewriter) edit(kind editKind, at ast.Value, parts int, text string) {
	where, _ := at.(ast.Raw)
	r.edits = append(r.edits, edit{kind, string(where), parts, text})
	r.changed = true
}

// splicer applies edits to a text.
type splicer struct {
	sql    string
	tokens []token
	byPos  map[int]int
}

func newSplicer(sql string) *splicer {
	s := &splicer{sql: sql, tokens: lex(sql), byPos: map[int]int{}}
	for i, t := range s.tokens {
		s.byPos[t.start] = i
	}
	return s
}

// trimmed is the text from its first to its last token, without semicolons at the end: it can stand in parentheses.
func (s *splicer) trimmed(sql string) string {
	tokens := s.tokens
	if sql != s.sql {
		tokens = lex(sql)
	}
	for len(tokens) > 0 && sql[tokens[len(tokens)-1].start] == ';' {
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 {
		return sql
	}
	return sql[tokens[0].start:tokens[len(tokens)-1].end]
}

type replacement struct {
	from, to int
	text     string
}

func (s *splicer) apply(edits []edit) (string, error) {
	reps := make([]replacement, 0, len(edits))
	for _, e := range edits {
		rep, err := s.locate(e)
		if err != nil {
			return "", err
		}
		reps = append(reps, rep)
	}
	slices.SortStableFunc(reps, func(a, b replacement) int { return a.from - b.from })
	var b strings.Builder
	pos := 0
	for _, r := range reps {
		if r.from < pos {
			return "", fmt.Errorf("edits overlap at byte %d", r.from)
		}
		b.WriteString(s.sql[pos:r.from])
		b.WriteString(r.text)
		pos = r.to
	}
	b.WriteString(s.sql[pos:])
	return b.String(), nil
}

func (s *splicer) locate(e edit) (replacement, error) {
	pos, err := strconv.ParseUint(e.at, 10, 63)
	if err != nil {
		return replacement{}, fmt.Errorf("no place for %q", e.text)
	}
	i, ok := s.byPos[int(pos)]
	if !ok {
		return replacement{}, fmt.Errorf("no token at byte %d", pos)
	}
	from := s.tokens[i].start
	switch e.kind {
	case editName:
		last := i + 2*(e.parts-1)
		if last >= len(s.tokens) {
			return replacement{}, fmt.Errorf("name at byte %d ends early", pos)
		}
		return replacement{from, s.tokens[last].end, e.text}, nil
	case editAlias:
		end := s.itemEnd(i)
		return replacement{end, end, e.text}, nil
	case editFirstArg:
		if open := s.open(i); open >= 0 {
			end := s.tokens[open].end
			return replacement{end, end, e.text}, nil
		}
	case editCall:
		if open := s.open(i); open >= 0 {
			return replacement{from, s.close(open), e.text}, nil
		}
	case editTime:
		if open := s.open(i); open >= 0 {
			return replacement{from, s.close(open), e.text}, nil
		}
		return replacement{from, s.tokens[i].end, e.text}, nil
	}
	return replacement{}, fmt.Errorf("no call at byte %d", pos)
}

func (s *splicer) is(i int, text string) bool {
	return i < len(s.tokens) && strings.EqualFold(s.sql[s.tokens[i].start:s.tokens[i].end], text)
}

// open is the token of the parenthesis after the name at i, which may be qualified; -1 if there is none.
func (s *splicer) open(i int) int {
	for s.is(i+1, ".") {
		i += 2
	}
	if s.is(i+1, "(") {
		return i + 1
	}
	return -1
}

// close is the end of the parenthesis that opens at token i.
func (s *splicer) close(i int) int {
	depth := 0
	for ; i < len(s.tokens); i++ {
		switch {
		case s.is(i, "("):
			depth++
		case s.is(i, ")"):
			if depth--; depth == 0 {
				return s.tokens[i].end
			}
		}
	}
	return len(s.sql)
}

// itemWords end a select list item.
var itemWords = []string{"FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "USING"}

// itemEnd guesses where the select list item around token i ends; a wrong guess does not pass the comparison of trees.
func (s *splicer) itemEnd(i int) int {
	depth := 0
	for ; i < len(s.tokens); i++ {
		switch t := s.tokens[i]; {
		case s.is(i, "(") || s.is(i, "["):
			depth++
		case s.is(i, ")") || s.is(i, "]"):
			depth--
		case depth > 0:
		case s.is(i, ",") || s.is(i, ";"):
			depth = -1
		case t.kind == tokenWord && slices.ContainsFunc(itemWords, func(w string) bool { return s.is(i, w) }) && (i == 0 || !s.is(i-1, "DISTINCT")):
			depth = -1
		}
		if depth < 0 {
			return s.tokens[i-1].end
		}
	}
	return s.tokens[len(s.tokens)-1].end
}

var locations = regexp.MustCompile(`"query_location":\d+`)

// sameTree compares trees without the places in the text.
func sameTree(a, b ast.Value) bool {
	return bytes.Equal(locations.ReplaceAllLiteral(ast.Bytes(a), nil), locations.ReplaceAllLiteral(ast.Bytes(b), nil))
}

// rewritten answers the statement's new text.
func (a *analysis) rewritten(node queryNode) (string, error) {
	s := newSplicer(a.text)
	if !a.rewriter.changed {
		return s.trimmed(s.sql), nil
	}
	named := a.rewriter.edits
	for _, it := range a.rewriter.renamed {
		name, err := a.expressionText(it.original)
		if err != nil {
			return "", err
		}
		it.item.Set("alias", ast.String(name))
		named = append(named[:len(named):len(named)], edit{editAlias, it.at, 0, " AS " + duckdb.Ident(name)})
	}
	if sql, ok := a.spliced(s, named, node); ok {
		return sql, nil
	}
	if len(a.rewriter.renamed) > 0 { // the place of a name may be beyond the guess: then the column is named after the constant
		for _, it := range a.rewriter.renamed {
			it.item.Set("alias", ast.String(""))
		}
		if sql, ok := a.spliced(s, a.rewriter.edits, node); ok {
			return sql, nil
		}
	}
	return a.deparsed(node)
}

func (a *analysis) spliced(s *splicer, edits []edit, node queryNode) (string, bool) {
	sql, err := s.apply(edits)
	if err != nil {
		return "", false
	}
	sql = s.trimmed(sql)
	return sql, a.parsesTo(sql, node)
}

func (a *analysis) parsesTo(sql string, node queryNode) bool {
	again, err := a.parse(sql)
	return err == nil && sameTree(again, node)
}

// deparsed is DuckDB's rendering, for the few statements whose text cannot be spliced (TABLE t). It must parse to the tree as well.
func (a *analysis) deparsed(node queryNode) (string, error) {
	sql, err := a.sqlOf(node)
	if err != nil {
		return "", err
	}
	if !a.parsesTo(sql, node) {
		return "", refuse("write tables with an alias (FROM t AS t), and time functions with a name (now() AS t)", "this form of the statement cannot be rewritten")
	}
	return sql, nil
}
