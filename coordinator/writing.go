package coordinator

import (
	"encoding/hex"
	"fmt"
	"slices"
)

func begin(s *step, e Begin) error {
	if e.Tasks < 0 || e.Tasks > maxTasks {
		return fmt.Errorf("%w: %d tasks", ErrInvalid, e.Tasks)
	}
	m := s.m
	m.r.Tasks, m.r.TableUUID = e.Tasks, e.TableUUID
	m.accepted, m.missing = make([]*Accepted, e.Tasks), e.Tasks
	s.to(Writing)
	if m.missing == 0 {
		s.to(Ready)
	}
	return nil
}

func accept(s *step, e Accept) error {
	done, err := s.repeated(e)
	if done || err != nil {
		return err
	}
	m := s.m
	if err := m.checkPaths(e); err != nil {
		return err
	}
	m.Index(e.Attempt, e.Paths)
	entry := &Accepted{Task: e.Task, Attempt: e.Attempt, Epoch: e.Epoch, Digest: e.Digest, Totals: e.Totals}
	m.accepted = slices.Clone(m.accepted)
	m.accepted[e.Task] = entry
	m.missing--
	s.entry, s.changed = entry, true
	s.acknowledge(e)
	if m.missing == 0 || m.missing == 1 && mutated("ready-early") {
		s.to(Ready)
	}
	return nil
}

// acceptLate knows that every task has its winner: the winner's repeats are acknowledged, everybody else has lost.
func acceptLate(s *step, e Accept) error {
	if done, err := s.repeated(e); done || err != nil {
		return err
	}
	if r := s.m.r.Result; r != nil { // found in the table before the tasks had finished
		return &AlreadyError{Version: r.Version, Location: r.Location}
	}
	return fmt.Errorf("%w: task %d has no accepted manifest", ErrContradiction, e.Task)
}

// repeated answers a report about a task that has its winner.
func (s *step) repeated(e Accept) (bool, error) {
	m := s.m
	switch {
	case e.Task < 0 || e.Task >= len(m.accepted):
		return false, fmt.Errorf("%w: %d of %d", ErrNoTask, e.Task, len(m.accepted))
	case e.Attempt == "":
		return false, fmt.Errorf("%w: no attempt id", ErrInvalid)
	case e.Epoch > m.r.Epoch: // journalled by a newer scheduler: this one is the zombie
		return false, fmt.Errorf("%w: attempt of epoch %d, this is %d", ErrFenced, e.Epoch, m.r.Epoch)
	case e.Totals.negative():
		return false, fmt.Errorf("%w: negative totals", ErrInvalid)
	}
	if _, err := hex.DecodeString(e.Digest); err != nil || e.Digest == "" {
		return false, fmt.Errorf("%w: digest %q is not hexadecimal", ErrInvalid, e.Digest)
	}
	w := m.accepted[e.Task]
	switch {
	case w == nil || w.Attempt != e.Attempt && mutated("second-manifest"):
		return false, nil
	case w.Attempt != e.Attempt:
		return false, &LostError{Task: e.Task, Attempt: e.Attempt, Winner: w.Attempt}
	case w.Digest != e.Digest:
		return false, fmt.Errorf("%w: attempt %s of task %d", ErrContent, e.Attempt, e.Task)
	}
	s.acknowledge(e)
	return true, nil
}

// checkPaths refuses a path that another attempt brought, and an attempt that stands for another task already: an attempt owns its files.
func (m *Machine) checkPaths(e Accept) error {
	for _, a := range m.accepted {
		if a != nil && a.Attempt == e.Attempt {
			return fmt.Errorf("%w: attempt %s was accepted for task %d", ErrContent, e.Attempt, a.Task)
		}
	}
	if len(e.Paths) > 0 && int64(len(e.Paths)) != e.Totals.Files {
		return fmt.Errorf("%w: %d paths, %d files", ErrInvalid, len(e.Paths), e.Totals.Files)
	}
	own := make(map[string]bool, len(e.Paths))
	for _, p := range e.Paths {
		if own[p] || m.HasPath(e.Attempt, p) {
			return fmt.Errorf("%w: %q", ErrDuplicatePath, p)
		}
		own[p] = true
	}
	return nil
}

func (s *step) acknowledge(e Accept) {
	s.actions = append(s.actions, Action{Kind: ActAcknowledge, Task: e.Task, AttemptID: e.Attempt})
}

func start(s *step, _ Start) error {
	s.to(Committing)
	s.act(ActCallSink)
	return nil
}

func skip(s *step, e Skip) error {
	if t := s.m.Totals(); t.Files != 0 || t.Rows != 0 || t.ReplacedFiles != 0 {
		return fmt.Errorf("%w: %d files with %d rows", ErrNotEmpty, t.Files+t.ReplacedFiles, t.Rows)
	}
	s.m.r.Result = &Result{Version: e.Version, Skipped: true}
	s.to(Committed)
	s.finish()
	return nil
}
