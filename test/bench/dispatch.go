package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/config"
)

// What the scheduler alone has to do. The executors are simulated, so that nothing but the scheduler is measured.
const (
	simulatedExecutors = 100
	simulatedSlots     = 8
	wantRate           = 5000 // tasks a second
	wantRatio          = 12   // 10,000 tasks to 1,000
	wantMemory         = 500  // MB for 100,000 finished tasks
)

// alone is a scheduler in this process.
type alone struct {
	dir    string
	server *scheduler.Server
	client *client.Client
	stop   []func()
}

func startAlone(ctx context.Context, apart bool) (a *alone, err error) {
	a = &alone{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.dir, err = os.MkdirTemp("", "signet-bench-"); err != nil {
		return a, err
	}
	cfg := config.Embedded(filepath.Join(a.dir, "data"))
	cfg.Executors.Local, cfg.Limits.MaxTasks, cfg.Limits.MaxJobTasks = 0, 200_000, 200_000
	cfg.Plugins.Dir, cfg.Plugins.AllowUnlocked = filepath.Join(a.dir, "plugins"), true
	cfg.Timeouts.ExecutorLoss = time.Hour // the simulated ones send no heartbeats
	if a.server, err = scheduler.Start(ctx, cfg, scheduler.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return a, err
	}
	if a.client, err = client.Dial(a.server.Addr()); err != nil {
		return a, err
	}
	if apart {
		return a, a.executorsApart(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	joined, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- simulate(ctx, a.server.Addr(), simulatedExecutors, simulatedSlots, func() { close(joined) })
	}()
	a.stop = append(a.stop, func() {
		cancel()
		if err := <-ended; err != nil {
			fmt.Fprintln(os.Stderr, "simulated executors:", err)
		}
	})
	select {
	case <-joined:
		return a, nil
	case err := <-ended:
		ended <- err
		return a, err
	}
}

// executorsApart runs the simulated executors as a process of their own.
func (a *alone) executorsApart(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "executors", "--scheduler", a.server.Addr())
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	a.stop = append(a.stop, func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	if !bufio.NewScanner(pipe).Scan() {
		return errors.New("the simulated executors did not join")
	}
	go func() { _, _ = io.Copy(io.Discard, pipe) }()
	return nil
}

func (a *alone) close() {
	for _, f := range a.stop {
		f()
	}
	if a.client != nil {
		_ = a.client.Close()
	}
	if a.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = a.server.Stop(ctx)
		cancel()
	}
	_ = os.RemoveAll(a.dir)
}

// noop is a job of n tasks that do nothing, and one that has their result, which is empty.
func noop(n int) *planv1.PhysicalPlan {
	p := &planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{
		{Exchange: planv1.ExchangeKind_EXCHANGE_KIND_GATHER, Repeatable: true},
		{Repeatable: true, Tasks: []*planv1.PhysicalTask{{Sql: "SELECT n FROM s", Inputs: []*planv1.PhysicalInput{{View: "s", Kind: &planv1.PhysicalInput_Stage{Stage: &planv1.StageRead{}}}}}}},
	}}
	task := &planv1.PhysicalTask{Sql: "SELECT 1 AS n"}
	for range n {
		p.Stages[0].Tasks = append(p.Stages[0].Tasks, task)
	}
	return p
}

// run times one job of n tasks, from submission to its end.
func (a *alone) run(ctx context.Context, n int) (time.Duration, error) {
	p := noop(n)
	begun := time.Now()
	r, err := a.client.Raw().Submit(ctx, &schedulerv1.SubmitRequest{PhysicalPlan: p})
	if err != nil {
		return 0, err
	}
	id := r.GetJobId()
	j, err := a.client.Wait(ctx, id, nil)
	if err != nil {
		return 0, err
	}
	if j.GetError() != nil {
		return 0, fmt.Errorf("job of %d tasks: %s", n, j.GetError().GetMessage())
	}
	return time.Since(begun), nil
}

// dispatch measures how fast tasks that do nothing go through the scheduler, and what they cost in memory.
func dispatch(ctx context.Context, apart bool, profile string) error {
	a, err := startAlone(ctx, apart)
	if err != nil {
		return err
	}
	defer a.close()
	if _, err := a.run(ctx, 1000); err != nil { // warm
		return err
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	where := "in the same process"
	if apart {
		where = "in one process of their own"
	}
	fmt.Printf("dispatch, %d simulated executors %s:\n", simulatedExecutors, where)
	var took [2][]time.Duration
	cpu := cpuTime()
	for range 5 {
		for i, n := range []int{1000, 10_000} {
			d, err := a.run(ctx, n)
			if err != nil {
				return err
			}
			took[i] = append(took[i], d)
		}
	}
	each := (cpuTime() - cpu) / (5 * 11_000)
	one, ten := quantile(took[0], 0.5), quantile(took[1], 0.5)
	rate := 10_000 / ten.Seconds()
	fmt.Printf("  1,000 tasks   %s (%.0f tasks/s)\n  10,000 tasks  %s\n", ms(one), 1000/one.Seconds(), ms(ten))
	fmt.Printf("  CPU of this process for each task %d µs: other load on the machine changes the times above, and this hardly\n", each.Microseconds())
	goal("tasks a second", rate, rate >= wantRate, fmt.Sprintf("at least %d", wantRate))
	ratio := ten.Seconds() / one.Seconds()
	goal("10,000 tasks to 1,000", ratio, ratio <= wantRatio, fmt.Sprintf("at most %d", wantRatio))
	return a.memory(ctx)
}

// memory compares the heap, and the process, before and after a job of 100,000 tasks. The job is still known afterwards.
func (a *alone) memory(ctx context.Context) error {
	before := heap()
	took, err := a.run(ctx, 100_000)
	if err != nil {
		return err
	}
	peak, after := resident("VmHWM"), heap()
	fmt.Printf("  100,000 tasks %s (%.0f tasks/s)\n  peak of the process %.0f MB, kept of the finished job %.1f MB\n", ms(took), 100_000/took.Seconds(), peak, after-before)
	goal("MB, peak of the process", peak, peak < wantMemory, fmt.Sprintf("less than %d", wantMemory))
	return nil
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is what is live, in MB.
func heap() float64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// resident is a figure of this process's memory in MB.
func resident(key string) float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		var kib float64
		if _, err := fmt.Sscanf(line, key+": %f kB", &kib); err == nil {
			return kib * 1024 / 1e6
		}
	}
	return 0
}

func goal(what string, got float64, ok bool, want string) {
	verdict := "ok"
	if !ok {
		verdict = "MISSED"
	}
	fmt.Printf("  %-26s %10.1f   goal: %s: %s\n", what, got, want, verdict)
}
