package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of histograms, in seconds.
var (
	short  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	jobs   = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	bounds = map[string][]float64{"job": jobs, "task": jobs, "root": jobs}
)

// Metrics are those of one scheduler. They are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	jobs     *prometheus.CounterVec
	jobTime  *prometheus.HistogramVec
	attempts *prometheus.CounterVec
	taskTime prometheus.Histogram
	rows     prometheus.Counter
	bytes    prometheus.Counter
	exchange prometheus.Counter
	commits  *prometheus.CounterVec
	commit   prometheus.Histogram
	roots    *prometheus.CounterVec
	rootTime prometheus.Histogram
	calls    *prometheus.CounterVec
	callTime *prometheus.HistogramVec
	writes   *prometheus.CounterVec
	write    prometheus.Histogram
	http     *prometheus.CounterVec

	maintained *prometheus.CounterVec
}

// New makes the metrics of a scheduler of this version.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.jobs = m.counters("jobs_finished_total", "Jobs that have ended.", "kind", "state")
	m.jobTime = m.times("job_seconds", "Time from a job's submission to its end.", bounds["job"], "kind")
	m.attempts = m.counters("task_attempts_total", "Task attempts by what became of them; launched counts all of them.", "result")
	m.taskTime = m.time("task_attempt_seconds", "Time from an attempt's launch to its success.", bounds["task"])
	m.rows = m.counter("task_rows_total", "Rows of attempts that succeeded.")
	m.bytes = m.counter("task_bytes_total", "Bytes of attempts that succeeded.")
	m.exchange = m.counter("exchange_bytes_total", "Bytes that stages have left on executors for later stages.")
	m.commits = m.counters("commits_total", "Commit requests by their outcome.", "outcome")
	m.commit = m.time("commit_seconds", "Time of a sink's commit, its retries after conflicts included.", short)
	m.roots = m.counters("roots_total", "Scheduler roots that have ended.", "result")
	m.rootTime = m.time("root_seconds", "Time of a scheduler root.", bounds["root"])
	m.calls = m.counters("plugin_calls_total", "Calls of sink plugins.", "sink", "method", "code")
	m.callTime = m.times("plugin_call_seconds", "Time of a plugin's call.", short, "sink", "method")
	m.writes = m.counters("journal_writes_total", "Synced transactions of the journal.", "result")
	m.write = m.time("journal_write_seconds", "Time of a journal's transaction, the wait for others included.", short)
	m.http = m.counters("http_requests_total", "Requests to the REST API.", "route", "code")
	m.maintained = m.counters("maintenance_total", "Tables that a schedule has found due, by what came of it.", "procedure", "catalog", "result")
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "signet", Name: "build_info", Help: "The running version; always 1."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	m.registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "signet", Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "signet", Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) times(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "signet", Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) time(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "signet", Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

// Handler serves the metrics in the formats that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, MaxRequestsInFlight: 4})
}

// JobEnded counts a job that has ended.
func (m *Metrics) JobEnded(kind, state string, took time.Duration) {
	m.jobs.WithLabelValues(kind, state).Inc()
	m.jobTime.WithLabelValues(kind).Observe(took.Seconds())
}

// Results of attempts.
const (
	AttemptLaunched  = "launched"
	AttemptSucceeded = "succeeded"
	AttemptFailed    = "failed"
	AttemptLost      = "lost"
	AttemptStopped   = "stopped" // given up: another was first, or the job ended
)

// Attempt counts an attempt's launch, or its end.
func (m *Metrics) Attempt(result string) { m.attempts.WithLabelValues(result).Inc() }

// AttemptSucceeded counts an attempt that won. exchange: its rows stay on its executor.
func (m *Metrics) AttemptSucceeded(took time.Duration, rows, bytes int64, exchange bool) {
	m.Attempt(AttemptSucceeded)
	m.taskTime.Observe(took.Seconds())
	m.rows.Add(float64(max(rows, 0)))
	m.bytes.Add(float64(max(bytes, 0)))
	if exchange {
		m.exchange.Add(float64(max(bytes, 0)))
	}
}

// CommitOutcome counts what became of one commit request.
func (m *Metrics) CommitOutcome(outcome string) { m.commits.WithLabelValues(outcome).Inc() }

// CommitTook measures a commit.
func (m *Metrics) CommitTook(d time.Duration) { m.commit.Observe(d.Seconds()) }

// RootEnded counts a scheduler root.
func (m *Metrics) RootEnded(result string, took time.Duration) {
	m.roots.WithLabelValues(result).Inc()
	m.rootTime.Observe(took.Seconds())
}

// JournalWrite measures a transaction of the journal.
func (m *Metrics) JournalWrite(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(result).Inc()
	m.write.Observe(took.Seconds())
}

// Results of maintenance that a schedule asked for.
const (
	MaintenanceDone     = "done"
	MaintenanceNothing  = "nothing"  // there was nothing to do, and no job
	MaintenanceExcluded = "excluded" // the table's properties keep it out
	MaintenanceGone     = "gone"     // the table
	MaintenanceFailed   = "failed"
)

// Maintained counts a table that a schedule has found due.
func (m *Metrics) Maintained(procedure, catalog, result string) {
	m.maintained.WithLabelValues(procedure, catalog, result).Inc()
}

// Request counts an answered request. The route is a pattern, never a path.
func (m *Metrics) Request(route, code string) { m.http.WithLabelValues(route, code).Inc() }
