package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/cli/format"
)

func (a *app) jobsCommand() *cobra.Command {
	var limit int
	var output string
	cmd := &cobra.Command{
		Use: "jobs", Short: "List jobs, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), func(ctx context.Context, s *session) error {
				jobs, err := s.Jobs(ctx, limit)
				if err != nil {
					return err
				}
				return printJobs(a.streams.Out, output, jobs)
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "how many")
	cmd.Flags().StringVarP(&output, "output", "o", "table", strings.Join(format.Kinds, ", "))
	a.connectionFlags(cmd)
	return cmd
}

func (a *app) jobCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "job ID", Short: "Show one job: state, progress, timings, plan and tasks", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd.Context(), func(ctx context.Context, s *session) error {
				r, err := s.Job(ctx, args[0])
				if err != nil {
					return err
				}
				if output == "json" {
					r.Job.InlineResult = nil // Arrow bytes, of no use as base64
					b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r)
					if err != nil {
						return err
					}
					_, err = fmt.Fprintf(a.streams.Out, "%s\n", b)
					return err
				}
				return printJob(a.streams.Out, r)
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json")
	a.connectionFlags(cmd)
	return cmd
}

func (a *app) cancelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a job, unless it has committed", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd.Context(), func(ctx context.Context, s *session) error {
				ok, message, err := s.Cancel(ctx, args[0])
				if err != nil {
					return err
				}
				if !ok {
					return fmt.Errorf("not cancelled: %s", message)
				}
				fmt.Fprintf(a.streams.Out, "cancelled %s\n", args[0])
				return nil
			})
		},
	}
	a.connectionFlags(cmd)
	return cmd
}

// withSession runs f over a connection that needs no executors.
func (a *app) withSession(ctx context.Context, f func(context.Context, *session) error) (err error) {
	ctx, stopWatching := a.untilInterrupted(ctx)
	defer stopWatching()
	s, err := a.connect(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	return f(ctx, s)
}

func printJobs(w io.Writer, output string, jobs []*schedulerv1.Job) error {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "job_id", Type: arrow.BinaryTypes.String},
		{Name: "state", Type: arrow.BinaryTypes.String},
		{Name: "kind", Type: arrow.BinaryTypes.String},
		{Name: "submitted", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
		{Name: "millis", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "statement", Type: arrow.BinaryTypes.String},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	text := func(i int) *array.StringBuilder { return b.Field(i).(*array.StringBuilder) }
	for _, j := range jobs {
		text(0).Append(j.GetJobId())
		text(1).Append(stateText(j))
		text(2).Append(j.GetKind())
		b.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(j.GetSubmittedMillis()))
		millis := b.Field(4).(*array.Int64Builder)
		if j.GetFinishedMillis() == 0 {
			millis.AppendNull()
		} else {
			millis.Append(j.GetFinishedMillis() - j.GetSubmittedMillis())
		}
		text(5).Append(shorten(j.GetStatement(), output))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return printBatch(w, output, rec)
}

func printBatch(w io.Writer, output string, rec arrow.RecordBatch) error {
	out, err := format.New(output, w)
	if err != nil {
		return &exitError{code: ExitUsage, err: err}
	}
	if err := out.Begin(rec.Schema()); err != nil {
		return err
	}
	if err := out.Batch(rec); err != nil {
		return err
	}
	_, err = out.End()
	return err
}

// stateText is the state, with the phase of a running job.
func stateText(j *schedulerv1.Job) string {
	s := client.StateName(j.GetState())
	if p := j.GetPhase(); p != "" && !client.Terminal(j.GetState()) {
		s += " (" + p + ")"
	}
	return s
}

// shorten makes a statement fit a table's row; programs get it whole.
func shorten(s, output string) string {
	if output != "table" {
		return s
	}
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:59]) + "…"
	}
	return s
}

func printJob(w io.Writer, r *schedulerv1.GetJobResponse) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	j := r.GetJob()
	line("job", "%s", j.GetJobId())
	line("state", "%s", stateText(j))
	line("kind", "%s", j.GetKind())
	line("statement", "%s", strings.ReplaceAll(j.GetStatement(), "\n", "\n           "))
	line("submitted", "%s by %s", time.UnixMilli(j.GetSubmittedMillis()).UTC().Format(time.RFC3339), j.GetPrincipal())
	if j.GetFinishedMillis() > 0 {
		line("took", "%s", seconds(time.Duration(j.GetFinishedMillis()-j.GetSubmittedMillis())*time.Millisecond))
	}
	if g := j.GetProgress(); g.GetTasks() > 0 {
		line("progress", "stage %d/%d, tasks %d/%d, %s rows, %s", g.GetStagesDone(), g.GetStages(), g.GetTasksDone(), g.GetTasks(), count(g.GetRows()), bytes(g.GetBytes()))
	}
	if m := j.GetMessage(); m != "" {
		line("waiting", "%s", m)
	}
	for _, x := range j.GetWarnings() {
		line("warning", "%s", x)
	}
	if e := j.GetError(); e != nil {
		line("error", "%s (%s)", e.GetMessage(), e.GetCode())
		if e.GetHint() != "" {
			line("hint", "%s", e.GetHint())
		}
	}
	if t := timings(j.GetTimingsMicros()); t != "" {
		line("timings", "%s", t)
	}
	if r.GetPlan() != "" {
		fmt.Fprintf(&b, "\nplan\n%s\n", strings.TrimRight(r.GetPlan(), "\n"))
	}
	if len(r.GetTasks()) > 0 {
		b.WriteString("\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil || len(r.GetTasks()) == 0 {
		return err
	}
	return printTasks(w, r.GetTasks())
}

// timings are in the order of their size: the first is where the time went.
func timings(m map[string]int64) string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if m[a] != m[b] {
			return int(min(max(m[b]-m[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%s %.1f ms", n, float64(m[n])/1000)
	}
	return strings.Join(names, ", ")
}

func printTasks(w io.Writer, tasks []*schedulerv1.TaskInfo) error {
	i32 := arrow.PrimitiveTypes.Int32
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "stage", Type: i32},
		{Name: "task", Type: i32},
		{Name: "state", Type: arrow.BinaryTypes.String},
		{Name: "attempts", Type: i32},
		{Name: "executor", Type: arrow.BinaryTypes.String},
		{Name: "rows", Type: arrow.PrimitiveTypes.Int64},
		{Name: "bytes", Type: arrow.PrimitiveTypes.Int64},
		{Name: "error", Type: arrow.BinaryTypes.String},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, t := range tasks {
		b.Field(0).(*array.Int32Builder).Append(t.GetStage())
		b.Field(1).(*array.Int32Builder).Append(t.GetTask())
		b.Field(2).(*array.StringBuilder).Append(t.GetState())
		b.Field(3).(*array.Int32Builder).Append(t.GetAttempts())
		b.Field(4).(*array.StringBuilder).Append(t.GetExecutor())
		b.Field(5).(*array.Int64Builder).Append(t.GetRows())
		b.Field(6).(*array.Int64Builder).Append(t.GetBytes())
		b.Field(7).(*array.StringBuilder).Append(t.GetError())
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return printBatch(w, "table", rec)
}
