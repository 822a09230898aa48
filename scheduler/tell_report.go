package scheduler

import (
	"strings"
	"time"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/commitreport"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/outbox"
)

// landing is what the attempt that has landed did to its table; nil where the format does not say, or where it was another attempt than the open one.
func landing(m *coordinator.Machine, open *coordinator.Attempt) *journal.Landing {
	if open == nil || m.Result() == nil || open.Version != m.Result().Version {
		return nil
	}
	l, err := commitreport.Snapshot(open.Updates)
	if err != nil {
		return nil // the request has landed, so that it was understood; there is nothing to say of it
	}
	return l
}

// noteLanding puts into a job's terminal record, and into the messages about it, what the attempt that has landed did (l, see landing). m is the machine as it will be.
func (w *writeState) noteLanding(tx *journal.Tx, rec *journal.Job, m *coordinator.Machine, open *coordinator.Attempt, l *journal.Landing) error {
	rec.Landing = l
	w.s.landed(rec, m)
	if err := w.s.auditLanding(tx, w, rec, m); err != nil {
		return err
	}
	return w.s.tellReport(tx, w, m, open, rec.Landing)
}

// tellReport puts the report of a commit into the transaction that records its landing. Of several jobs in one snapshot the first tells of it.
func (s *Server) tellReport(tx *journal.Tx, w *writeState, m *coordinator.Machine, open *coordinator.Attempt, l *journal.Landing) error {
	if s.told.reports == nil || l == nil || len(open.Markers) > 0 && open.Markers[0] != w.job.rec.Marker {
		return nil
	}
	took := time.Duration(0)
	if !w.commitStart.IsZero() {
		took = time.Since(w.commitStart)
	}
	body, err := commitreport.Report(w.target.String(), l, m.Seals(), took, map[string]string{"engine-name": "signet", "engine-version": s.opts.Version})
	if err != nil {
		return err
	}
	n := len(w.target.ident) - 1
	// The parts of a namespace are divided by the unit separator in the address of a REST catalog's endpoint.
	path := map[string]string{"namespace": strings.Join(w.target.ident[:n], "\x1f"), "table": w.target.ident[n]}
	return s.told.reports.Put(tx, w.job.id, outbox.Message{Body: body, Path: path})
}
