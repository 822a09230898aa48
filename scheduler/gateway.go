package scheduler

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/bounded"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/scheduler/graph"
)

// gateway serves executor.v1.
type gateway struct {
	executorv1.UnimplementedExecutorGatewayServer
	s *Server
}

// attempt is an open attempt: journalled, and not yet won, lost or failed for good.
type attempt struct {
	ref  *executorv1.AttemptRef
	job  *job
	task *planv1.Task

	names names // of the files that it has asked to write to an object store
}

// Session implements executor.v1.
func (g *gateway) Session(st grpc.BidiStreamingServer[executorv1.SessionRequest, executorv1.SessionResponse]) error {
	return g.s.pool.Session(st)
}

// ReportManifest implements executor.v1: the answer comes after the journal write (S71).
func (g *gateway) ReportManifest(st grpc.ClientStreamingServer[executorv1.ReportManifestRequest, executorv1.ReportManifestResponse]) error {
	r := manifest.NewReader(manifest.Limits{})
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := r.Add(m.Chunk); err != nil {
			return status.Errorf(codes.InvalidArgument, "task manifest: %v", err)
		}
	}
	if !r.Done() {
		return status.Error(codes.InvalidArgument, "task manifest: the stream ended before its trailer")
	}
	if err := fault.Hit("scheduler.manifest.received"); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	accepted, reason, err := g.s.acceptManifest(st.Context(), r)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	if err := fault.Hit("scheduler.manifest.before-ack"); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	if err := st.SendAndClose(&executorv1.ReportManifestResponse{Accepted: accepted, Reason: reason}); err != nil {
		return err
	}
	g.s.pool.Ended(r.Header().AttemptId)
	if !accepted {
		g.s.dutyConfirmed(r.Header().AttemptId) // all its files were there when it reported them
	}
	return nil
}

// PushOutput implements executor.v1.
func (g *gateway) PushOutput(st grpc.ClientStreamingServer[executorv1.PushOutputRequest, executorv1.PushOutputResponse]) error {
	first, err := st.Recv()
	if err != nil {
		return err
	}
	if first.Attempt == nil {
		return status.Error(codes.InvalidArgument, "the first message of an output names its attempt")
	}
	a := g.s.attempt(first.Attempt.AttemptId)
	if a == nil || a.job.output == nil {
		return st.SendAndClose(&executorv1.PushOutputResponse{Reason: "the attempt is not open here"})
	}
	sp, err := a.job.output.begin(first.Attempt.AttemptId)
	if err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	rows, err := spoolOutput(sp, first, st)
	if err != nil {
		sp.drop()
		return err
	}
	if !sp.complete() {
		sp.drop()
		return st.SendAndClose(&executorv1.PushOutputResponse{Reason: "another attempt's output is there already"})
	}
	a.job.taskRows(first.Attempt, rows, sp.size)
	return st.SendAndClose(&executorv1.PushOutputResponse{Accepted: true})
}

func spoolOutput(sp *spool, m *executorv1.PushOutputRequest, st grpc.ClientStreamingServer[executorv1.PushOutputRequest, executorv1.PushOutputResponse]) (int64, error) {
	for {
		if _, err := sp.Write(m.Data); err != nil {
			return 0, status.Errorf(codes.ResourceExhausted, "spool: %v", err)
		}
		if m.Last {
			return m.Rows, nil
		}
		var err error
		if m, err = st.Recv(); err != nil {
			return 0, status.Error(codes.InvalidArgument, "the output ended before its last chunk")
		}
	}
}

func (s *Server) attempt(id string) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts[id]
}

func (s *Server) openAttempt(a *attempt) {
	a.job.view.launched(a.task)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[a.ref.AttemptId] = a
}

func (s *Server) closeAttempt(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.attempts, id)
}

// forgetAttempts closes what is still open of a job that has ended, and tells the executors.
func (s *Server) forgetAttempts(job string) {
	s.pool.DropQueued(job)
	s.mu.Lock()
	var open []*attempt
	for id, a := range s.attempts {
		if a.job.id == job {
			open = append(open, a)
			delete(s.attempts, id)
		}
	}
	s.mu.Unlock()
	for _, a := range open {
		s.pool.Cancel(a.ref, "the job has ended")
	}
}

