package config

import "time"

// Dispatch says how tasks are planned and come to executors.
type Dispatch struct {
	// Planner of jobs that do not say theirs: static, or adaptive.
	Planner string `koanf:"planner"`
	// TaskPolicy of jobs that do not say theirs: push, or pull.
	TaskPolicy string `koanf:"task_policy"`
	// Distribution of tasks over executors: least-loaded, round-robin, or locality.
	Distribution string `koanf:"distribution"`
	// SpeculativeTasks of one job may have a second attempt beside a slow one; 0: none.
	SpeculativeTasks int `koanf:"speculative_tasks"`
	// StragglerPercent of the median of its stage is what an attempt may take before it counts as slow.
	StragglerPercent int `koanf:"straggler_percent"`
	// StragglerAge is how long it may run in any case.
	StragglerAge time.Duration `koanf:"straggler_age"`
}

func baseDispatch() Dispatch {
	return Dispatch{Planner: "static", TaskPolicy: "push", Distribution: "least-loaded", StragglerPercent: 300, StragglerAge: 10 * time.Second}
}

func (v *validator) dispatch(d *Dispatch) {
	v.oneOf("dispatch.planner", d.Planner, "static", "adaptive")
	v.oneOf("dispatch.task_policy", d.TaskPolicy, "push", "pull")
	v.oneOf("dispatch.distribution", d.Distribution, "least-loaded", "round-robin", "locality")
	v.check(d.SpeculativeTasks >= 0 && d.SpeculativeTasks <= 10_000, "dispatch.speculative_tasks", d.SpeculativeTasks, "want 0 to 10000")
	v.check(d.StragglerPercent > 100 && d.StragglerPercent <= 100_000, "dispatch.straggler_percent", d.StragglerPercent, "want 101 to 100000: 300 is three times the median")
	v.check(d.StragglerAge > 0, "dispatch.straggler_age", d.StragglerAge, "want more than 0")
}
