package scheduler

import (
	"maps"

	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/summary"
)

// summary is what the snapshot's summary says of the job: its user, its statement, and what the user has set. It is the same after a restart.
func (w *writeState) summary() map[string]string {
	w.job.mu.Lock()
	rec := w.job.rec
	w.job.mu.Unlock()
	return summaryOf(&rec)
}

func summaryOf(rec *journal.Job) map[string]string {
	out := map[string]string{}
	if set, err := plan.ParseSettings(rec.Settings); err == nil {
		maps.Copy(out, set.Summary)
	}
	out[summary.User], out[summary.QueryHash] = rec.Principal, queryHash(rec)
	return out
}

// queryHash is the same for the same statement, whoever sends it and with which settings.
func queryHash(rec *journal.Job) string {
	return hashParts("query", rec.SQL, string(rec.Plan))[:32]
}
