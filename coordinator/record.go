package coordinator

import (
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Totals are counts over data files.
type Totals struct {
	Files         int64 `json:"files"`
	Rows          int64 `json:"rows"` // of data files
	Bytes         int64 `json:"bytes"`
	ReplacedFiles int64 `json:"replaced_files,omitempty"`
	DeletedRows   int64 `json:"deleted_rows,omitempty"` // of replaced files, and of delete files
	UpdatedRows   int64 `json:"updated_rows,omitempty"`
}

func (t Totals) add(o Totals) Totals {
	return Totals{
		Files: t.Files + o.Files, Rows: t.Rows + o.Rows, Bytes: t.Bytes + o.Bytes,
		ReplacedFiles: t.ReplacedFiles + o.ReplacedFiles, DeletedRows: t.DeletedRows + o.DeletedRows, UpdatedRows: t.UpdatedRows + o.UpdatedRows,
	}
}

func (t Totals) negative() bool {
	return min(t.Files, t.Rows, t.Bytes, t.ReplacedFiles, t.DeletedRows, t.UpdatedRows) < 0
}

// TotalsOf are those of a task manifest's trailer.
func TotalsOf(t *planv1.ManifestTrailer) Totals {
	return Totals{
		Files: t.GetFiles(), Rows: t.GetRows(), Bytes: t.GetBytes(),
		ReplacedFiles: t.GetReplacedFiles(), DeletedRows: t.GetDeletedRows(), UpdatedRows: t.GetUpdatedRows(),
	}
}

// Accepted refers to the task manifest that won its task. The manifest itself lies in the journal under these ids.
type Accepted struct {
	Task    int    `json:"task"`
	Attempt string `json:"attempt"`
	Epoch   uint64 `json:"epoch"`
	Digest  string `json:"digest"`
	Totals  Totals `json:"totals"`
}

// Ended is what stays of an attempt that did not land.
type Ended struct {
	Seq     int    `json:"seq"`
	Version string `json:"version"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// Result is how a committed job ended.
type Result struct {
	Version  string `json:"version"`
	Location string `json:"location,omitempty"`
	Already  bool   `json:"already,omitempty"` // landed by none of this job's own attempts: an earlier run under the same key
	Skipped  bool   `json:"skipped,omitempty"` // there was nothing to commit
	// Unreferenced: none of the job's own attempts landed or still may, so that no file of the job is in the table.
	Unreferenced bool `json:"unreferenced,omitempty"`
}

// Failure is how an aborted job ended.
type Failure struct {
	Cancelled bool   `json:"cancelled"`
	Reason    string `json:"reason"`
}

// Record is the whole durable state of a machine. It shares nothing with it that either would change.
type Record struct {
	JobID     string     `json:"job_id"`
	State     State      `json:"state"`
	Epoch     uint64     `json:"epoch"`
	Tasks     int        `json:"tasks"`
	TableUUID string     `json:"table_uuid,omitempty"`
	Accepted  []Accepted `json:"accepted,omitempty"` // by task
	Seals     int        `json:"seals"`
	Open      *Attempt   `json:"open,omitempty"` // Sealed, Resolving
	Ended     []Ended    `json:"ended,omitempty"`
	// CancelPending: a cancel arrived while an attempt was sealed.
	CancelPending bool     `json:"cancel_pending,omitempty"`
	CancelReason  string   `json:"cancel_reason,omitempty"`
	Result        *Result  `json:"result,omitempty"`  // Committed
	Failure       *Failure `json:"failure,omitempty"` // Aborted
}

// Record returns the durable state.
func (m *Machine) Record() Record {
	r := m.record()
	r.Accepted = m.accepts()
	return r
}

// record is without what was accepted.
func (m *Machine) record() Record {
	r := m.r
	r.Accepted, r.Ended = nil, slices.Clone(m.r.Ended)
	return r
}

func (m *Machine) accepts() []Accepted {
	var out []Accepted
	for _, a := range m.accepted {
		if a != nil {
			out = append(out, *a)
		}
	}
	return out
}

// Restore rebuilds a machine from its last persisted record under a new epoch. Its effects are those of a Restart event: what was
// Committing is Ready again, what was Sealed is Resolving, everything else is kept.
func Restore(r Record, epoch uint64) (*Machine, Effects, error) {
	if err := r.validate(); err != nil {
		return nil, Effects{}, err
	}
	m := &Machine{r: r, accepted: make([]*Accepted, r.Tasks), paths: map[pathHash]string{}}
	for i := range r.Accepted {
		a := r.Accepted[i]
		m.accepted[a.Task] = &a
		m.missing--
	}
	m.missing += r.Tasks
	m.r.Accepted = nil
	m.r.Ended = slices.Clone(r.Ended)
	eff, err := m.Step(Restart{Epoch: epoch})
	if err != nil {
		return nil, Effects{}, err
	}
	return m, eff, nil
}

// maxTasks keeps a corrupt record from allocating without bound.
const maxTasks = 1 << 24

func (r *Record) validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w of job %q: %s", ErrCorrupt, r.JobID, fmt.Sprintf(format, a...))
	}
	if r.State < 0 || r.State >= stateCount {
		return bad("state %d", int(r.State))
	}
	if r.Tasks < 0 || r.Tasks > maxTasks {
		return bad("%d tasks", r.Tasks)
	}
	seen := map[int]bool{}
	for _, a := range r.Accepted {
		if a.Task < 0 || a.Task >= r.Tasks || seen[a.Task] {
			return bad("accepted task %d of %d", a.Task, r.Tasks)
		}
		seen[a.Task] = true
	}
	all := len(r.Accepted) == r.Tasks
	sealed := r.State == Sealed || r.State == Resolving
	switch {
	case sealed != (r.Open != nil):
		return bad("%s with open attempt: %t", r.State, r.Open != nil)
	case r.Open != nil && r.Open.Seq != r.Seals:
		return bad("attempt %d open after %d seals", r.Open.Seq, r.Seals)
	case (r.State == Committed) != (r.Result != nil):
		return bad("%s with result: %t", r.State, r.Result != nil)
	case (r.State == Aborted) != (r.Failure != nil):
		return bad("%s with failure: %t", r.State, r.Failure != nil)
	case (r.State == Ready || r.State == Committing || sealed) && !all:
		return bad("%s with %d of %d tasks accepted", r.State, len(r.Accepted), r.Tasks)
	case r.State == Writing && all:
		return bad("Writing with every task accepted")
	}
	return nil
}
