package sinktest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// ordinary is one whole job, with everything that is asked on its way.
func (b *bench) ordinary(spec *jobTable, id string) {
	j := newJob(spec.spec, id, 2, 2)
	b.land(spec.spec, j)
	spec.jobs = append(spec.jobs, j)
	b.lookup(j.marker())
	b.prepare()
	b.holds(spec.jobs...)
}

func quiet(b *bench) {
	table := b.table()
	b.ordinary(table, "job")
	lines, size := len(b.run.output.all()), b.run.output.bytes
	b.that(lines <= 100 && size <= 64<<10, "an ordinary job makes the plugin write %d lines, %d bytes; what matters would be lost in that, and the host drops lines above 100 in a second", lines, size)
}

// exited waits for the process.
func (b *bench) exited(after string) {
	select {
	case <-b.run.process.Exited():
	case <-time.After(b.opts.Limits.End):
		b.fail("the process still runs %v after %s", b.opts.Limits.End, after)
	}
}

// signal sends one to the plugin's whole group, as a terminal and systemd do.
func (b *bench) signal(s syscall.Signal) {
	b.that(syscall.Kill(-b.run.process.PID(), s) == nil, "the process has ended before it got signal %v", s)
}

// sigterm: what runs is finished, and then the process ends.
func sigterm(b *bench) {
	table := b.table()
	j := newJob(table.spec, "job", 1, 2)
	u := b.stage(table.spec, j)
	pid := b.run.process.PID()
	b.host.BeforeCommit(func(int) { _ = syscall.Kill(-pid, syscall.SIGTERM) })
	resp, err := b.sink.Commit(b.call(), b.request(table.spec, u))
	if err != nil {
		b.fail("SIGTERM cuts a commit that is under way: %s; finish running calls first", said(err))
	}
	b.outcome(resp, committed, "a commit that was under way when SIGTERM came")
	b.exited("SIGTERM, with no call running")
}

// sigint: a terminal sends it to everybody; the scheduler decides what becomes of the plugin.
func sigint(b *bench) {
	table := b.table()
	for i := range 3 {
		b.signal(syscall.SIGINT)
		b.ordinary(table, fmt.Sprint("job", i))
	}
}

// stop: it ends when it is told to, and leaves nobody.
func stop(b *bench) {
	b.ordinary(b.table(), "job")
	below := descendants(b.run.process.PID())
	self, _, _, _ := stat(b.run.process.PID())
	b.signal(syscall.SIGTERM)
	b.exited("SIGTERM, with no call running")
	b.gone(append(below, self), "the plugin has ended")
}

func (b *bench) gone(processes []proc, after string) {
	deadline := time.Now().Add(b.opts.Limits.End)
	for _, p := range processes {
		for p.alive() {
			if time.Now().After(deadline) {
				_ = syscall.Kill(p.pid, syscall.SIGKILL) // it is of this run
				b.fail("process %v of the plugin is still there %v after %s", p, b.opts.Limits.End, after)
			}
			b.pause(20 * time.Millisecond)
		}
	}
}

// pause waits between two looks at something that nobody announces.
func (b *bench) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
		b.fail("%v", b.ctx.Err())
	}
}

const (
	leakCalls  = 200
	leakFiles  = 16
	leakMemory = 64 << 20
	leakCount  = 32 // goroutines of this process
)

// leaks makes many calls and compares what is held before and after.
func leaks(b *bench) {
	table := b.table()
	round := func(i int) {
		j := newJob(table.spec, fmt.Sprint("job", i), 1, 2)
		if i%10 == 0 {
			b.land(table.spec, j)
			return
		}
		b.stage(table.spec, j)
		b.prepare()
		b.lookup(j.marker())
	}
	for i := range 20 { // what is made once is made now
		round(i)
	}
	if b.run.process == nil {
		before := runtime.NumGoroutine()
		for i := range leakCalls / 3 {
			round(100 + i)
		}
		deadline := time.Now().Add(b.opts.Limits.End)
		for runtime.NumGoroutine() > before+leakCount && time.Now().Before(deadline) {
			b.pause(20 * time.Millisecond)
		}
		b.that(runtime.NumGoroutine() <= before+leakCount, "%d calls leave %d goroutines behind", leakCalls, runtime.NumGoroutine()-before)
		return
	}
	pid := b.run.process.PID()
	before, err := measure(pid)
	if err != nil {
		b.skip(Skipped, "the process cannot be looked at: %v", err)
	}
	for i := range leakCalls / 3 {
		round(100 + i)
	}
	after, err := measure(pid)
	b.that(err == nil, "the process cannot be looked at any more: %v", err)
	b.note("%d calls: %d files more, %d KiB of memory more, %d processes more", leakCalls, after.files-before.files, (after.memory-before.memory)>>10, after.processes-before.processes)
	b.that(after.files <= before.files+leakFiles, "%d calls leave %d open files behind", leakCalls, after.files-before.files)
	b.that(after.memory <= before.memory+leakMemory, "%d calls leave %d MiB of memory behind", leakCalls, (after.memory-before.memory)>>20)
	b.that(after.processes <= before.processes, "%d calls leave %d processes behind, running or not waited for", leakCalls, after.processes-before.processes)
}

