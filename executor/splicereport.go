package executor

import (
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/write"
)

// maxNotCopied is how many files a report names.
const maxNotCopied = 20

// spliceReport says which row groups of a planned write's input would be copied.
func (e *Executor) spliceReport(req *executorv1.Analyze) *executorv1.AnalyzeResult {
	out := &executorv1.AnalyzeResult{RequestId: req.GetRequestId()}
	dir := filepath.Join(e.scratch.Path, "explain-"+uuid.NewString()) // DuckDB writes nothing to it
	task, left, err := e.stageFooters(req, dir)
	defer os.RemoveAll(dir)
	if err != nil {
		out.Error = planError(e.life, nil, e.scratch.Path, err)
		return out
	}
	inst, err := e.pool.Open(e.life, duckdb.Access{ReadFiles: duckdb.FilesOf(task.GetSources()), WriteDirs: []string{dir}, Threads: 1, KeepOrder: true})
	if err != nil {
		out.Error = duckdb.PlanError(err)
		return out
	}
	defer e.pool.Discard(inst)
	err = inst.BindSources(e.life, task.GetSources())
	if err == nil {
		var r *write.SpliceReport
		if r, err = write.Splice(e.life, inst, task, left); err == nil {
			out.Splice = reported(r)
			out.Splice.NoCopies = task.GetWrite().GetNoCopies()
		}
	}
	out.Error = inst.PlanError(err)
	return out
}

// stageFooters brings what says which row groups a store can copy. Where it copies none the task's files are there already.
func (e *Executor) stageFooters(req *executorv1.Analyze, dir string) (*planv1.Task, write.Left, error) {
	task := req.GetSplice()
	if !mayCopy(task) {
		return task, nil, nil
	}
	sources, left, err := e.cache.StageFooters(e.life, access{e: e, analysis: req.GetRequestId()}, task.GetSources(), dir)
	if err != nil {
		return nil, nil, err
	}
	task = proto.CloneOf(task)
	task.Sources = sources
	return task, left, nil
}

func reported(r *write.SpliceReport) *executorv1.SpliceReport {
	out := &executorv1.SpliceReport{Reason: r.Reason, Files: int64(len(r.Files))}
	for n := range r.Files {
		f := &r.Files[n]
		out.Rows += max(f.Rows, 0)
		out.CopiedRows += f.Copied
		out.CopiedBytes += f.CopiedBytes
		out.StoreBytes += f.StoreBytes
		if f.Reason == "" {
			out.CopiedFiles++
			continue
		}
		if len(out.NotCopied) < maxNotCopied {
			out.NotCopied = append(out.NotCopied, &executorv1.SplicedFile{
				Name: f.Name, RowGroups: int64(f.Groups), CopiedRowGroups: int64(f.CopiedGroups), Reason: f.Reason,
			})
		}
	}
	return out
}
