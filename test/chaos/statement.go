package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Rows of the sources. The tables facts and names are those of newStage.
const (
	factRows  = 12_000
	factFiles = 4
	keys      = 97
	groups    = 10
	bulkFiles = 8
	bulkRows  = 40 // of each file
)

// statement is what one client runs. Its number n is in every row that it writes.
type statement struct {
	n     int
	kind  string
	sql   string // empty: a session
	table string // that it writes to; empty: a query
	ids   []int64
	rows  []string // of a query
	set   map[string]string
	fails bool // its data is wrong

	twice     bool          // two clients send it, under one key
	cancel    time.Duration // after the submission; negative: not
	impatient bool          // the client gives up soon when its connection breaks, and asks again
}

func (st *statement) key() string { return fmt.Sprintf("statement %d", st.n) }

func (st *statement) String() string {
	what := st.sql
	if what == "" {
		what = "session on " + st.table
	}
	return fmt.Sprintf("%d (%s): %s %v twice=%v cancel=%s impatient=%v", st.n, st.kind, what, st.set, st.twice, st.cancel, st.impatient)
}

// kinds of statements, with their weights.
var kinds = []struct {
	name   string
	weight int
	make   func(st *statement, input string)
}{
	{"row", 22, func(st *statement, _ string) {
		st.table = fmt.Sprintf("one%d", st.n%2)
		st.sql, st.ids = fmt.Sprintf("INSERT INTO lake.c.%s SELECT %d AS job, 7 AS id", st.table, st.n), []int64{7}
	}},
	{"bulk", 14, func(st *statement, input string) {
		st.table, st.ids = "bulk", upTo(bulkFiles*bulkRows, 1, 0)
		st.sql = fmt.Sprintf("INSERT INTO lake.c.bulk SELECT %d AS job, id FROM '%s'", st.n, input)
	}},
	{"groups", 12, func(st *statement, _ string) {
		st.table, st.ids = "parts", upTo(keys, 1, 0)
		st.sql = fmt.Sprintf("INSERT INTO lake.c.parts SELECT %d AS job, k AS id, k %% 5 AS g FROM lake.c.facts GROUP BY k", st.n)
	}},
	{"join", 12, func(st *statement, _ string) {
		st.table, st.ids = "parts", upTo(factRows, 50, 7)
		st.sql = fmt.Sprintf("INSERT INTO lake.c.parts SELECT %d AS job, f.id, f.g FROM lake.c.facts f JOIN lake.c.names m USING (k) WHERE f.id %% 50 = 7 GROUP BY ALL", st.n)
	}},
	{"unrepeatable", 8, func(st *statement, _ string) { // S73
		st.table, st.ids = "plain", upTo(keys, 1, 0)
		st.sql = fmt.Sprintf("INSERT INTO lake.c.plain SELECT %d AS job, CAST(round(x) AS BIGINT) AS id FROM (SELECT k, min(k) + sum(id / 1e300) AS x FROM lake.c.facts GROUP BY k) q GROUP BY x", st.n)
	}},
	{"create", 8, func(st *statement, _ string) {
		st.table, st.ids = fmt.Sprintf("t%d", st.n), upTo(factRows, 10, 3)
		st.sql = fmt.Sprintf("CREATE TABLE lake.c.%s AS SELECT CAST(%d AS BIGINT) AS job, id FROM lake.c.facts WHERE id %% 10 = 3", st.table, st.n)
	}},
	{"select", 10, func(st *statement, _ string) {
		for g := range groups {
			n := factRows / groups
			st.rows = append(st.rows, fmt.Sprint([]string{fmt.Sprint(g), fmt.Sprint(n), fmt.Sprint(n*g + groups*n*(n-1)/2)}))
		}
		st.sql = fmt.Sprintf("SELECT g, count(*) AS n, sum(id) AS s FROM lake.c.facts GROUP BY g ORDER BY g -- %d", st.n)
	}},
	{"session", 7, func(st *statement, _ string) {
		st.table, st.ids = fmt.Sprintf("s%d", st.n), upTo(sessionTasks*sessionRows, 1, 0)
	}},
	{"bad", 7, func(st *statement, _ string) {
		st.table, st.fails = "plain", true
		st.sql = fmt.Sprintf("INSERT INTO lake.c.plain SELECT %d AS job, CASE WHEN id = 11111 THEN error('no such row') ELSE id END AS id FROM lake.c.facts", st.n)
	}},
}

// upTo are the numbers below n that leave the rest r when divided by d.
func upTo(n, d, r int64) []int64 {
	var out []int64
	for i := r; i < n; i += d {
		out = append(out, i)
	}
	return out
}

// statements makes n of them.
func statements(rng *rand.Rand, n int, input string) []*statement {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	out := make([]*statement, n)
	for i := range out {
		at := rng.IntN(total)
		pick := 0
		for at >= kinds[pick].weight {
			at -= kinds[pick].weight
			pick++
		}
		st := &statement{n: i, kind: kinds[pick].name, cancel: -1}
		kinds[pick].make(st, input)
		st.set = map[string]string{"signet.planner": []string{"static", "adaptive"}[rng.IntN(2)], "signet.min_task_bytes": "1000"}
		if rng.IntN(2) == 0 {
			st.set["signet.broadcast_bytes"] = "0"
		}
		st.twice, st.impatient = rng.IntN(5) == 0, rng.IntN(2) == 0
		if rng.IntN(8) == 0 {
			st.cancel = time.Duration(rng.IntN(1500)) * time.Millisecond
		}
		out[i] = st
	}
	return out
}
