package executor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/executor/result"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/internal/rpc"
)

// runResult runs a query for its rows: they go to the scheduler as they come, unless it wants large results to stay here.
func (e *Executor) runResult(a *attempt, inst *duckdb.Instance, dir string) (*planv1.ExchangeOutput, error) {
	above := a.task.GetResult().GetKeepAbove()
	if above <= 0 {
		return nil, e.pushOutput(a, func(send func([]byte) error) (int64, error) { return e.query(a, inst, send) })
	}
	k := &keptRows{a: a, dir: filepath.Join(dir, exchange.FilesDir), above: above, free: e.cfg.MinFreeBytes, sum: sha256.New()}
	defer k.close()
	rows, err := e.query(a, inst, k.write)
	if err != nil {
		return nil, err
	}
	a.rows.Store(rows)
	if k.file == nil {
		return nil, e.pushOutput(a, func(send func([]byte) error) (int64, error) { return rows, send(k.head) })
	}
	if err := k.file.Close(); err != nil {
		return nil, err
	}
	part := &planv1.ExchangePartition{Rows: rows, Bytes: k.size, Sha256: k.sum.Sum(nil)}
	out := &planv1.ExchangeOutput{Partitions: []*planv1.ExchangePartition{part}}
	return out, e.keepOutput(a, func() error { return e.serving.store.PutRows(a.ref, a.task.GetResult(), k.dir, part) })
}

// query hands on the Arrow IPC stream of the task's rows.
func (e *Executor) query(a *attempt, inst *duckdb.Instance, send func([]byte) error) (int64, error) {
	return result.Stream(a.ctx, inst, a.task.GetSql(), a.task.GetResult().GetMaxBytes(), func(b []byte) error {
		a.bytes.Add(int64(len(b)))
		return send(b)
	})
}

// keptRows is a result whose size is not known yet: it is in memory while it is small, and in a file from then on.
type keptRows struct {
	a     *attempt
	dir   string
	above int64
	free  int64 // scratch space that must stay free
	head  []byte
	file  *os.File
	size  int64
	sum   hash.Hash
	since int64 // bytes since the space was looked at
}

// spaceEvery is how many bytes are written between two looks at the space that is left.
const spaceEvery = 64 << 20

func (k *keptRows) write(b []byte) error {
	k.size += int64(len(b))
	if k.file == nil && k.size <= k.above {
		k.head = append(k.head, b...)
		return nil
	}
	if k.file == nil {
		if err := k.open(); err != nil {
			return err
		}
		if err := k.append(k.head); err != nil {
			return err
		}
		k.head = nil
	}
	return k.append(b)
}

func (k *keptRows) open() (err error) {
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	if k.file, err = os.OpenFile(filepath.Join(k.dir, exchange.RowsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	return nil
}

func (k *keptRows) append(b []byte) error {
	if k.since += int64(len(b)); k.since > spaceEvery && k.free > 0 {
		k.since = 0
		if err := upload.CheckSpace(k.dir, k.free); err != nil {
			return err
		}
	}
	k.sum.Write(b)
	_, err := k.file.Write(b)
	return err
}

func (k *keptRows) close() {
	if k.file != nil {
		_ = k.file.Close() // it is closed where it counts
	}
}

// pushOutput streams what produce sends to the scheduler.
func (e *Executor) pushOutput(a *attempt, produce func(send func([]byte) error) (int64, error)) error {
	stream, err := e.client.PushOutput(e.auth(a.ctx))
	if err != nil {
		return outputError(err)
	}
	p := &pusher{stream: stream, first: a.ref}
	rows, err := produce(p.send)
	a.rows.Store(rows)
	if err == nil {
		err = p.message(nil, true, rows)
	}
	if err != nil && !errors.Is(err, io.EOF) { // after an EOF of Send the reason is in the answer
		return err
	}
	answer, err := stream.CloseAndRecv()
	switch {
	case err != nil:
		return outputError(err)
	case !answer.GetAccepted():
		return outputError(errors.New(answer.GetReason()))
	}
	return nil
}

type pusher struct {
	stream grpc.ClientStreamingClient[executorv1.PushOutputRequest, executorv1.PushOutputResponse]
	first  *executorv1.AttemptRef // in the first message only
}

func (p *pusher) send(data []byte) error {
	for len(data) > rpc.Chunk {
		if err := p.message(data[:rpc.Chunk], false, 0); err != nil {
			return err
		}
		data = data[rpc.Chunk:]
	}
	return p.message(data, false, 0)
}

func (p *pusher) message(data []byte, last bool, rows int64) error {
	err := p.stream.Send(&executorv1.PushOutputRequest{Attempt: p.first, Data: data, Last: last, Rows: rows})
	p.first = nil
	if err != nil {
		return outputError(err)
	}
	return nil
}
