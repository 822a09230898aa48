package sinktest

import (
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func stageTwice(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 2, 2)
	b.stage(spec, j) // as if it was lost in a crash
	u := b.stage(spec, j)
	b.holds()
	b.that(!b.lookup(j.marker()).GetFound(), "Lookup finds a job that was only staged")
	b.outcome(b.commit(spec, u), committed, "a commit of what was staged a second time")
	b.holds(j)
}

// stageTogether stages jobs before any commits: what one of them staged must not get into the way of the others.
func stageTogether(b *bench) {
	spec := b.create()
	var jobs []*job
	var units []*sinkv1.Unit
	for i := range 4 {
		j := newJob(spec, fmt.Sprint("job", i), 1, i+1)
		jobs, units = append(jobs, j), append(units, b.stage(spec, j))
	}
	for i, u := range units {
		b.outcome(b.commit(spec, u), committed, "a commit of a job that was staged beside others")
		b.holds(jobs[:i+1]...)
	}
}

// commitNothing: a job without files succeeds, as often as it is asked for, whether or not it makes a version.
func commitNothing(b *bench) {
	spec := b.create()
	for i, j := range []*job{newJob(spec, "none", 0, 0), newJob(spec, "empty", 2, 0)} {
		u := b.stage(spec, j)
		b.outcome(b.commit(spec, u), committed, "a commit without files")
		again := b.commit(spec, u)
		b.that(again.GetOutcome() == committed || again.GetOutcome() == already, "a commit without files once more must succeed; it is %s: %s", short(again.GetOutcome()), again.GetMessage())
		b.that(len(b.host.Commits()) <= i+1, "a commit without files that is asked for twice must land once at most")
		b.holds()
	}
}

func commitOne(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 1, 1)
	r := b.land(spec, j)
	b.that(len(b.host.Commits()) == 1, "one commit takes one commit point; %d landed", len(b.host.Commits()))
	b.holds(j)
	if markers := b.host.Commits()[0].GetMarkers(); len(markers) > 0 {
		b.that(slices.Equal(markers, []string{j.marker()}), "the commit point names the markers %q in place of %q", markers, j.marker())
	}
	found := b.lookup(j.marker())
	b.that(found.GetFound() && found.GetVersion() == r.GetVersion(), "Lookup must find the job at version %q; it answers found=%v at %q", r.GetVersion(), found.GetFound(), found.GetVersion())
	b.confined()
}

func commitMany(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 10, 1000)
	b.land(spec, j)
	b.holds(j)
}

func commitTwice(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 2, 2)
	u := b.stage(spec, j)
	first := b.commit(spec, u)
	b.outcome(first, committed, "the first commit")
	again := b.commit(spec, u)
	b.outcome(again, already, "the same units once more")
	b.that(again.GetVersion() == first.GetVersion(), "the same units once more must name version %q; the answer is %q", first.GetVersion(), again.GetVersion())
	b.that(len(b.host.Commits()) == 1, "the same units twice must land once; %d commit points landed", len(b.host.Commits()))
	b.holds(j)
	other := newJob(spec, "job2", 1, 3)
	b.land(spec, other)
	b.holds(j, other)
	third := b.commit(spec, u)
	b.outcome(third, already, "the same units after another job's commit")
	b.that(third.GetVersion() == first.GetVersion(), "the same units after another job's commit must name version %q; the answer is %q", first.GetVersion(), third.GetVersion())
}

func commitVersions(b *bench) {
	spec := b.create()
	var jobs []*job
	var versions []string
	for i := range 3 {
		j := newJob(spec, fmt.Sprint("job", i), 1, i+1)
		v := b.land(spec, j).GetVersion()
		b.that(!slices.Contains(versions, v), "version %q is given to two commits", v)
		jobs, versions = append(jobs, j), append(versions, v)
	}
	for i, p := range b.host.Commits() {
		b.that(p.GetVersion() == versions[i], "the commit point announced version %q; Commit answers %q", p.GetVersion(), versions[i])
		b.that(i == 0 || p.GetParent() == versions[i-1], "commit %d follows %q; its commit point says %q", i, versions[max(0, i-1)], p.GetParent())
	}
	spec = b.prepare()
	b.that(spec.GetBaseVersion() == versions[2], "PrepareWrite must name the newest version %q; it says %q", versions[2], spec.GetBaseVersion())
	for i, v := range versions {
		b.holdsAt(v, jobs[:i+1]...)
	}
}

