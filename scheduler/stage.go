package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/journal"
)

var errRestage = errors.New("what the sink was sent is not all there is")

// stager hands accepted task manifests to the sink while the job still runs, so that little is left to do when the last one comes.
// What it sends is in the journal by then; if the stream breaks, everything is staged again from there.
type stager struct {
	w *writeState

	mu     sync.Mutex
	stream grpc.ClientStreamingClient[sinkv1.StageRequest, sinkv1.StageResponse]
	broken error
	sent   int64
	result *sinkv1.StageResponse // once the stream has ended well
}

// stage is the job's stager; it opens its stream at once, so that the sink loads the table while tasks run.
func (w *writeState) stage() *stager {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.staged == nil {
		w.staged = &stager{w: w}
	}
	return w.staged
}

// open starts the stream. Called with mu held.
func (st *stager) open(ctx context.Context) error {
	if st.stream != nil || st.broken != nil {
		return st.broken
	}
	st.w.mu.Lock()
	st.w.stagings++
	st.w.mu.Unlock()
	lease := st.w.stageLease()
	if lease == nil { // an executor has reported to a scheduler that has not taken up the job yet
		st.broken = errRestage
		return st.broken
	}
	p, err := st.w.s.plugin(ctx, st.w.target)
	if err == nil {
		st.stream, err = p.Client().Stage(ctx)
	}
	if err == nil {
		err = st.stream.Send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{
			Lease: lease.Token(), Table: st.w.target.ref(), Spec: st.w.spec, JobId: st.w.job.id,
		}}})
	}
	st.broken = err
	return err
}

// begin opens the stream early. An error is kept for finish, which stages anew.
func (st *stager) begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	_ = st.open(st.w.job.ctx)
}

// add sends one accepted task manifest. Errors are kept for finish.
func (st *stager) add(_ int, chunks [][]byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.sendManifest(chunks)
}

func (st *stager) sendManifest(chunks [][]byte) {
	if st.open(st.w.job.ctx) != nil {
		return
	}
	for _, b := range chunks {
		c := &planv1.ManifestChunk{}
		if st.broken = proto.Unmarshal(b, c); st.broken != nil {
			return
		}
		if st.broken = st.stream.Send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Manifest{Manifest: c}}); st.broken != nil {
			return
		}
	}
	st.sent++
}

// finish ends the stream and returns the staged references.
func (st *stager) finish(ctx context.Context) (*sinkv1.StageResponse, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := fault.Hit("scheduler.stage.before-finish"); err != nil {
		return nil, err
	}
	if st.result != nil {
		return st.result, nil
	}
	res, err := st.close()
	for tries := 0; err != nil && tries < 3 && ctx.Err() == nil; tries++ {
		st.w.s.log.Warn("staging again from the journal", "job", st.w.job.id, "error", err)
		res, err = st.again(ctx)
	}
	st.result = res
	return res, err
}

// close sends the trailer. Called with mu held.
func (st *stager) close() (*sinkv1.StageResponse, error) {
	if err := st.open(st.w.job.ctx); err != nil {
		return nil, err
	}
	t := st.w.totals()
	err := st.stream.Send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{Manifests: st.sent, Totals: t}}})
	if err != nil {
		st.broken = err
	}
	res, err := st.stream.CloseAndRecv() // also where a broken stream tells why
	if err != nil {
		st.broken = err
		return nil, err
	}
	if !proto.Equal(res.Totals, t) {
		st.broken = fmt.Errorf("the sink staged %v of %v", res.Totals, t)
		return nil, st.broken
	}
	return res, nil
}

// again stages everything from the journal.
func (st *stager) again(_ context.Context) (*sinkv1.StageResponse, error) {
	st.stream, st.broken, st.sent = nil, nil, 0
	err := st.w.s.journal.View(func(tx *journal.Tx) error {
		return tx.Manifests(st.w.job.id, func(m *journal.Manifest) error {
			st.sendManifest(m.Chunks)
			return st.broken
		})
	})
	if err != nil {
		return nil, err
	}
	return st.close()
}

func (w *writeState) totals() *sinkv1.Totals {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.machine.Totals()
	return &sinkv1.Totals{Files: t.Files, Rows: t.Rows, Bytes: t.Bytes, ReplacedFiles: t.ReplacedFiles, DeletedRows: t.DeletedRows, UpdatedRows: t.UpdatedRows}
}

// reset forgets what was staged, so that the next finish stages anew.
func (st *stager) reset() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.stream, st.broken, st.result = nil, errRestage, nil
}

// restore tells a stager that manifests were accepted before it existed: they are read from the journal at the end.
func (st *stager) restore(accepted bool) {
	if accepted {
		st.reset()
	}
}