// secrets: none is where others can read it.
func secrets(b *bench) {
	b.ordinary(b.table(), "job")
	private := map[string]string{}
	for name, value := range b.opts.Secrets {
		if len(value) >= 4 {
			private[value] = "the secret " + name
		}
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if len(value) >= 8 && !passedOn(name, b.opts.AllowEnv) {
			private[entry] = "the host's variable " + name
		}
	}
	look := func(text, where string) {
		for value, what := range private {
			b.that(!strings.Contains(text, value), "%s is %s", what, where)
		}
	}
	for _, line := range b.run.output.all() {
		look(line, "in what the plugin writes")
	}
	b.host.set(func(h *Host) {
		for _, line := range h.messages {
			look(line, "in the plugin's log")
		}
	})
	pid := b.run.process.PID()
	self, _, _, _ := stat(pid)
	for _, p := range append(descendants(pid), self) {
		shown, err := visible(p.pid)
		if err != nil {
			b.note("process %v cannot be looked at: %v", p, err)
			continue
		}
		for _, s := range shown {
			look(s, fmt.Sprintf("in the environment or the arguments of process %v, where others can read it", p))
		}
	}
}

// passedOn names what the host gives to plugins anyway.
func passedOn(name string, allowed []string) bool {
	for _, a := range append([]string{"PATH", "TMPDIR", "SIGNET_FAILPOINTS"}, allowed...) {
		if name == a {
			return true
		}
	}
	return strings.HasSuffix(strings.ToUpper(name), "_PROXY")
}

// hostGone closes the host's services within a call.
func hostGone(b *bench) {
	table := b.table()
	u := b.stage(table.spec, newJob(table.spec, "job", 1, 1))
	b.limit = b.opts.Limits.End
	b.host.BeforeCommit(func(int) { b.host.close() })
	r, err := b.sink.Commit(b.call(), b.request(table.spec, u))
	b.answersOrEnds(err, "Commit")
	if err == nil {
		b.outcome(r, sinkv1.Outcome_OUTCOME_UNKNOWN, "a commit whose host went away at the commit point")
	}
}

// hostGoneEarly closes them while nothing is under way.
func hostGoneEarly(b *bench) {
	table := b.table()
	b.limit = b.opts.Limits.End
	b.host.set(func(h *Host) {
		h.onCall = func(ctx context.Context, _ string) error {
			b.host.close()
			<-ctx.Done()
			return ctx.Err()
		}
	})
	_, err := b.tryPrepare()
	b.that(err != nil, "PrepareWrite succeeds although its host has gone: it cannot have looked at the table")
	b.answersOrEnds(err, "PrepareWrite")
	_, err = b.send(b.stream(table.spec, newJob(table.spec, "job", 2, 2)))
	b.answersOrEnds(err, "Stage")
}

// answersOrEnds: an error is an answer, unless it is that there was none.
func (b *bench) answersOrEnds(err error, call string) {
	if err == nil || !strings.Contains(said(err), "in time") {
		return
	}
	if b.run.process != nil {
		select {
		case <-b.run.process.Exited():
			return
		default:
		}
	}
	b.fail("%s neither answers nor does the plugin end within %v after its host has gone", call, b.opts.Limits.End)
}

func hostSlow(b *bench) {
	table := b.table()
	b.host.set(func(h *Host) { h.delay = 50 * time.Millisecond })
	b.ordinary(table, "job")
	b.confined()
}