// Adopt implements dispatch.Handler. An attempt that won, and whose report was not acknowledged, is adopted too, also when its
// job has ended: an executor removes the files of what is not adopted.
func (s *Server) Adopt(ref *executorv1.AttemptRef, executor string) bool {
	if a := s.attempt(ref.AttemptId); a != nil && a.ref.JobId == ref.JobId && a.ref.Task == ref.Task {
		a.job.send(attemptAdopted{ref.AttemptId, executor})
		return true
	}
	won, _, err := s.wonBefore(&planv1.ManifestHeader{JobId: ref.JobId, Stage: ref.Stage, Task: ref.Task, AttemptId: ref.AttemptId})
	if err != nil {
		s.log.Error("cannot tell whether an attempt was accepted; it is kept", "attempt", ref.AttemptId, "error", err)
		return true
	}
	return won
}

// Assigned implements dispatch.Handler: the graph hears who has the attempt, so that loss, drain and second attempts know it.
func (s *Server) Assigned(ref *executorv1.AttemptRef, executor string) {
	if a := s.attempt(ref.AttemptId); a != nil {
		a.job.held(ref.AttemptId, executor)
		a.job.send(graph.Launched{Attempt: ref.AttemptId, Executor: executor})
	}
}

// Unseen implements dispatch.Handler.
func (s *Server) Unseen(executor string, refs []*executorv1.AttemptRef) {
	for _, ref := range refs {
		if a := s.attempt(ref.AttemptId); a != nil {
			a.job.send(attemptLost{ref.AttemptId, executor, true})
		}
	}
}

// TaskEnded implements dispatch.Handler.
func (s *Server) TaskEnded(st *executorv1.TaskStatus, executor string) error {
	st.Error = bounded.Error(st.Error)
	a := s.attempt(st.Attempt.AttemptId)
	if a != nil && (a.ref.Epoch != st.Attempt.Epoch || a.ref.JobId != st.Attempt.JobId || a.ref.Stage != st.Attempt.Stage || a.ref.Task != st.Attempt.Task) {
		return fmt.Errorf("it is of another attempt than the one with this id: job %s, task %d/%d, epoch %d", st.Attempt.JobId, st.Attempt.Stage, st.Attempt.Task, st.Attempt.Epoch)
	}
	s.observeHolder(a, executor)
	if a == nil || a.task.GetWrite() != nil {
		s.dutyConfirmed(st.Attempt.AttemptId)
	}
	if a == nil { // late, or again: reports repeat until they are acknowledged (S13)
		s.outputAgain(st, executor)
		return nil
	}
	a.job.held(st.Attempt.AttemptId, executor)
	if err := implausible(st, a.task); err != nil {
		s.log.Warn("status refused", "job", a.job.id, "attempt", st.Attempt.AttemptId, "executor", executor, "error", err)
		st.Error = &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: err.Error()}
	}
	if st.Error == nil {
		if a.task.GetWrite() != nil {
			return fmt.Errorf("attempt %s of a write task ended well without a manifest", st.Attempt.AttemptId)
		}
		if a.task.GetExchange() != nil && st.Output == nil {
			return fmt.Errorf("attempt %s ended well and does not say what it has left", st.Attempt.AttemptId)
		}
		a.job.send(taskDone{st.Attempt.AttemptId, st.Rows, st.Bytes, executor, st.Output, st.Files})
		return nil
	}
	a.job.send(taskFailed{st.Attempt.AttemptId, st.Error, executor})
	return nil
}

// implausible is what no working executor reports.
func implausible(st *executorv1.TaskStatus, t *planv1.Task) error {
	if st.Rows < 0 || st.Bytes < 0 || st.Files < 0 {
		return fmt.Errorf("its executor reports %d rows and %d bytes", st.Rows, st.Bytes)
	}
	seen := map[int32]bool{}
	for _, p := range st.GetOutput().GetPartitions() {
		if n := max(t.GetExchange().GetPartitions(), 1); p.GetPartition() < 0 || p.GetPartition() >= n || seen[p.GetPartition()] || p.GetRows() < 0 || p.GetBytes() < 0 {
			return fmt.Errorf("its executor reports partition %d, with %d rows and %d bytes, of %d partitions", p.GetPartition(), p.GetRows(), p.GetBytes(), n)
		}
		seen[p.GetPartition()] = true
	}
	return nil
}

// outputAgain lets go of the output of a report that has no open attempt, unless it is the one that won: its report may come twice.
func (s *Server) outputAgain(st *executorv1.TaskStatus, executor string) {
	if st.Output == nil {
		return
	}
	id := st.Attempt.AttemptId
	switch j := s.job(st.Attempt.JobId); {
	case j != nil && j.willFree():
		j.send(doneAgain{id, executor}) // behind the first one; only the graph knows who has won
	case j == nil || !j.keeps(id):
		s.pool.Free(executor, st.Attempt.JobId, []string{id})
	}
}

