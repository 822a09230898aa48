package scheduler

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// explainSplice adds to the text of an EXPLAIN which files of the input are copied instead of written anew. Only an executor can tell, and nobody else asks.
func (s *Server) explainSplice(j *job, p *planned, a *analysis) error {
	task := spliceTask(p.plan, a)
	if task == nil || !j.onlyExplains() {
		return nil
	}
	task.GetWrite().Prefix = p.spec.GetDataLocation() + "/explain" // nothing is written to it
	s.setCopies(j.ctx, p.target, task)
	res, err := s.analyzeOnce(j.ctx, &executorv1.Analyze{RequestId: uuid.NewString(), Splice: task})
	if err != nil {
		return err
	}
	p.text += spliceText(res.GetSplice())
	return nil
}

// onlyExplains says whether the statement is an EXPLAIN that runs nothing.
func (j *job) onlyExplains() bool {
	if j.rec.Kind != kindExplain {
		return false
	}
	st, err := sql.Parse(j.rec.SQL)
	if err != nil {
		return false
	}
	e, ok := st.(*sql.Explain)
	return ok && !e.Analyze
}

// spliceTask is the writing stage as one task over the whole input; nil: what it writes comes from other stages.
func spliceTask(p *plan.Plan, a *analysis) *planv1.Task {
	if len(p.Stages) != 1 || p.Stages[0].Tasks() == 0 {
		return nil
	}
	task := p.Stages[0].Task(0)
	if task.GetWrite() == nil || task.GetWrite().GetRewrite() != nil || len(a.sources) == 0 {
		return nil
	}
	task.Sources = a.sources
	return task
}

func spliceText(r *executorv1.SpliceReport) string {
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		b.WriteString(strings.Repeat("  ", depth) + fmt.Sprintf(format, args...) + "\n")
	}
	switch {
	case r == nil:
		return ""
	case r.GetReason() != "":
		line(0, "Copied row groups: none, because %s", r.GetReason())
		return b.String()
	}
	by := ""
	switch {
	case r.GetNoCopies() != "":
		by = ", by the executor, because " + r.GetNoCopies()
	case r.GetStoreBytes() > 0:
		by = fmt.Sprintf(", %s of them by the store", plan.ByteText(r.GetStoreBytes()))
	}
	line(0, "Copied row groups: %d of %d rows (%s%s), %d of %d files wholly", r.GetCopiedRows(), r.GetRows(), plan.ByteText(r.GetCopiedBytes()), by, r.GetCopiedFiles(), r.GetFiles())
	for _, f := range r.GetNotCopied() {
		of := ""
		if f.GetCopiedRowGroups() > 0 {
			of = fmt.Sprintf("%d of %d row groups are not: ", f.GetRowGroups()-f.GetCopiedRowGroups(), f.GetRowGroups())
		}
		line(1, "%s: %s%s", f.GetName(), of, f.GetReason())
	}
	if more := r.GetFiles() - r.GetCopiedFiles() - int64(len(r.GetNotCopied())); more > 0 {
		line(1, "… %d more files", more)
	}
	return b.String()
}
