package analyze

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// travel is a clause that names an older state of the table in front of it, or a branch or a tag.
type travel struct {
	version string // snapshot id, branch or tag
	time    string // SQL of a constant
}

// key is different for different states of a table.
func (t travel) key() string { return t.version + "\x00" + t.time }

const travelHint = "write FOR VERSION AS OF 123 (a snapshot id), FOR VERSION AS OF 'name' (a branch or a tag) or FOR TIMESTAMP AS OF '2026-01-31 12:00:00' behind the table's name"

// refPrefixes begin the last part of a name that means a branch or a tag of the table before it.
var refPrefixes = []string{"branch_", "tag_"}

// cutTravel takes the clauses FOR VERSION AS OF and FOR TIMESTAMP AS OF, in Spark's and Trino's forms, out of a text, because DuckDB does not know them. What
// is left has the same length, so that places in it stay right. The clauses are answered by the place of the first token of their table's name.
func cutTravel(sql string) (string, map[int]travel, error) {
	if !mayTravel(sql) {
		return sql, nil, nil
	}
	s := newSplicer(sql)
	out := []byte(sql)
	at := map[int]travel{}
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	for i := 1; i < len(s.tokens); i++ {
		if n := s.travelWords(i); n > 0 && s.isName(i-1) {
			end, t, err := s.travelValue(i, i+n)
			if err != nil {
				return "", nil, err
			}
			start := s.nameStart(i - 1)
			at[s.tokens[start].start] = t
			blank(s.tokens[i].start, s.tokens[end-1].end)
			i = end - 1
			continue
		}
		if end, name := s.longReference(i); name != "" {
			at[s.tokens[i].start] = travel{version: name}
			blank(s.tokens[end-2].start, s.tokens[end-1].end)
			i = end - 1
		}
	}
	return string(out), at, nil
}

// mayTravel spares other texts the look at their tokens.
func mayTravel(sql string) bool {
	upper := strings.ToUpper(sql)
	for _, w := range []string{"VERSION", "TIMESTAMP", "SYSTEM_TIME", "BRANCH_", "TAG_"} {
		if strings.Contains(upper, w) {
			return true
		}
	}
	return false
}

func (s *splicer) text(from, to int) string { return s.sql[s.tokens[from].start:s.tokens[to-1].end] }

// travelWords counts the words of [FOR] VERSION AS OF and its like at token i; 0: it is something else.
func (s *splicer) travelWords(i int) int {
	n := 0
	if s.is(i, "FOR") {
		n++
	}
	switch {
	case s.is(i+n, "VERSION"), s.is(i+n, "SYSTEM_VERSION"), s.is(i+n, "TIMESTAMP"), s.is(i+n, "SYSTEM_TIME"):
	default:
		return 0
	}
	if !s.is(i+n+1, "AS") || !s.is(i+n+2, "OF") {
		return 0
	}
	if n == 0 && !s.isValue(i+3) { // SELECT version AS of
		return 0
	}
	return n + 3
}

// isValue reports whether a constant may begin at token i.
func (s *splicer) isValue(i int) bool {
	if i >= len(s.tokens) {
		return false
	}
	switch t := s.tokens[i]; t.kind {
	case tokenString:
		return true
	case tokenWord:
		c := s.sql[t.start]
		return c >= '0' && c <= '9' || i+1 < len(s.tokens) && s.tokens[i+1].kind == tokenString
	}
	return false
}

// isName reports whether the token may end a table's name.
func (s *splicer) isName(i int) bool {
	t := s.tokens[i]
	return t.kind == tokenQuoted || t.kind == tokenString || t.kind == tokenWord && !s.is(i, "FROM") && !s.is(i, "JOIN")
}

// nameStart is the first token of the qualified name that ends at token i.
func (s *splicer) nameStart(i int) int {
	for i >= 2 && s.is(i-1, ".") {
		i -= 2
	}
	return i
}

