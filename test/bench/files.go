package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/manifest"
)

// What a commit of 100,000 files may take: from the last task's success to the answer, the commit itself, and CPU to stage it while tasks run.
const (
	wantAnswer = 50 * time.Millisecond
	wantCommit = 20 * time.Millisecond
	wantStage  = 2500 * time.Millisecond

	wantDeltaAnswer = 800 * time.Millisecond // what delta-rs takes to commit 100,000 files
)

// files commits many files whose task manifests are made up, through the scheduler, the sink's process and the catalog as they are. Every file is
// there, with the size that its manifest says; nobody reads its rows.
func files(ctx context.Context, bin string, only int) error {
	c, err := startCluster(ctx, bin, 1, "1GiB")
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	if _, err := c.client.Exec(ctx, "CREATE SCHEMA "+catalog+".b"); err != nil {
		return err
	}
	for _, s := range []struct{ files, tasks int }{{1000, 10}, {10_000, 100}, {100_000, 1000}} {
		if only > 0 && s.files != only {
			continue
		}
		if err := c.commitFiles(ctx, s.files, s.tasks); err != nil {
			return err
		}
	}
	return nil
}

// wideTable has 16 columns, and as many partitions as days.
const wideTable = `(ts TIMESTAMP, a1 BIGINT, a2 BIGINT, a3 BIGINT, a4 BIGINT, a5 BIGINT, s1 VARCHAR, s2 VARCHAR, s3 VARCHAR, s4 VARCHAR, s5 VARCHAR,
	d1 DOUBLE, d2 DOUBLE, d3 DOUBLE, d4 DOUBLE, d5 DOUBLE) PARTITIONED BY (day(ts))`

// wide is wideTable as the catalog can have it: Delta partitions by columns alone.
func wide() string {
	if catalog == "delta" {
		return strings.NewReplacer("ts TIMESTAMP", "ts INTEGER", "day(ts)", "ts").Replace(wideTable)
	}
	return wideTable
}

func (c *cluster) commitFiles(ctx context.Context, n, tasks int) error {
	var answers, commits, ends []time.Duration
	var stage, host time.Duration
	const rounds = 3
	for round := range rounds {
		name := fmt.Sprintf("%s.b.f%d_%d", catalog, n, round)
		if _, err := c.client.Exec(ctx, "CREATE TABLE "+name+" "+wide()); err != nil {
			return err
		}
		s, err := c.begin(ctx, name, tasks)
		if err != nil {
			return err
		}
		manifests, err := s.prepare(n, tasks)
		if err != nil {
			return err
		}
		before := c.cpu()
		for _, m := range manifests[:tasks-1] {
			if err := s.report(m); err != nil {
				return err
			}
		}
		time.Sleep(time.Second) // tasks go on meanwhile
		after := c.cpu()
		stage, host = stage+after["sink"]-before["sink"], host+after["scheduler"]-before["scheduler"]
		if err := s.report(manifests[tasks-1]); err != nil {
			return err
		}
		start := time.Now()
		end, err := c.client.Raw().FinishWrite(ctx, &schedulerv1.FinishWriteRequest{JobId: s.job})
		if err != nil {
			return err
		}
		answers = append(answers, time.Since(start))
		j := end.GetJob()
		if j.GetError() != nil {
			return fmt.Errorf("%d files: %s", n, j.GetError().GetMessage())
		}
		commits = append(commits, time.Duration(j.GetTimingsMicros()["commit"])*time.Microsecond)
		ends = append(ends, time.Duration(j.GetTimingsMicros()["stage"])*time.Microsecond)
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
	}
	sink := 0.0
	for _, pid := range children(c.procs[0].Process.Pid) {
		sink = max(sink, peakMiB(pid))
	}
	fmt.Printf("%d files of 16 columns in %d tasks, %d runs; peak of the sink %.0f MiB, of the scheduler %.0f MiB:\n", n, tasks, rounds, sink, peakMiB(c.procs[0].Process.Pid))
	answer, commit := quantile(answers, 0.5), quantile(commits, 0.5)
	if catalog == "delta" { // whose commit is one object with all of them
		goal("ms from the last task", float64(answer.Microseconds())/1000, answer < wantDeltaAnswer, fmt.Sprintf("less than %d", wantDeltaAnswer.Milliseconds()))
	} else {
		goal("ms from the last task", float64(answer.Microseconds())/1000, answer < wantAnswer, "less than 50")
		goal("ms of them the commit", float64(commit.Microseconds())/1000, commit < wantCommit, "less than 20")
	}
	fmt.Printf("  %-26s %10.1f   to stage what came last\n", "ms of them staging", float64(quantile(ends, 0.5).Microseconds())/1000)
	each := stage / rounds
	limit := wantStage * time.Duration(n) / 100_000
	goal("ms CPU to stage", float64(each.Microseconds())/1000, each <= limit, fmt.Sprintf("at most %d", limit.Milliseconds()))
	fmt.Printf("  %-26s %10.1f   in the scheduler, which checks and journals the task manifests\n", "ms CPU meanwhile", float64((host/rounds).Microseconds())/1000)
	return nil
}

