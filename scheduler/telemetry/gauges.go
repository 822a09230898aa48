package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Snapshot is what there is at one moment.
type Snapshot struct {
	Jobs          map[string]int // by state, finished ones included as long as they are kept
	QueuedTasks   int            // attempts that wait for a slot
	RunningTasks  int
	RunningRoots  int
	Executors     int // connected
	Slots         int
	EventsDropped int64
	EventsWritten int64
	EventsQueued  int
}

// Watch has the metrics ask for a snapshot whenever they are read.
func (m *Metrics) Watch(now func() Snapshot) { m.registry.MustRegister(&gauges{now: now}) }

type gauges struct{ now func() Snapshot }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("signet_"+name, help, labels, nil)
}

var (
	descJobs      = describe("jobs", "Jobs by state.", "state")
	descQueued    = describe("tasks_queued", "Task attempts that wait for a slot on an executor.")
	descRunning   = describe("tasks_running", "Task attempts on executors.")
	descRoots     = describe("roots_running", "Scheduler roots that run.")
	descExecutors = describe("executors", "Executors that are connected.")
	descSlots     = describe("executor_slots", "Tasks that the connected executors can run at a time.")
	descDropped   = describe("event_log_dropped_total", "Records of job histories that were dropped because the disk was too slow, full, or a history too large.")
	descWritten   = describe("event_log_written_total", "Records of job histories that were written.")
	descLogQueue  = describe("event_log_queue", "Records of job histories that wait for the disk.")
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descJobs, descQueued, descRunning, descRoots, descExecutors, descSlots, descDropped, descWritten, descLogQueue} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	s := g.now()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for state, n := range s.Jobs {
		gauge(descJobs, float64(n), state)
	}
	gauge(descQueued, float64(s.QueuedTasks))
	gauge(descRunning, float64(s.RunningTasks))
	gauge(descRoots, float64(s.RunningRoots))
	gauge(descExecutors, float64(s.Executors))
	gauge(descSlots, float64(s.Slots))
	gauge(descLogQueue, float64(s.EventsQueued))
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(s.EventsDropped))
	ch <- prometheus.MustNewConstMetric(descWritten, prometheus.CounterValue, float64(s.EventsWritten))
}
