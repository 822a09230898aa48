package scheduler

import (
	"slices"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/commitreport"
	"github.com/signet-io/signet/scheduler/journal"
)

// manifestsOperation is the rewrite that puts the files of a table into other Iceberg manifests.
const manifestsOperation = "manifests"

// manifestsColumns are those of the answer, as Iceberg's procedure has them.
var manifestsColumns = []string{"rewritten_manifests_count:int", "added_manifests_count:int"}

// rewriteManifests has the sink put the table's files into manifests of the target size, those of one partition together. No executor has a part in it.
func (s *Server) rewriteManifests(j *job, t *target) error {
	plugin, err := s.steadyPlugin(j.ctx, t)
	if err != nil {
		return err
	}
	if !slices.Contains(plugin.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_REWRITE) {
		return fail(codeUser, "", "rewrite_manifests is not supported in catalog %s: its sink %s does not replace files", t.entry.name, t.entry.sink)
	}
	j.update(func() { j.rec.Kind = kindRewrite })
	p := &planned{target: t, mode: sinkv1.WriteMode_WRITE_MODE_REWRITE, operation: manifestsOperation}
	if err := s.prepareInsert(j.ctx, j, p); err != nil {
		return err
	}
	if p.spec.GetBaseVersion() == "" {
		return s.answer(j, manifestsColumns, []row{{int64(0), int64(0)}})
	}
	p.explainTaskless("rewrite_manifests")
	return s.runTaskless(j, p)
}

// rewritesManifests tells a write that only puts files into other manifests.
func (w *writeState) rewritesManifests() bool {
	return w.mode == sinkv1.WriteMode_WRITE_MODE_REWRITE && w.taskless()
}

func manifestsResult(m *coordinator.Machine, l *journal.Landing) ([]byte, error) {
	r := row{nil, nil} // an earlier run's, of which nothing is known
	switch {
	case m.Result().Skipped:
		r = row{int64(0), int64(0)}
	case l != nil:
		replaced, _ := commitreport.Count(l.Summary, "manifests-replaced")
		created, _ := commitreport.Count(l.Summary, "manifests-created")
		r = row{replaced, created}
	}
	return inlineResult(manifestsColumns, []row{r})
}
