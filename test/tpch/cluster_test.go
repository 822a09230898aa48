//go:build cgo

package tpch_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

const executors = 3

var planners = []string{"static", "adaptive"}

// cluster runs queries over three executors.
type cluster struct {
	*harness.Cluster
	client *client.Client
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := harness.New(t, harness.Options{Executors: executors})
	return &cluster{c, c.Client()}
}

// run is one execution of a query.
type run struct {
	*answer
	took   time.Duration
	plan   string
	stages int
	tasks  int
	whole  string // why it is one task; empty: it is not
}

var notSplit = regexp.MustCompile(`(?m)^ *not split: (.*)$`)

func (c *cluster) query(ctx context.Context, sql string, set map[string]string) (*run, error) {
	out, started, id := &run{answer: &answer{}}, time.Now(), ""
	res, err := c.client.Exec(ctx, sql, client.WithSettings(set), client.WithSubmitted(func(job string, _ bool) { id = job }))
	if err == nil {
		err = out.read(ctx, res)
	}
	out.took = time.Since(started)
	if id != "" {
		if j, jerr := c.client.Job(ctx, id); jerr == nil {
			out.describe(j)
		}
	}
	return out, err
}

func (r *run) read(ctx context.Context, res *client.Result) error {
	rows, err := res.Rows(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	r.schema = rows.Schema()
	for rows.Next() {
		r.add(rows.RecordBatch())
	}
	return rows.Err()
}

func (r *run) describe(j *schedulerv1.GetJobResponse) {
	r.plan, r.tasks = j.GetPlan(), len(j.GetTasks())
	for _, t := range j.GetTasks() {
		r.stages = max(r.stages, int(t.GetStage())+1)
	}
	if r.tasks > 1 {
		return
	}
	r.whole = "the plan gives no reason"
	if m := notSplit.FindStringSubmatch(r.plan); m != nil {
		r.whole = m[1]
	}
}

// settings divide even a small input among all executors, and move what is small.
func settings(planner string, more ...string) map[string]string {
	out := map[string]string{"signet.planner": planner, "signet.min_task_bytes": "1"}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// files puts the patterns of files into the place of the tables of a query. Tables are named after FROM, JOIN and commas.
func files(dir, sql string, tables ...string) string {
	re := regexp.MustCompile(`(FROM |JOIN |, )(` + strings.Join(tables, "|") + `)\b`)
	return re.ReplaceAllStringFunc(sql, func(s string) string {
		m := re.FindStringSubmatch(s)
		return m[1] + "'" + filepath.Join(dir, m[2], "*.parquet") + "'"
	})
}

// again is the command that runs one query again.
func again(t testing.TB, format string, args ...any) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("CGO_ENABLED=1 go test -count=1 ./test/tpch -run '^%s$' -args ", name) + fmt.Sprintf(format, args...)
}
