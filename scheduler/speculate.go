package scheduler

import (
	"slices"
	"time"

	"github.com/signet-io/signet/scheduler/dispatch"
	"github.com/signet-io/signet/scheduler/graph"
)

// pace is what a job's loop knows of how long its attempts take. It is kept only where second attempts are allowed.
type pace struct {
	slow   dispatch.Slow
	began  map[string]time.Time // attempts that executors have
	stages map[int32]*stagePace
}

type stagePace struct {
	took  []time.Duration // of tasks that are done, sorted
	bytes int64
}

func (l *loop) newPace() *pace {
	if l.maxSpeculative() == 0 {
		return nil
	}
	d := l.s.cfg.Dispatch
	return &pace{slow: dispatch.Slow{Percent: d.StragglerPercent, Age: d.StragglerAge}, began: map[string]time.Time{}, stages: map[int32]*stagePace{}}
}

// maxSpeculative is 0 where rows leave as they come: those of two attempts would mix (S73).
func (l *loop) maxSpeculative() int {
	if l.j.settings().Pipelined {
		return 0
	}
	return l.s.cfg.Dispatch.SpeculativeTasks
}

// every is how often attempts are looked at; nil: never.
func (p *pace) every() (<-chan time.Time, func()) {
	if p == nil {
		return nil, func() {}
	}
	t := time.NewTicker(min(max(p.slow.Age/4, 20*time.Millisecond), time.Second))
	return t.C, t.Stop
}

func (p *pace) start(attempt string) {
	if p == nil {
		return
	}
	if _, ok := p.began[attempt]; !ok {
		p.began[attempt] = time.Now()
	}
}

func (p *pace) end(attempt string) {
	if p != nil {
		delete(p.began, attempt)
	}
}

// done notes how long a task has taken.
func (p *pace) done(stage int32, attempt string, bytes int64) {
	if p == nil {
		return
	}
	began, ok := p.began[attempt]
	if !ok {
		return
	}
	delete(p.began, attempt)
	st := p.stages[stage]
	if st == nil {
		st = &stagePace{}
		p.stages[stage] = st
	}
	took := time.Since(began)
	at, _ := slices.BinarySearch(st.took, took)
	st.took = slices.Insert(st.took, at, took)
	st.bytes += bytes
}

// speculate has second attempts launched beside slow ones.
func (l *loop) speculate(now time.Time) error {
	for stage, st := range l.pace.stages {
		sample := dispatch.Sample{Tasks: len(l.stages[stage].tasks), Finished: st.took, Bytes: st.bytes}
		l.j.mu.Lock()
		for id, since := range l.pace.began {
			if t, ok := l.g.TaskOf(id); ok && t.Stage == stage {
				sample.Running = append(sample.Running, dispatch.Running{Attempt: id, Since: since, Bytes: l.j.running[id].bytes})
			}
		}
		l.j.mu.Unlock()
		for _, id := range l.pace.slow.Of(now, sample) {
			if err := l.act(l.g.Apply(graph.Straggling{Attempt: id})); err != nil {
				return err
			}
		}
	}
	l.publish()
	return nil
}
