package scheduler

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/scheduler/journal"
)

// heldStore holds back the check of a file until it is let go, or its caller has gone.
type heldStore struct {
	storage.Store
	asked, release chan struct{}
}

func (s *heldStore) Stat(ctx context.Context, _ string) (storage.Info, error) {
	s.asked <- struct{}{}
	select {
	case <-ctx.Done():
		return storage.Info{}, fmt.Errorf("file: %w", context.Cause(ctx))
	case <-s.release:
		return storage.Info{Size: 10}, nil
	}
}

// report is a write of one task, whose attempt is open, and its task manifest.
type report struct {
	t       *testing.T
	w       *writeState
	store   *heldStore
	attempt string
	chunks  []*planv1.ManifestChunk
}

func newReport(t *testing.T) *report {
	t.Helper()
	s := newBench(t).server
	id := uuid.NewString()
	j := newJob(s.ctx, journal.Job{ID: id, State: journal.StateOpen})
	spec := &planv1.WriteSpec{TableUuid: uuid.NewString(), DataLocation: "file:///lake/t/data"}
	store := &heldStore{asked: make(chan struct{}), release: make(chan struct{})}
	task := &planv1.Task{JobId: id, Work: &planv1.Task_Write{Write: &planv1.WriteTask{}}}
	w := &writeState{
		s: s, job: j, target: &target{entry: &catalogEntry{name: "lake"}, ident: catalog.Ident{"s", "t"}}, spec: spec, tasks: []*planv1.Task{task}, store: store,
		machine: coordinator.New(id, s.journal.Epoch()), changed: make(chan struct{}), settled: make(chan struct{}),
	}
	_, err := w.step(coordinator.Begin{Tasks: 1, TableUUID: spec.TableUuid}, nil)
	require.NoError(t, err)
	r := &report{t: t, w: w, store: store, attempt: uuid.NewString()}
	s.openAttempt(&attempt{ref: &executorv1.AttemptRef{JobId: id, AttemptId: r.attempt, Epoch: s.journal.Epoch()}, job: j, task: task})
	prefix := attemptPrefix(spec, id, 0, 0, r.attempt)
	r.chunks, err = manifest.Encode(
		&planv1.ManifestHeader{JobId: id, AttemptId: r.attempt, Epoch: s.journal.Epoch(), TableUuid: spec.TableUuid, Prefix: prefix},
		[]*planv1.DataFile{{Path: fmt.Sprintf("%s/0-0-%s-0.parquet", prefix, r.attempt), Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 1, SizeBytes: 10}},
	)
	require.NoError(t, err)
	return r
}

type answer struct {
	accepted bool
	reason   string
	err      error
}

// send reports the manifest, and returns when its file is being checked.
func (r *report) send(ctx context.Context) <-chan answer {
	r.t.Helper()
	rd := manifest.NewReader(manifest.Limits{})
	for _, c := range r.chunks {
		require.NoError(r.t, rd.Add(c))
	}
	out := make(chan answer, 1)
	go func() {
		ok, reason, err := r.w.accept(ctx, rd)
		out <- answer{ok, reason, err}
	}()
	select {
	case <-r.store.asked:
	case a := <-out:
		r.t.Fatalf("answered before the check: %+v", a)
	}
	return out
}

// A call that ends while the files are checked says nothing about them: no loss is counted, and the attempt may report again.
func TestAccept_CallThatIsGivenUpCountsNothing(t *testing.T) {
	r := newReport(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := r.send(ctx)
	cancel()
	a := <-out
	require.ErrorIs(t, a.err, context.Canceled)
	require.False(t, a.accepted)
	require.Empty(t, a.reason)
	require.Empty(t, r.w.job.events.take(), "the loop heard of nothing")

	out = r.send(t.Context())
	close(r.store.release)
	require.Equal(t, answer{accepted: true}, <-out)
	require.Nil(t, r.w.giveUp(r.attempt), "it has won, and nobody may touch its files")
	winner, won := r.w.winner(0)
	require.True(t, won)
	require.Equal(t, r.attempt, winner.Attempt)
}

// An attempt that is given up while its report is checked does not win any more, also if its files are fine.
func TestAccept_AttemptThatIsGivenUpMeanwhileIsRefused(t *testing.T) {
	r := newReport(t)
	out := r.send(t.Context())
	require.NotNil(t, r.w.giveUp(r.attempt))
	close(r.store.release)
	require.Equal(t, answer{reason: errNotOpen.Error()}, <-out)
	_, won := r.w.winner(0)
	require.False(t, won)
	require.Empty(t, r.w.job.events.take())
	require.NoError(t, r.w.s.journal.View(func(tx *journal.Tx) error {
		return tx.Manifests(r.w.job.id, func(*journal.Manifest) error { t.Error("a manifest was journalled"); return nil })
	}))
}