// commitConflict lets other jobs commit in the moment before each try.
func commitConflict(b *bench) {
	spec := b.create()
	var others, won []*job
	var units []*sinkv1.Unit
	for i := range 6 {
		j := newJob(spec, fmt.Sprint("other", i), 1, 1)
		others, units = append(others, j), append(units, b.stage(spec, j))
	}
	if b.desc.GetCommitPoint() == sinkv1.CommitPoint_COMMIT_POINT_EXTERNAL {
		b.skip(NotOffered, "what conflicts at a commit point of its own only the sink knows")
	}
	inside, trouble := false, ""
	rival := func(times int) {
		b.host.BeforeCommit(func(int) { // in a goroutine of the host
			if inside || times == 0 {
				return
			}
			inside = true
			times--
			r, err := b.sink.Commit(b.ctx, b.request(spec, units[0]))
			if err != nil || r.GetOutcome() != committed {
				trouble = fmt.Sprintf("a commit while another one waits must be answered COMMITTED; it is %s %s (%v)", short(r.GetOutcome()), r.GetMessage(), err)
			}
			won, others, units, inside = append(won, others[0]), others[1:], units[1:], false
		})
	}
	j := newJob(spec, "job", 1, 2)
	u := b.stage(spec, j)
	rival(2)
	r := b.commit(spec, u)
	b.that(trouble == "", "%s", trouble)
	b.outcome(r, committed, "a commit that lost twice and may try four times")
	b.that(r.GetAttempts() == 3, "it took three attempts; Commit counts %d", r.GetAttempts())
	won = append(won, j)
	b.holds(won...)
	late := newJob(spec, "late", 1, 1)
	u = b.stage(spec, late)
	rival(4)
	r = b.commit(spec, u)
	b.that(trouble == "", "%s", trouble)
	b.outcome(r, sinkv1.Outcome_OUTCOME_CONFLICT, "a commit that lost as often as max_attempts says")
	b.that(!b.lookup(late.marker()).GetFound(), "Lookup finds a job whose commit lost")
	b.holds(won...)
}

// commitRace commits jobs at the same time.
func commitRace(b *bench) {
	spec := b.create()
	const racers = 4
	var jobs []*job
	var requests []*sinkv1.CommitRequest
	for i := range racers {
		j := newJob(spec, fmt.Sprint("job", i), 1, 2)
		req := b.request(spec, b.stage(spec, j))
		req.MaxAttempts = 2 * racers
		jobs, requests = append(jobs, j), append(requests, req)
	}
	var wg sync.WaitGroup
	answers, errs := make([]*sinkv1.CommitResponse, racers), make([]error, racers)
	ctx := b.call()
	for i, req := range requests {
		wg.Go(func() { answers[i], errs[i] = b.sink.Commit(ctx, req) })
	}
	wg.Wait()
	var versions []string
	for i, r := range answers {
		b.ok(errs[i], "Commit")
		b.outcome(r, committed, "a commit that races with others and may try often enough")
		b.that(!slices.Contains(versions, r.GetVersion()), "version %q is given to two commits", r.GetVersion())
		versions = append(versions, r.GetVersion())
	}
	b.that(len(b.host.Commits()) == racers, "%d jobs take %d commit points; %d landed", racers, racers, len(b.host.Commits()))
	b.holds(jobs...)
}

// commitLostReply: the commit point lands, and nobody says so.
func commitLostReply(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 2, 2)
	u := b.stage(spec, j)
	b.host.LoseReply()
	b.outcome(b.commit(spec, u), sinkv1.Outcome_OUTCOME_UNKNOWN, "a commit whose commit point gave no definite answer")
	b.that(b.host.points() == 1, "without a definite answer the sink must not ask again; it asked %d times", b.host.points())
	b.outcome(b.commit(spec, u), already, "the same units after a lost reply of a commit that landed")
	b.that(len(b.host.Commits()) == 1, "a lost reply must not make a second commit; %d landed", len(b.host.Commits()))
	b.holds(j)
}

// commitUnknown: the commit point does not land, and nobody knows.
func commitUnknown(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 1, 2)
	u := b.stage(spec, j)
	b.host.set(func(h *Host) {
		h.refuse = func(n int) error {
			if n == 1 {
				return sdk.Refuse(sdk.Unknown, "the request was sent and nobody answered")
			}
			return nil
		}
	})
	b.outcome(b.commit(spec, u), sinkv1.Outcome_OUTCOME_UNKNOWN, "a commit whose commit point gave no definite answer")
	b.that(b.host.points() == 1, "without a definite answer the sink must not ask again; it asked %d times", b.host.points())
	b.holds()
	b.outcome(b.commit(spec, u), committed, "the same units after an unknown outcome that did not land")
	b.holds(j)
}

