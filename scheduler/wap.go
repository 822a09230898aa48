package scheduler

import (
	"fmt"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// wapID is the wap.id under which a statement's writes are staged, where the table asks for it; empty: none. What makes or replaces a table, only writes its
// files anew, or adds files that are there, is never staged.
func (j *job) wapID(p *planned) string {
	if p.adds != nil {
		return ""
	}
	switch p.mode {
	case sinkv1.WriteMode_WRITE_MODE_APPEND, sinkv1.WriteMode_WRITE_MODE_OVERWRITE, sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		return j.settings().WapID
	}
	return ""
}

func unstaged(p *planned) string {
	switch {
	case p.adds != nil:
		return "ADD FILES"
	case p.mode == sinkv1.WriteMode_WRITE_MODE_REPLACE:
		return "CREATE OR REPLACE TABLE"
	}
	return "CREATE TABLE AS"
}

// mayStage checks what the sink makes of the setting: a table that does not ask for staged writes is written to at once, as by other engines.
func (j *job) mayStage(p *planned, staged string) error {
	asked := j.wapID(p)
	switch {
	case j.settings().WapID != "" && (p.adds != nil || p.mode == sinkv1.WriteMode_WRITE_MODE_CREATE || p.mode == sinkv1.WriteMode_WRITE_MODE_REPLACE):
		j.warn(fmt.Sprintf("%s is ignored: %s is never staged, and changes table %s at once", plan.SettingWapID, unstaged(p), p.target))
	case staged != "" && staged != asked:
		return fail(codeInternal, "", "table %s: the sink stages the write as wap.id %q, and %q was asked for", p.target, staged, asked)
	case staged != "" && p.branch != "":
		return fail(codeUser, "write to the branch without the setting, or to the table without a branch", "%s stages a snapshot that no branch has, and the statement writes to branch %s of table %s", plan.SettingWapID, p.branch, p.target)
	case asked != "" && staged == "":
		j.warn(fmt.Sprintf("%s is ignored: table %s does not have the property write.wap.enabled=true, and the rows are visible at once", plan.SettingWapID, p.target))
	}
	return nil
}
