package executor

import (
	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/write"
)

// addFilesReport checks the footers of files that are to be copied into a table.
func (e *Executor) addFilesReport(req *executorv1.Analyze) *executorv1.AnalyzeResult {
	out := &executorv1.AnalyzeResult{RequestId: req.GetRequestId()}
	r, err := write.CheckCopies(e.life, req.GetAddFiles(), req.GetSources()[0].GetFile().GetFiles())
	if err != nil {
		out.Error = duckdb.PlanError(err)
		return out
	}
	out.AddFiles = &executorv1.AddFilesReport{Columns: r.Columns, PathColumns: r.PathColumns, Rows: r.Rows}
	return out
}