// external is an external write session.
type external struct {
	c    *cluster
	ctx  context.Context //nolint:containedctx // one session, one run
	job  string
	spec *planv1.WriteSpec
	dir  string
}

func (c *cluster) begin(ctx context.Context, table string, tasks int) (*external, error) {
	r, err := c.client.Raw().BeginWrite(ctx, &schedulerv1.BeginWriteRequest{Table: table, Tasks: int32(tasks)}) //nolint:gosec // few
	if err != nil {
		return nil, err
	}
	return &external{c: c, ctx: ctx, job: r.GetJobId(), spec: r.GetSpec(), dir: strings.TrimPrefix(r.GetSpec().GetDataLocation(), "file://")}, nil
}

// prepare makes the files, all of them names of one, and the task manifests about them.
func (s *external) prepare(n, tasks int) ([][]*planv1.ManifestChunk, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	one := filepath.Join(s.dir, "one.parquet")
	var out [][]*planv1.ManifestChunk
	for t := range tasks {
		a, err := s.c.client.Raw().BeginAttempt(s.ctx, &schedulerv1.BeginAttemptRequest{JobId: s.job, Task: int32(t)}) //nolint:gosec // few
		if err != nil {
			return nil, err
		}
		h := &planv1.ManifestHeader{
			JobId: s.job, Stage: a.GetStage(), Task: int32(t), AttemptId: a.GetAttemptId(), Epoch: a.GetEpoch(), TableUuid: s.spec.GetTableUuid(), //nolint:gosec // few
			SchemaId: s.spec.GetSchemaId(), SpecId: s.spec.GetSpecId(), Prefix: a.GetPrefix(),
		}
		dir := strings.TrimPrefix(a.GetPrefix(), "file://")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		var list []*planv1.DataFile
		for i := range n / tasks {
			k := t*(n/tasks) + i
			name := fmt.Sprintf("%06d.parquet", i)
			if k%30_000 == 0 { // a file has only so many names
				one = filepath.Join(s.dir, fmt.Sprintf("one%d.parquet", k))
				if err := os.WriteFile(one, make([]byte, fileBytes), 0o600); err != nil {
					return nil, err
				}
			}
			if err := os.Link(one, filepath.Join(dir, name)); err != nil {
				return nil, err
			}
			list = append(list, s.dataFile(a.GetPrefix()+"/"+name, k))
		}
		chunks, err := manifest.Encode(h, list)
		if err != nil {
			return nil, err
		}
		out = append(out, chunks)
	}
	return out, nil
}

const fileBytes = 4096

func (s *external) dataFile(path string, k int) *planv1.DataFile {
	f := &planv1.DataFile{Path: path, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 1000, SizeBytes: fileBytes, Partition: []*planv1.Value{number(int64(k % 2000))}}
	for i, col := range s.spec.GetSchema().GetFields() {
		if i == 0 && s.spec.GetFiles().GetOmitPartitionColumns() {
			continue // it is in no file
		}
		rows, nulls, size := int64(1000), int64(k%3), int64(8000+k)
		m := &planv1.ColumnMetrics{FieldId: col.GetId(), SizeBytes: &size, ValueCount: &rows, NullCount: &nulls}
		lo, hi := number(int64(i*k)), number(int64(i*k+1000))
		switch col.GetType().GetKind() {
		case planv1.TypeKind_TYPE_KIND_STRING:
			lo, hi = text(fmt.Sprintf("customer name %06d", k)), text(fmt.Sprintf("customer name %06d", k+1000))
		case planv1.TypeKind_TYPE_KIND_FLOAT64:
			lo, hi = float(float64(k)/7), float(float64(k+1000)/7)
		}
		m.Lower, m.Upper = &planv1.Bound{Value: lo}, &planv1.Bound{Value: hi}
		f.Columns = append(f.Columns, m)
	}
	return f
}

func (s *external) report(chunks []*planv1.ManifestChunk) error {
	st, err := s.c.client.Raw().AcceptManifest(s.ctx)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if st.Send(&schedulerv1.AcceptManifestRequest{Chunk: c}) != nil {
			break // the answer says why
		}
	}
	r, err := st.CloseAndRecv()
	if err != nil {
		return err
	}
	if !r.GetAccepted() {
		return errors.New("the task manifest was refused: " + r.GetReason())
	}
	return nil
}

func number(n int64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}} }
func text(s string) *planv1.Value  { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }
func float(f float64) *planv1.Value {
	return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}}
}
