package sinktest

import (
	"context"
	"errors"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// jobTable is a table with the jobs that it holds.
type jobTable struct {
	spec *planv1.WriteSpec
	jobs []*job
}

func (b *bench) table() *jobTable { return &jobTable{spec: b.create()} }

// crashed expects the answer of a process that was killed.
func (b *bench) crashed(r *sinkv1.CommitResponse, err error) {
	b.that(err != nil, "the process was killed within Commit, which still answers %s: it has children that go on without it", short(r.GetOutcome()))
	b.restart()
}

// crashStage kills the plugin within Stage, and after it.
func crashStage(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 3, 2)
	messages := b.stream(spec, j)
	ctx, cancel := context.WithCancel(b.call())
	s, err := b.sink.Stage(ctx)
	b.ok(err, "Stage")
	for _, m := range messages[:len(messages)/2] {
		b.ok(s.Send(m), "Stage")
	}
	b.run.kill()
	_, err = s.CloseAndRecv()
	cancel()
	b.that(err != nil, "the process was killed within Stage, which still answers")
	b.restart()
	b.stage(spec, j)
	b.restart()
	u := b.stage(spec, j)
	b.restart()
	b.outcome(b.commit(spec, u), committed, "a commit of what an earlier process staged")
	b.holds(j)
}

// crashEarly kills the plugin at its first call to the host within Commit.
func crashEarly(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 2, 2)
	u := b.stage(spec, j)
	b.host.set(func(h *Host) { h.onCall = b.killOnce() })
	r, err := b.sink.Commit(b.call(), b.request(spec, u))
	b.crashed(r, err)
	b.holds()
	b.outcome(b.commit(spec, u), committed, "the same units after a crash before the commit point")
	b.holds(j)
}

var errKilled = errors.New("the plugin was killed")

// killOnce kills the process at the first call.
func (b *bench) killOnce() func(context.Context, string) error {
	killed := false
	return func(context.Context, string) error {
		if killed {
			return nil
		}
		killed = true
		b.run.kill()
		<-b.run.process.Exited()
		return errKilled
	}
}

// crashAtPoint kills the plugin when its request has arrived and is not let through.
func crashAtPoint(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 2, 2)
	u := b.stage(spec, j)
	kill := b.killOnce()
	b.host.set(func(h *Host) { h.refuse = func(int) error { return kill(b.ctx, "") } })
	r, err := b.sink.Commit(b.call(), b.request(spec, u))
	b.crashed(r, err)
	b.holds()
	b.that(!b.lookup(j.marker()).GetFound(), "Lookup finds a job whose commit never landed")
	b.outcome(b.commit(spec, u), committed, "the same units after a crash at the commit point that did not land")
	b.that(b.lookup(j.marker()).GetFound(), "Lookup does not find a job that has committed")
	b.holds(j)
}

// crashAfter kills the plugin when its commit has landed and it has not heard so.
func crashAfter(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 2, 2)
	u := b.stage(spec, j)
	kill := b.killOnce()
	b.host.set(func(h *Host) { h.after = func(int) error { return kill(b.ctx, "") } })
	r, err := b.sink.Commit(b.call(), b.request(spec, u))
	b.crashed(r, err)
	b.that(b.lookup(j.marker()).GetFound(), "after a crash Lookup does not find a job whose commit landed")
	b.outcome(b.commit(spec, u), already, "the same units after a crash when the commit had landed")
	b.that(len(b.host.Commits()) == 1, "a crash must not make a second commit; %d landed", len(b.host.Commits()))
	b.holds(j)
}

// crashForgets: nothing that matters lives in the process.
func crashForgets(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 1, 2)
	u := b.stage(spec, j)
	first := b.commit(spec, u)
	b.outcome(first, committed, "the first commit")
	b.restart()
	again := b.prepare()
	b.that(again.GetTableUuid() == spec.GetTableUuid(), "after a restart the table has another UUID")
	found := b.lookup(j.marker())
	b.that(found.GetFound() && found.GetVersion() == first.GetVersion(), "after a restart Lookup must find the job at version %q; it answers found=%v at %q",
		first.GetVersion(), found.GetFound(), found.GetVersion())
	b.outcome(b.commit(spec, u), already, "the same units after a restart")
	b.holds(j)
	other := newJob(again, "job2", 1, 1)
	b.land(again, other)
	b.holds(j, other)
}

// twoProcesses: while one plugin is upgraded, two of them work on a table.
func twoProcesses(b *bench) {
	spec := b.create()
	one := newJob(spec, "one", 1, 1)
	b.land(spec, one)
	old := b.sink
	if err := b.start(); err != nil {
		b.fail("a second process does not start beside the first: %v", err)
	}
	fresh := b.sink
	b.holds(one)
	two := newJob(spec, "two", 1, 2)
	r := b.land(spec, two)
	b.sink = old
	b.holds(one, two)
	b.that(b.prepare().GetBaseVersion() == r.GetVersion(), "PrepareWrite must see version %q, which another process has committed; it says %q", r.GetVersion(), b.prepare().GetBaseVersion())
	b.that(b.lookup(two.marker()).GetFound(), "Lookup does not find what another process has committed")
	three := newJob(spec, "three", 1, 3)
	b.land(spec, three)
	b.sink = fresh
	b.holds(one, two, three)
}
