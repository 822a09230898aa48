package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// MaxOperators bounds a logical plan.
const MaxOperators = 1000

// Statement turns a logical plan into the statement that says the same, so that both are analysed, planned, shown and repeated alike. Its errors
// are *Error and name the operator by its place.
func Statement(p *planv1.LogicalPlan) (string, error) {
	l := &logical{ops: p.GetOperators(), readers: make([]int, len(p.GetOperators()))}
	if len(l.ops) == 0 {
		return "", &Error{Message: "the logical plan has no operators", Hint: "the smallest is a Query below a Result"}
	}
	if len(l.ops) > MaxOperators {
		return "", &Error{Message: fmt.Sprintf("the logical plan has %d operators; at most %d are allowed", len(l.ops), MaxOperators), Hint: "say more in each query"}
	}
	for i := range l.ops {
		if err := l.check(i); err != nil {
			return "", err
		}
	}
	root, err := l.root()
	if err != nil {
		return "", err
	}
	if err := l.order(); err != nil {
		return "", err
	}
	return l.statement(root)
}

type logical struct {
	ops     []*planv1.LogicalOperator
	readers []int
	sorted  []int // inputs before those that read them
}

func (l *logical) bad(i int, hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf("operator %d (%s) of the logical plan: ", i, l.ops[i].GetOp()) + fmt.Sprintf(format, args...), Hint: hint}
}

var logicalOps = []Op{OpQuery, OpCoalesce, OpWrite, OpCommit, OpResult}

// OpQuery is a query over files, tables and other operators; the analysis makes scans and fragments of it.
const OpQuery Op = "Query"

func (l *logical) check(i int) error {
	o := l.ops[i]
	if !slices.Contains(logicalOps, Op(o.GetOp())) {
		return &Error{Message: fmt.Sprintf("operator %d of the logical plan: there is no operator %q", i, o.GetOp()), Hint: fmt.Sprintf("operators are %v", logicalOps)}
	}
	for _, in := range o.GetInputs() {
		if in < 0 || int(in) >= len(l.ops) {
			return l.bad(i, "inputs are places in the list of operators, from 0", "it reads operator %d of %d", in, len(l.ops))
		}
		l.readers[in]++
	}
	if Op(o.GetOp()) != OpQuery && len(o.GetInputs()) != 1 {
		return l.bad(i, "", "it has %s, not one", count(len(o.GetInputs()), "input"))
	}
	switch Op(o.GetOp()) {
	case OpQuery:
		return l.checkQuery(i)
	case OpCoalesce:
		if o.GetLimit() < 0 {
			return l.bad(i, "0 stands for all rows", "a limit of %d rows", o.GetLimit())
		}
		return l.below(i, OpQuery, OpCoalesce)
	case OpWrite:
		if strings.TrimSpace(o.GetTarget().GetTable()) == "" {
			return l.bad(i, "set target.table", "it does not say which table it writes")
		}
		return l.below(i, OpQuery, OpCoalesce)
	case OpCommit:
		return l.below(i, OpWrite)
	default:
		return l.below(i, OpQuery, OpCoalesce)
	}
}

func (l *logical) below(i int, want ...Op) error {
	if in := l.ops[l.ops[i].GetInputs()[0]]; !slices.Contains(want, Op(in.GetOp())) {
		return l.bad(i, "", "%s cannot be its input; want one of %v", in.GetOp(), want)
	}
	return nil
}

