package executor

import (
	"path/filepath"

	"github.com/google/uuid"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/write"
)

// maxNotCopied is how many files a report names.
const maxNotCopied = 20

// spliceReport says which row groups of a planned write's input would be copied.
func (e *Executor) spliceReport(req *executorv1.Analyze) *executorv1.AnalyzeResult {
	out := &executorv1.AnalyzeResult{RequestId: req.GetRequestId()}
	task := req.GetSplice()
	dir := filepath.Join(e.scratch.Path, "explain-"+uuid.NewString()) // nothing is written to it
	inst, err := e.pool.Open(e.life, duckdb.Access{ReadFiles: duckdb.FilesOf(task.GetSources()), WriteDirs: []string{dir}, Threads: 1, KeepOrder: true})
	if err != nil {
		out.Error = duckdb.PlanError(err)
		return out
	}
	defer e.pool.Discard(inst)
	err = inst.BindSources(e.life, task.GetSources())
	if err == nil {
		var r *write.SpliceReport
		if r, err = write.Splice(e.life, inst, task); err == nil {
			out.Splice = reported(r)
		}
	}
	out.Error = inst.PlanError(err)
	return out
}

func reported(r *write.SpliceReport) *executorv1.SpliceReport {
	out := &executorv1.SpliceReport{Reason: r.Reason, Files: int64(len(r.Files))}
	for n := range r.Files {
		f := &r.Files[n]
		out.Rows += max(f.Rows, 0)
		out.CopiedRows += f.Copied
		out.CopiedBytes += f.CopiedBytes
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
