package stages

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/signet-io/signet/executor/analyze/stages/querygen"
	"github.com/signet-io/signet/executor/analyze/stages/stagetest"
)

// Random queries give the same rows in stages as directly, wherever they are cut. SIGNET_QUERIES sets their number, SIGNET_SEED where they start.
func TestPlan_RandomQueries(t *testing.T) {
	queries := number("SIGNET_QUERIES", 1000)
	if testing.Short() {
		queries = 200
	}
	seed, seeds := number("SIGNET_SEED", 1), (queries+perSeed-1)/perSeed
	sum := &tally{reasons: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		for n := range seeds {
			t.Run(strconv.Itoa(seed+n), func(t *testing.T) {
				t.Parallel()
				randomQueries(t, uint64(seed+n), sum)
			})
		}
	})
	t.Logf("%d staged, %d not, %d that DuckDB itself refuses; %d with rows", sum.staged, sum.all-sum.staged-sum.broken, sum.broken, sum.rows)
	if testing.Verbose() {
		for why, n := range sum.reasons {
			t.Logf("%5d %s", n, why)
		}
	}
	if sum.staged < sum.all*8/10 || sum.broken > sum.all/10 || sum.rows < sum.all*4/10 {
		t.Errorf("the queries are not what they should be")
	}
}

const perSeed = 50

type tally struct {
	mu                        sync.Mutex
	all, staged, broken, rows int
	reasons                   map[string]int
}

func (s *tally) count(why string, direct error, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	if rows > 0 {
		s.rows++
	}
	switch {
	case direct != nil:
		s.broken++
		s.reasons["direct: "+firstLine(direct.Error())]++
	case why == "":
		s.staged++
	default:
		s.reasons[why]++
	}
}

func randomQueries(t *testing.T, seed uint64, sum *tally) {
	g := querygen.New(seed)
	b := newBench(t)
	for _, tab := range g.Tables() {
		b.table(tab.Name, tab.SQL)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	failed := 0
	for i := range perSeed {
		q := g.Query()
		o := []Options{{WholeBytes: -1}, {WholeBytes: 500}, {WholeBytes: 1 << 20}}[rng.IntN(3)]
		l := stagetest.Layout{Shares: 1 + rng.IntN(3), Partitions: 1 + rng.IntN(3), Broadcast: rng.IntN(3)}
		why, rows, direct, err := b.check(q, o, l)
		sum.count(why, direct, rows)
		if err == nil {
			continue
		}
		small := querygen.Minimize(q, func(c *querygen.Query) bool {
			_, _, direct, err := b.check(c, o, l)
			return direct == nil && err != nil
		})
		_, _, _, err = b.check(small, o, l)
		t.Errorf("seed %d, query %d, %+v: %v\nminimal: %s\n%s", seed, i, o, err, small, show(b.plan(small.String(), o)))
		if failed++; failed > 3 {
			t.Fatal("too many failures")
		}
	}
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// check plans a query and compares. direct is the error of the query itself; why it was not staged; rows how many it has.
func (b *bench) check(q *querygen.Query, o Options, l stagetest.Layout) (why string, rows int, direct, err error) {
	ctx := b.t.Context()
	sql := q.String()
	in, direct := b.query(sql)
	if direct != nil {
		return "", 0, direct, nil
	}
	want, direct := stagetest.Rows(ctx, b.inst.Conn(), sql)
	if direct != nil {
		return "", 0, direct, nil
	}
	planned, err := b.planned(in, o)
	if err != nil {
		return "", 0, nil, err
	}
	why = planned.GetNotStaged()
	for _, defect := range []string{"failed on it", "where DuckDB", "cannot write"} {
		if strings.Contains(why, defect) {
			return why, 0, nil, errors.New(why)
		}
	}
	got, err := b.runner.Run(ctx, planned, l)
	if err != nil {
		return why, 0, nil, fmt.Errorf("%+v: %w", l, err)
	}
	if d := querygen.Diff(want, got, q.Total); d != "" {
		return why, 0, nil, fmt.Errorf("%+v: %s", l, d)
	}
	return why, len(want), nil, nil
}
