package scheduler

import (
	"fmt"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/valueslist"
)

// constantAnalysis is the analysis of a list of plain constants, as an executor would answer it; nil: the text is something else. One-row appends are
// often of this kind, and asking costs more than everything that their planning does.
func constantAnalysis(text string) *analysis {
	l, ok := valueslist.Parse(text)
	if !ok {
		return nil
	}
	const why = "it reads no table or file"
	return &analysis{result: &executorv1.AnalyzeResult{
		Sql: l.Text, Columns: l.Literals(), NotRowWise: why, PlanText: fmt.Sprintf("VALUES  rows: %d\n", len(l.Rows)),
		Staged: &executorv1.StagedQuery{
			Stages: []*executorv1.QueryStage{{Sql: l.Text, Columns: l.Columns(), Label: "query", Single: true}}, NotStaged: why,
		},
	}}
}