// ExecutorLost implements dispatch.Handler.
func (s *Server) ExecutorLost(executor string, lost []*executorv1.AttemptRef) {
	// First what tells of everything at once: an attempt that was lost must not run again over inputs of which it is not known yet that they went, too.
	for _, j := range s.storing() {
		j.send(graph.ExecutorLost{Executor: executor})
	}
	for _, ref := range lost {
		if a := s.attempt(ref.AttemptId); a != nil {
			a.job.send(attemptLost{ref.AttemptId, executor, false})
		}
	}
	if err := s.roster.left(executor); err != nil {
		s.log.Warn("the list of executors cannot be written; a restart will wait longer than it has to", "error", err)
	}
}

// storing are the open jobs whose tasks keep rows on executors.
func (s *Server) storing() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*job
	for _, j := range s.jobs {
		if j.stored.Load() && !j.over() {
			out = append(out, j)
		}
	}
	return out
}

// willFree notes that executors keep something of the job, also where this incarnation of it would keep nothing. False: it has ended, and nobody
// frees that any more.
func (j *job) willFree() bool {
	j.stored.Store(true) // first: the end of the job looks at it when it is over
	return !j.over()
}

// over tells whether the job's goroutine has ended.
func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// Keep implements dispatch.Handler: outputs of open jobs stay until their graph has decided, results until their time is over.
func (s *Server) Keep(ref *executorv1.AttemptRef) bool {
	j := s.job(ref.JobId)
	return j != nil && (!j.over() || j.keeps(ref.AttemptId))
}

// Joined implements dispatch.Handler: jobs hear what of theirs an executor still has.
func (s *Server) Joined(executor string, adopted, outputs []*executorv1.AttemptRef) {
	byJob := map[*job]*graph.ExecutorJoined{}
	of := func(j *job) *graph.ExecutorJoined {
		if byJob[j] == nil {
			byJob[j] = &graph.ExecutorJoined{Executor: executor}
		}
		return byJob[j]
	}
	for _, j := range s.storing() {
		of(j)
	}
	for _, ref := range adopted {
		if j := s.job(ref.JobId); j != nil && !j.over() {
			of(j).Attempts = append(of(j).Attempts, ref.AttemptId)
		}
	}
	for _, ref := range outputs {
		if j := s.job(ref.JobId); j != nil && j.willFree() {
			of(j).Outputs = append(of(j).Outputs, ref.AttemptId)
		} else if j == nil || !j.keeps(ref.AttemptId) { // it ended just now
			s.pool.Free(executor, ref.JobId, nil)
		}
	}
	for j, ev := range byJob {
		j.send(*ev)
	}
	if info, ok := s.pool.Executor(executor); ok {
		if err := s.roster.joined(executor, info.Host, info.PID); err != nil {
			s.log.Warn("the list of executors cannot be written; a restart will wait longer than it has to", "error", err)
		}
	}
}

// Progress implements dispatch.Handler.
func (s *Server) Progress(p *executorv1.TaskProgress) {
	if a := s.attempt(p.AttemptId); a != nil {
		a.job.update(func() { a.job.running[p.AttemptId] = taskCount{p.Rows, p.Bytes} })
	}
}

// The events of a job's loop.
type (
	attemptAdopted struct{ attempt, executor string }
	attemptLost    struct {
		attempt, executor string
		unseen            bool // the executor lives, and does not know it
	}
	taskDone struct {
		attempt     string
		rows, bytes int64
		executor    string
		output      *planv1.ExchangeOutput // of an exchange task
		files       int64                  // of a check task: that it would have written
	}
	doneAgain struct { // a report that may have been taken before
		attempt, executor string
	}
	taskFailed struct {
		attempt  string
		err      *planv1.Error
		executor string // "" where it is the report that was refused
	}
)

func (ev attemptLost) reason() string {
	if ev.unseen {
		return "it was sent to executor " + ev.executor + ", whose session broke before it had it"
	}
	return "executor " + ev.executor + " was lost"
}

// send queues an event for the job's loop. Events of a job that has ended go nowhere.
func (j *job) send(ev any) {
	select {
	case <-j.done:
	default:
		j.events.put(ev)
	}
}

func (j *job) taskRows(ref *executorv1.AttemptRef, rows, bytes int64) {
	j.update(func() { j.running[ref.AttemptId] = taskCount{rows, bytes} })
}