// commitRefused: definite refusals are passed on as what they are.
func commitRefused(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 1, 2)
	u := b.stage(spec, j)
	for kind, want := range map[error]sinkv1.Outcome{
		sdk.Refuse(sdk.Permanent, "not allowed"):      sinkv1.Outcome_OUTCOME_PERMANENT,
		sdk.Refuse(sdk.Retryable, "nothing was sent"): sinkv1.Outcome_OUTCOME_RETRYABLE,
	} {
		b.host.set(func(h *Host) { h.refuse = func(int) error { return kind } })
		b.outcome(b.commit(spec, u), want, fmt.Sprintf("a commit that the host refuses with %q", kind))
		b.that(!b.lookup(j.marker()).GetFound(), "Lookup finds a job that was refused")
	}
	b.host.set(func(h *Host) { h.refuse = nil })
	b.outcome(b.commit(spec, u), committed, "the same units once nothing stands against them")
	b.holds(j)
}

// commitFenced: cancelled before the seal.
func commitFenced(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 1, 2)
	u := b.stage(spec, j)
	b.host.Fence(true)
	b.notCommitted(b.commit(spec, u), "a commit that the host has fenced")
	b.holds()
	b.host.Fence(false)
	b.outcome(b.commit(spec, u), committed, "the same units once they may")
	b.holds(j)
}

func (b *bench) notCommitted(r *sinkv1.CommitResponse, of string) {
	b.that(!slices.Contains([]sinkv1.Outcome{committed, already, sinkv1.Outcome_OUTCOME_UNKNOWN}, r.GetOutcome()),
		"%s must be answered as what did not land and cannot; it is %s: %s", of, short(r.GetOutcome()), r.GetMessage())
}

// commitStale: the lease is of a scheduler that is no more.
func commitStale(b *bench) {
	spec := b.create()
	j := newJob(spec, "job", 1, 2)
	u := b.stage(spec, j)
	old := b.request(spec, u)
	b.host.revoke(old.GetLease())
	b.notCommitted(b.send1(old), "a commit under a lease of an older epoch")
	b.holds()
	// and one that grows old within the call
	second := b.request(spec, u)
	b.host.BeforeCommit(func(int) { b.host.revoke(second.GetLease()) })
	b.notCommitted(b.send1(second), "a commit whose epoch ends before its seal")
	b.host.BeforeCommit(nil)
	b.holds()
	b.outcome(b.commit(spec, u), committed, "the same units under the lease of the present epoch")
	b.holds(j)
}

func commitRecreated(b *bench) {
	spec := b.create()
	u := b.stage(spec, newJob(spec, "job", 1, 1))
	spec = proto.CloneOf(spec)
	spec.TableUuid = "00000000-0000-4000-8000-000000000000"
	b.outcome(b.commit(spec, u), sinkv1.Outcome_OUTCOME_PERMANENT, "a commit to a table that has another UUID than the write was prepared for")
	b.that(len(b.host.Commits()) == 0, "a commit to another table landed")
}

func lookupUnknown(b *bench) {
	spec := b.create()
	const nobody = "0123456789abcdef01234567"
	b.that(!b.lookup(nobody).GetFound(), "Lookup finds a marker that nobody committed")
	j := newJob(spec, "job", 1, 1)
	u := b.stage(spec, j)
	b.that(!b.lookup(j.marker()).GetFound(), "Lookup finds a job that was only staged")
	r := b.commit(spec, u)
	b.outcome(r, committed, "a commit")
	b.that(!b.lookup(nobody).GetFound(), "Lookup finds a marker that nobody committed")
	b.that(!b.lookup(j.marker()[:20]).GetFound(), "Lookup finds a part of a marker")
	for i := range 3 {
		b.land(spec, newJob(spec, fmt.Sprint("later", i), 1, 1))
	}
	found := b.lookup(j.marker())
	b.that(found.GetFound() && found.GetVersion() == r.GetVersion(), "Lookup must find the first job at version %q when others came after it; it answers found=%v at %q",
		r.GetVersion(), found.GetFound(), found.GetVersion())
}
