package harness

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"

	"github.com/stretchr/testify/require"
)

// Result is what a command printed and how it ended.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs `signet ARGS --scheduler …`.
func (c *Cluster) Run(args ...string) Result {
	c.t.Helper()
	return RunCommand(c.t, "", nil, append(append(args, "--scheduler", c.Address), c.opts.ClientArgs...)...)
}

// Inline runs signet's client within the test's process, if it is set: to start the program costs several times what most statements do. What tests are about
// beyond statements (signals, exit, streams) they start with Run.
var Inline func(args []string, out, errs io.Writer) int

// ask is Run, in this process where it can be.
func (c *Cluster) ask(args ...string) Result {
	if Inline == nil {
		return c.Run(args...)
	}
	var out, errs bytes.Buffer
	code := Inline(append(append(args, "--scheduler", c.Address), c.opts.ClientArgs...), &out, &errs)
	return Result{code, out.String(), errs.String()}
}

// TB is the part of testing.TB that RunCommand needs; also a goroutine may use it.
type TB interface {
	Errorf(format string, args ...any)
}

// RunCommand runs signet in a directory, and waits. -1: ended by a signal.
func RunCommand(t TB, dir string, env []string, args ...string) Result {
	cmd := exec.Command(Path("signet"), args...)
	cmd.Dir, cmd.Env = dir, append(cleanEnv(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Errorf("signet %s: %v", strings.Join(args, " "), err)
	}
	return Result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// SQL runs statements and expects success. It returns the rows of the last one, as CSV gives them.
func (c *Cluster) SQL(script string, args ...string) [][]string {
	c.t.Helper()
	r := c.ask(append([]string{"sql", "--quiet", "--output", "csv", script}, args...)...)
	require.Equal(c.t, 0, r.Code, "%s\n%s", script, r.Err)
	return parseCSV(c.t, r.Out)
}

func parseCSV(t require.TestingT, text string) [][]string {
	rd := csv.NewReader(strings.NewReader(text))
	rd.FieldsPerRecord = -1
	rows, err := rd.ReadAll()
	require.NoError(t, err)
	if len(rows) == 0 {
		return nil
	}
	return rows[1:]
}

// Value is the only value of a query.
func (c *Cluster) Value(query string) string {
	c.t.Helper()
	rows := c.SQL(query)
	require.Len(c.t, rows, 1, query)
	require.Len(c.t, rows[0], 1, query)
	return rows[0][0]
}

// Fail runs a statement that must fail with the code; the message must contain each of the texts.
func (c *Cluster) Fail(code int, statement string, texts ...string) Result {
	c.t.Helper()
	r := c.ask("sql", "--quiet", statement)
	require.Equal(c.t, code, r.Code, "%s\nstdout: %s\nstderr: %s", statement, r.Out, r.Err)
	for _, s := range texts {
		require.Contains(c.t, r.Err, s, statement)
	}
	return r
}

// Job is a job as `signet jobs` lists it.
type Job struct {
	ID        string `json:"job_id"`
	State     string `json:"state"`
	Kind      string `json:"kind"`
	Statement string `json:"statement"`
}

// Jobs lists all jobs, newest first.
func (c *Cluster) Jobs() []Job {
	c.t.Helper()
	r := c.ask("jobs", "--limit", "100000", "--output", "json")
	require.Equal(c.t, 0, r.Code, r.Err)
	var out []Job
	for line := range strings.SplitSeq(strings.TrimSpace(r.Out), "\n") {
		if line == "" {
			continue
		}
		var j Job
		require.NoError(c.t, json.Unmarshal([]byte(line), &j))
		out = append(out, j)
	}
	return out
}

// AwaitJobs waits until every job has ended, and lists them.
func (c *Cluster) AwaitJobs() []Job {
	c.t.Helper()
	var jobs []Job
	Eventually(c.t, "every job ends", func() bool {
		jobs = c.Jobs()
		for _, j := range jobs {
			if j.State != "Successful" && j.State != "Failed" && j.State != "Cancelled" {
				return false
			}
		}
		return true
	})
	return jobs
}
