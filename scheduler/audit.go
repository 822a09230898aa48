package scheduler

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/outbox"
	"github.com/signet-io/signet/scheduler/sql"
)

// toAudit names the receiver of audit events in the journal.
const toAudit = "audit"

// Events of the audit log.
const (
	auditCommit  = "commit"  // a job's rows are in a table
	auditCreate  = "create"  // a table or schema was made without rows
	auditAlter   = "alter"   // a table's metadata was changed
	auditDrop    = "drop"    // a table was taken out of its catalog
	auditSweep   = "sweep"   // files were removed
	auditLeft    = "left"    // files may be left that nobody can reach
	auditRefused = "refused" // somebody may not, or is not known
	auditJoined  = "joined"  // an executor opened its session
)

// Reasons of refusals.
const (
	refusedPermission     = "permission"
	refusedAuthentication = "authentication"
)

// auditEvent is one line of the audit log. ID is the same wherever and however often an event is told.
type auditEvent struct {
	ID        string    `json:"id"`
	Time      time.Time `json:"time"`
	Cluster   string    `json:"cluster"`
	Event     string    `json:"event"`
	Job       string    `json:"job,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Kind      string    `json:"kind,omitempty"`    // of the job
	Catalog   string    `json:"catalog,omitempty"` //
	Table     string    `json:"table,omitempty"`   // by its full name; of a schema: schema
	Schema    string    `json:"schema,omitempty"`
	Procedure string    `json:"procedure,omitempty"` // of CALL
	Unknown   bool      `json:"unknown,omitempty"`   // it may have been somebody else: the statement was interrupted
	Statement string    `json:"statement_hash,omitempty"`
	SQL       string    `json:"sql,omitempty"`

	TableUUID  string `json:"table_uuid,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Version    string `json:"version,omitempty"` // of the table that the commit made: an Iceberg snapshot's id
	Operation  string `json:"operation,omitempty"`
	Marker     string `json:"marker,omitempty"`
	Rows       *int64 `json:"rows,omitempty"` // written by the job's tasks
	Files      *int64 `json:"files,omitempty"`
	Bytes      *int64 `json:"bytes,omitempty"`
	Already    bool   `json:"already_committed,omitempty"`
	Attempt    string `json:"attempt,omitempty"`
	Prefix     string `json:"prefix,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	Peer       string `json:"peer,omitempty"` // address
	Method     string `json:"method,omitempty"`
	Shown      string `json:"certificate,omitempty"` // common name of the certificate that was shown
	Token      string `json:"token,omitempty"`       // name of the join token that was shown
	Suppressed int    `json:"suppressed,omitempty"`  // refusals before this one that were too many to tell
}

// auditBody is nil if it cannot be written, which no event is worth a job for.
func (s *Server) auditBody(e *auditEvent) []byte {
	e.Time, e.Cluster = time.Now().UTC(), s.cfg.Cluster
	if e.ID == "" {
		e.ID = uuid.NewString()
	}
	e.Message = s.views.redact.Text(clip(e.Message, maxLogged))
	b, err := json.Marshal(e)
	if err != nil {
		s.log.Error("cannot make an audit event", "event", e.Event, "job", e.Job, "error", err)
		return nil
	}
	return b
}

// auditIn puts an event into the transaction of what it tells of.
func (s *Server) auditIn(tx *journal.Tx, e *auditEvent) error {
	if s.told.audit == nil {
		return nil
	}
	if b := s.auditBody(e); b != nil {
		return s.told.audit.Put(tx, e.Job, outbox.Message{Body: b})
	}
	return nil
}

// ofJob fills in what is known of every job.
func (s *Server) ofJob(rec *journal.Job, e *auditEvent) *auditEvent {
	e.Job, e.Principal, e.Kind, e.Statement = rec.ID, rec.Principal, rec.Kind, rec.StatementHash
	if s.cfg.Audit.IncludeSQL {
		e.SQL = s.views.redact.Text(clip(rec.SQL, maxLogged))
	}
	return e
}

// auditLanding tells of a write's commit in the transaction that ends its job. m is the machine as it will be.
func (s *Server) auditLanding(tx *journal.Tx, w *writeState, rec *journal.Job, m *coordinator.Machine) error {
	res, t := m.Result(), m.Totals()
	if s.told.audit == nil || res == nil || res.Skipped || mutant.On("scheduler/commits-untold") {
		return nil
	}
	e := s.ofJob(rec, &auditEvent{
		ID: rec.ID + "/" + auditCommit, Event: auditCommit, Catalog: w.target.entry.name, Table: w.target.String(), TableUUID: w.spec.GetTableUuid(), Branch: w.spec.GetBranch(),
		Version: res.Version, Marker: rec.Marker, Already: res.Already, Rows: &t.Rows, Files: &t.Files, Bytes: &t.Bytes,
	})
	if rec.Landing != nil {
		e.Operation = rec.Landing.Operation
	}
	return s.auditIn(tx, e)
}

// auditEnd tells, in the transaction that ends a job, what it did besides a commit of rows, or that it was refused.
func (s *Server) auditEnd(tx *journal.Tx, rec *journal.Job) error {
	did := rec.Did
	rec.Did = nil
	if rec.Error != nil && rec.Error.Code == codeDenied {
		e := s.ofJob(rec, &auditEvent{ID: rec.ID + "/" + auditRefused, Event: auditRefused, Reason: refusedPermission, Message: rec.Error.Message})
		if err := s.auditIn(tx, e); err != nil {
			return err
		}
	}
	for i, d := range did {
		e := s.ofJob(rec, &auditEvent{
			ID: fmt.Sprintf("%s/%s/%d", rec.ID, d.What, i), Event: d.What, Catalog: d.Catalog, Table: d.Table, Schema: d.Schema, Procedure: d.Procedure, Unknown: d.Unknown,
		})
		if d.What == auditSweep {
			e.Files = &d.Files
		}
		if err := s.auditIn(tx, e); err != nil {
			return err
		}
	}
	return nil
}

// did notes what a job has done to a table, to be told with its end.
func (j *job) did(what string, t *target, change ...func(*journal.Did)) {
	d := journal.Did{What: what, Catalog: t.entry.name, Table: t.String(), Procedure: j.calls}
	for _, f := range change {
		f(&d)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rec.Did = append(slices.Clip(j.rec.Did), d)
}

// perhaps says that it may have been another who did it.
func perhaps(d *journal.Did) { d.Unknown = true }

func (j *job) madeSchema(e *catalogEntry, ns []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rec.Did = append(slices.Clip(j.rec.Did), journal.Did{What: auditCreate, Catalog: e.name, Schema: sql.JoinName(append([]string{e.name}, ns...))})
}

// maxNoted bounds the refusals that wait for a file that cannot be written; commits wait in the journal, however many.
const maxNoted = 10_000

// refusalsPerSecond that are told; of what is beyond, only the number.
const refusalsPerSecond = 50

// refusals bounds what callers can have written by being refused.
type refusals struct {
	mu         sync.Mutex
	second     int64
	told       int
	suppressed int
}

// tell says whether a refusal is told at a time, and how many before it were not.
func (r *refusals) tell(now time.Time) (yes bool, suppressed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := now.Unix(); at != r.second {
		r.second, r.told = at, 0
	}
	if r.told++; r.told > refusalsPerSecond {
		r.suppressed++
		return false, 0
	}
	suppressed, r.suppressed = r.suppressed, 0
	return true, suppressed
}

// noteRefused tells of a refusal that is no job's end. A crash may lose it.
func (s *Server) noteRefused(e auditEvent) {
	o := s.told.audit
	if o == nil || o.Stats().Pending > maxNoted {
		return
	}
	yes, suppressed := s.refusals.tell(time.Now())
	if !yes {
		return
	}
	e.Event, e.Suppressed = auditRefused, suppressed
	if b := s.auditBody(&e); b != nil {
		o.Note(outbox.Message{Body: b})
	}
}

// refusedCall is noteRefused for a caller who is not known.
func (s *Server) refusedCall(peer, method, certificate, why string) {
	s.noteRefused(auditEvent{Reason: refusedAuthentication, Peer: peer, Method: method, Shown: clip(certificate, 256), Message: why})
}

// joinedBy tells which token an executor opened its session with. A crash may lose it.
func (s *Server) joinedBy(peer, token string) {
	o := s.told.audit
	if o == nil || o.Stats().Pending > maxNoted {
		return
	}
	if b := s.auditBody(&auditEvent{Event: auditJoined, Peer: peer, Token: token}); b != nil {
		o.Note(outbox.Message{Body: b})
	}
}

// refusedHandshake is noteRefused for a TLS handshake that did not come about.
func (s *Server) refusedHandshake(peer net.Addr, err error) {
	s.noteRefused(auditEvent{Reason: refusedAuthentication, Peer: peer.String(), Method: "TLS handshake", Message: err.Error()})
}

// mayNot tells of a principal that was refused outside of a job, and gives the error back.
func (s *Server) mayNot(who string, err error) error {
	if failed(err, codeDenied) {
		s.noteRefused(auditEvent{Reason: refusedPermission, Principal: who, Message: err.Error()})
	}
	return err
}

// auditSwept tells in its transaction that files were removed.
func (s *Server) auditSwept(tx *journal.Tx, d *journal.Duty, files int64) error {
	if files == 0 {
		return nil
	}
	return s.auditIn(tx, &auditEvent{Event: auditSweep, Job: d.Job, Attempt: d.Attempt, Catalog: d.Catalog, Prefix: d.Prefix, Files: &files})
}
