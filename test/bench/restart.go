package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
)

const (
	finishedJobs, openJobs = 1000, 100
	restartTasks           = 16 // of each job
	wantRestart            = 2 * time.Second
)

// restart measures how long a scheduler takes to serve again, with a journal of a thousand finished jobs and a hundred writes that had half of their
// manifests accepted.
func restart(ctx context.Context, n int) error {
	dir, err := os.MkdirTemp("", "signet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var took []time.Duration
	for i := range n {
		cfg := config.Embedded(filepath.Join(dir, fmt.Sprint(i)))
		cfg.Executors.Local = 0
		cfg.Plugins.Dir, cfg.Plugins.AllowUnlocked = filepath.Join(dir, "plugins"), true
		if err := pastJobs(filepath.Join(cfg.DataDir, "journal.db"), cfg.DataDir); err != nil {
			return err
		}
		begun := time.Now()
		s, err := scheduler.Start(ctx, cfg, scheduler.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		took = append(took, time.Since(begun))
		stop, cancel := context.WithTimeout(ctx, 10*time.Second)
		err = s.Stop(stop)
		cancel()
		if err != nil {
			return err
		}
	}
	d := quantile(took, 0.5)
	fmt.Printf("restart with %d finished jobs and %d open writes of %d tasks, half of them accepted, %d runs:\n  median %s\n", finishedJobs, openJobs, restartTasks, n, ms(d))
	goal("seconds to serve again", d.Seconds(), d < wantRestart, fmt.Sprintf("less than %.0f", wantRestart.Seconds()))
	return nil
}

func pastJobs(path, data string) error {
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	defer j.Close()
	return j.Update(func(tx *journal.Tx) error {
		for i := range finishedJobs + openJobs {
			if err := pastJob(tx, i, data); err != nil {
				return err
			}
		}
		return nil
	})
}

func pastJob(tx *journal.Tx, i int, data string) error {
	id := fmt.Sprintf("01990000-0000-7000-8000-%012d", i)
	spec := &planv1.WriteSpec{TableUuid: "7d9c4a5e-0000-4000-8000-000000000000", DataLocation: "file://" + filepath.Join(data, "warehouse/t/data"), SinkState: make([]byte, 2000)}
	b, err := proto.Marshal(spec)
	if err != nil {
		return err
	}
	rec := &journal.Job{
		ID: id, Principal: "local", Key: "key-" + id, SQL: "INSERT INTO lake.s.t SELECT " + strings.Repeat("column_name, ", 30) + "x FROM 'file.parquet'", Kind: "insert",
		State: journal.StateSuccessful, Submitted: time.Now(), Finished: time.Now(), CommitKey: id, Marker: id, Result: make([]byte, 1000),
		Write: &journal.Write{Catalog: "lake", Schema: []string{"s"}, Table: "t", Mode: 1, Tasks: restartTasks, Spec: b, Plan: strings.Repeat("a line of the plan\n", 40)},
	}
	m := coordinator.New(id, 1)
	step := func(ev coordinator.Event) error { _, err := m.Step(ev); return err }
	if err := step(coordinator.Begin{Tasks: restartTasks, TableUUID: spec.TableUuid}); err != nil {
		return err
	}
	open := i >= finishedJobs
	for n := range restartTasks {
		attempt := fmt.Sprintf("%s-%04d", id, n)
		if !open || n%2 == 0 {
			ev := coordinator.Accept{Task: n, Attempt: attempt, Epoch: 1, Digest: "ab", Totals: coordinator.Totals{Files: 1, Rows: 1000, Bytes: 1 << 20}}
			if err := step(ev); err != nil {
				return err
			}
		}
		if open {
			if err := openTask(tx, spec, id, attempt, n); err != nil {
				return err
			}
		}
	}
	if open {
		rec.State, rec.Finished, rec.Result = journal.StateOpen, time.Time{}, nil
	}
	r, err := json.Marshal(m.Record())
	if err != nil {
		return err
	}
	if err := tx.PutCommit(&journal.Commit{Job: id, Record: r}); err != nil {
		return err
	}
	if err := tx.TakeKey(rec.Principal, rec.Key, id); err != nil {
		return err
	}
	return tx.PutJob(rec)
}

func openTask(tx *journal.Tx, spec *planv1.WriteSpec, id, attempt string, n int) error {
	task := int32(n) //nolint:gosec // few
	t := &planv1.Task{JobId: id, Task: task, Sql: "SELECT * FROM s", Work: &planv1.Task_Write{Write: &planv1.WriteTask{Spec: spec}}}
	if err := tx.PutTask(t); err != nil {
		return err
	}
	if err := tx.PutAttempt(&journal.Attempt{Job: id, Task: task, ID: attempt, Epoch: 1, Prefix: spec.DataLocation + "/" + attempt, Catalog: "lake", Launched: time.Now()}); err != nil {
		return err
	}
	if n%2 != 0 {
		return nil
	}
	return tx.PutManifest(&journal.Manifest{Job: id, Task: task, Attempt: attempt, Files: 1, Rows: 1000, Bytes: 1 << 20, Chunks: [][]byte{make([]byte, 1000)}})
}