func (l *logical) checkQuery(i int) error {
	o := l.ops[i]
	if len(o.GetViews()) != len(o.GetInputs()) {
		return l.bad(i, "give one name for each input", "it has %s and %s", count(len(o.GetInputs()), "input"), count(len(o.GetViews()), "view"))
	}
	seen := map[string]bool{}
	for _, v := range o.GetViews() {
		name := strings.ToLower(v)
		if v == "" || seen[name] || strings.HasPrefix(name, shared("")) {
			return l.bad(i, "names are not empty, differ, and do not begin with "+shared(""), "view %q", v)
		}
		seen[name] = true
	}
	for _, in := range o.GetInputs() {
		if op := Op(l.ops[in].GetOp()); op != OpQuery && op != OpCoalesce {
			return l.bad(i, "", "%s cannot be its input; want one of %v", op, []Op{OpQuery, OpCoalesce})
		}
	}
	st, err := sql.Parse(o.GetSql())
	if err != nil {
		return l.bad(i, "", "%v", err)
	}
	if _, ok := st.(*sql.Select); !ok {
		return l.bad(i, "Write and Commit say what becomes of its rows", "its text is not a query")
	}
	return nil
}

// root is the operator that no other reads.
func (l *logical) root() (int, error) {
	root := -1
	for i, n := range l.readers {
		switch {
		case n > 0:
		case root >= 0:
			return 0, &Error{Message: fmt.Sprintf("the logical plan has two roots: nothing reads operators %d and %d", root, i), Hint: "every operator but one is the input of another"}
		default:
			root = i
		}
	}
	if root < 0 {
		return 0, errCycle
	}
	if op := Op(l.ops[root].GetOp()); op != OpCommit && op != OpResult {
		return 0, l.bad(root, "", "a plan ends in Commit or Result")
	}
	return root, nil
}

var errCycle = &Error{Message: "the operators of the logical plan form a cycle", Hint: "an operator may not read what reads it, however many are between them"}

// order sorts the operators (Kahn 1962), each time taking the first that is ready.
func (l *logical) order() error {
	waits := make([]int, len(l.ops))
	readers := make([][]int, len(l.ops))
	var ready []int
	for i, o := range l.ops {
		waits[i] = len(o.GetInputs())
		for _, in := range o.GetInputs() {
			readers[in] = append(readers[in], i)
		}
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		l.sorted = append(l.sorted, i)
		for _, r := range readers[i] {
			if waits[r]--; waits[r] == 0 {
				ready = append(ready, r)
			}
		}
	}
	if len(l.sorted) < len(l.ops) {
		return errCycle
	}
	return nil
}

// shared names the common table expression of an operator.
func shared(place string) string { return "signet_operator_" + place }

func (l *logical) statement(root int) (string, error) {
	below := int(l.ops[root].GetInputs()[0])
	var target *planv1.WriteTarget
	if Op(l.ops[root].GetOp()) == OpCommit {
		target, below = l.ops[below].GetTarget(), int(l.ops[below].GetInputs()[0])
	}
	var with []string
	for _, i := range l.sorted {
		if op := Op(l.ops[i].GetOp()); i != below && (op == OpQuery || op == OpCoalesce) {
			with = append(with, shared(fmt.Sprint(i))+" AS (\n"+l.query(i, nil)+"\n)")
		}
	}
	query := l.query(below, with)
	if target == nil {
		return query, nil
	}
	return writeText(target, query)
}

// query is the text of an operator that gives rows; with goes before its own common table expressions.
func (l *logical) query(i int, with []string) string {
	o := l.ops[i]
	if Op(o.GetOp()) == OpCoalesce {
		text := "SELECT * FROM " + shared(fmt.Sprint(o.GetInputs()[0]))
		if o.GetLimit() > 0 {
			text += fmt.Sprintf(" LIMIT %d", o.GetLimit())
		}
		return withText(with, text)
	}
	for k, in := range o.GetInputs() {
		with = append(with, sql.QuoteIdent(o.GetViews()[k])+" AS (SELECT * FROM "+shared(fmt.Sprint(in))+")")
	}
	st, _ := sql.Parse(o.GetSql()) // it was parsed before
	q, _ := st.(*sql.Select)
	return withText(with, q.Query.Text)
}