// travelValue reads what stands behind AS OF. end is the token after it.
func (s *splicer) travelValue(clause, i int) (end int, t travel, err error) {
	byTime := strings.Contains(strings.ToUpper(s.text(clause, i)), "TIME")
	end = s.valueEnd(i)
	if end < 0 {
		return 0, t, refuse(travelHint, "%s is followed by no value", s.text(clause, i))
	}
	if byTime {
		return end, travel{time: s.text(i, end)}, nil
	}
	switch tok := s.tokens[i]; {
	case end == i+1 && tok.kind == tokenString:
		t.version = ident(s.sql, tok)
	case end == i+1 && tok.kind == tokenWord:
		if _, err := strconv.ParseInt(s.text(i, end), 10, 64); err == nil {
			t.version = s.text(i, end)
		}
	}
	if t.version == "" {
		return 0, t, refuse(travelHint, "%s %s: a version is a number or a name in single quotes", s.text(clause, i), s.text(i, end))
	}
	return end, t, nil
}

// valueEnd is the token after a constant: a number, a string, TYPE 'string', a call or something in parentheses.
func (s *splicer) valueEnd(i int) int {
	for j := i; j < len(s.tokens) && j < i+5; j++ { // TIMESTAMP WITH TIME ZONE '…'
		switch {
		case s.tokens[j].kind == tokenString:
			return j + 1
		case s.is(j, "("):
			stop := s.close(j)
			for k := j; k < len(s.tokens); k++ {
				if s.tokens[k].end == stop {
					return k + 1
				}
			}
			return -1
		case s.tokens[j].kind != tokenWord:
			return -1
		case j == i && s.is(j+1, ".") && s.tokens[j+1].start == s.tokens[j].end:
			return min(j+3, len(s.tokens))
		case j == i && s.sql[s.tokens[j].start] >= '0' && s.sql[s.tokens[j].start] <= '9', j == i && strings.HasPrefix(strings.ToLower(s.text(j, j+1)), "current_"):
			return j + 1
		}
	}
	return -1
}

// longReference finds catalog.schema.table.branch_x behind FROM or JOIN, which is a part too long for DuckDB. end is the token after it.
func (s *splicer) longReference(i int) (end int, name string) {
	if !s.is(i-1, "FROM") && !s.is(i-1, "JOIN") {
		return 0, ""
	}
	parts := 1
	for end = i + 1; end+1 < len(s.tokens) && s.is(end, "."); end += 2 {
		parts++
	}
	if parts != 4 {
		return 0, ""
	}
	return end, refName(ident(s.sql, s.tokens[end-1]))
}

// refName is the branch or tag that a part of a name means; "" if it means none.
func refName(part string) string {
	for _, p := range refPrefixes {
		if len(part) > len(p) && strings.EqualFold(part[:len(p)], p) {
			return part[len(p):]
		}
	}
	return ""
}

// travelMicros evaluates the time of a clause. Times without a zone are UTC, as everywhere.
func (a *analysis) travelMicros(t travel) (int64, error) {
	node, err := a.parse("SELECT " + t.time)
	if err != nil {
		return 0, refuse(travelHint, "FOR TIMESTAMP AS OF %s: %v", t.time, err)
	}
	r := newRewriter(a.req.GetNowMicros())
	if err := r.statement(node); err != nil {
		return 0, err
	}
	list := node.List("select_list")
	if len(list) != 1 || len(r.sources) > 0 {
		return 0, refuse(travelHint, "FOR TIMESTAMP AS OF %s: want one constant", t.time)
	}
	text, err := a.expressionText(list[0])
	if err != nil {
		return 0, err
	}
	var micros int64
	query := fmt.Sprintf("SELECT epoch_us(CAST(%s AS TIMESTAMP WITH TIME ZONE))", text)
	if _, isString, _, ok := ast.Constant(list[0]); ok && !isString { // Spark: seconds
		query = fmt.Sprintf("SELECT epoch_us(to_timestamp(%s))", text)
	}
	if err := a.inst.Conn().QueryRowContext(a.ctx, query).Scan(&micros); err != nil {
		if a.ctx.Err() != nil {
			return 0, err
		}
		why, _, _ := strings.Cut(err.Error(), "\n") // below stands the query that this function wrote
		return 0, refuse(travelHint, "FOR TIMESTAMP AS OF %s is no time: %s", t.time, why)
	}
	if year := time.UnixMicro(micros).UTC().Year(); year < 1970 || year > 9999 {
		return 0, refuse(travelHint, "FOR TIMESTAMP AS OF %s is in the year %d", t.time, year)
	}
	return micros, nil
}