// withText puts common table expressions before a query that may have some of its own.
func withText(with []string, query string) string {
	if len(with) == 0 {
		return query
	}
	head := "WITH " + strings.Join(with, ", ")
	rest, has := cutWord(query, "WITH")
	if !has {
		return head + "\n" + query
	}
	if after, recursive := cutWord(rest, "RECURSIVE"); recursive {
		return "WITH RECURSIVE " + strings.Join(with, ", ") + ", " + after
	}
	return head + ", " + rest
}

func cutWord(text, word string) (string, bool) {
	text = strings.TrimLeft(text, " \t\r\n")
	if len(text) <= len(word) || !strings.EqualFold(text[:len(word)], word) || !strings.ContainsRune(" \t\r\n\"/-", rune(text[len(word)])) {
		return text, false
	}
	return text[len(word):], true
}

func writeText(t *planv1.WriteTarget, query string) (string, error) {
	if !t.GetCreate() {
		if t.GetIfNotExists() || len(t.GetPartitionedBy()) > 0 || len(t.GetProperties()) > 0 {
			return "", &Error{Message: fmt.Sprintf("target %s: partitioning, properties and if_not_exists are for tables that are created", t.GetTable()), Hint: "set create"}
		}
		text := "INSERT INTO " + t.GetTable()
		if len(t.GetColumns()) > 0 {
			text += " (" + quoted(t.GetColumns(), sql.QuoteIdent) + ")"
		}
		if t.GetByName() {
			text += " BY NAME"
		}
		return sameTarget(text+"\n"+query, t, query)
	}
	if t.GetByName() || len(t.GetColumns()) > 0 {
		return "", &Error{Message: fmt.Sprintf("target %s: the columns of a table that is created are the query's", t.GetTable()), Hint: "name them in the query"}
	}
	text := "CREATE TABLE "
	if t.GetIfNotExists() {
		text += "IF NOT EXISTS "
	}
	text += t.GetTable()
	if len(t.GetPartitionedBy()) > 0 {
		text += " PARTITIONED BY (" + strings.Join(t.GetPartitionedBy(), ", ") + ")"
	}
	if len(t.GetProperties()) > 0 {
		var items []string
		for _, k := range slices.Sorted(maps.Keys(t.GetProperties())) {
			items = append(items, sql.QuoteString(k)+" = "+sql.QuoteString(t.GetProperties()[k]))
		}
		text += " WITH (" + strings.Join(items, ", ") + ")"
	}
	return sameTarget(text+" AS\n"+query, t, query)
}

func quoted(names []string, quote func(string) string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote(n)
	}
	return strings.Join(out, ", ")
}

// sameTarget refuses a target whose name or terms would say more than they should.
func sameTarget(text string, t *planv1.WriteTarget, query string) (string, error) {
	table := t.GetTable()
	st, err := sql.Parse(text)
	if err != nil {
		return "", &Error{Message: fmt.Sprintf("target %s: %v", table, err), Hint: "names are quoted as in SQL"}
	}
	var name sql.Name
	terms, rows := 0, ""
	switch st := st.(type) {
	case *sql.Insert:
		name, rows = st.Table, st.Query.Text
	case *sql.CreateTable:
		name, terms = st.Table, len(st.Partition)
		if st.Query != nil {
			rows = st.Query.Text
		}
	}
	want, err := sql.ParseTableName(table)
	if err != nil || sql.JoinName(name.Strings()) != sql.JoinName(want.Strings()) {
		return "", &Error{Message: fmt.Sprintf("target %q is not the name of a table", table), Hint: "[[catalog.]schema.]table, quoted as in SQL"}
	}
	if rows != query || terms != len(t.GetPartitionedBy()) {
		return "", &Error{Message: fmt.Sprintf("target %s: partitioned_by is %q, of which one is no term", table, t.GetPartitionedBy()), Hint: "each is a column, or a transform of one as in PARTITIONED BY: day(ts), bucket(16, id)"}
	}
	return text, nil
}
