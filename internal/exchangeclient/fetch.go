package exchangeclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/fault"
)

// errWrite wraps what the caller's writer answered: the part is not lost.
var errWrite = errors.New("write")

// errStalled is a stream that brings nothing.
var errStalled = errors.New("the executor sends nothing")

// Fetch writes the bytes of one part to w. The error is a *LostError where the part cannot be had; errors of w and of ctx come back as they
// are.
func Fetch(ctx context.Context, d *Dialer, part *planv1.ExchangePart, w io.Writer) error {
	if part.GetBytes() < 0 || len(part.GetSha256()) != sha256.Size {
		return fmt.Errorf("partition %d of attempt %s: the part has no size or no checksum", part.GetPartition(), part.GetAttemptId())
	}
	if part.GetAddress() == "" {
		return lost(part, errors.New("it has no address"))
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := fault.Hit("exchange.fetch.before-part"); err != nil {
		return lost(part, err)
	}
	cc, release, err := d.get(part.GetAddress())
	if err != nil {
		return err
	}
	defer release()
	f := &fetch{client: executorv1.NewExchangeClient(cc), part: part, w: w, sum: sha256.New(), stall: d.cfg.Stall}
	pause, tries := d.cfg.MinPause, 0
	for {
		before := f.done
		err := f.once(ctx)
		switch {
		case err == nil:
			return f.check()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errWrite):
			return err
		case !passing(err):
			return lost(part, explain(part, err))
		}
		if f.done > before {
			pause, tries = d.cfg.MinPause, 0
		} else if tries++; tries >= d.cfg.Tries {
			return lost(part, fmt.Errorf("given up after %d tries: %w", tries, explain(part, err)))
		}
		if !sleep(ctx, pause/2+rand.N(pause/2+1)) { //nolint:gosec // spreading, not secrecy
			return context.Cause(ctx)
		}
		pause = min(2*pause, d.cfg.MaxPause)
	}
}

// explain adds what a loopback address means where it is the likely mistake.
func explain(part *planv1.ExchangePart, err error) error {
	if s, ok := status.FromError(err); ok {
		err = errors.New(s.Message())
	}
	if IsLoopback(part.GetAddress()) {
		return fmt.Errorf("%w (only processes of its own machine reach that address; executors of several machines need --exchange-listen)", err)
	}
	return err
}

// passing tells whether another try may help.
func passing(err error) bool {
	if errors.Is(err, errStalled) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unknown, codes.Canceled:
		return !errors.Is(err, errWrong)
	default: // NotFound above all
		return false
	}
}

// errWrong is an answer that is not the part's bytes.
var errWrong = errors.New("the executor's answer is not what its task reported")

type fetch struct {
	client executorv1.ExchangeClient
	part   *planv1.ExchangePart
	w      io.Writer
	sum    hash.Hash
	done   int64
	stall  time.Duration
}

// once is one stream, from where the last one broke.
func (f *fetch) once(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.stall, func() { cancel(errStalled) })
	defer watch.Stop()
	err := f.stream(ctx, watch)
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w for %s", errStalled, f.stall)
	}
	return err
}

func (f *fetch) stream(ctx context.Context, watch *time.Timer) error {
	stream, err := f.client.Fetch(ctx, &executorv1.FetchRequest{
		AttemptId: f.part.GetAttemptId(), Partition: f.part.GetPartition(), Ticket: f.part.GetTicket(), Offset: f.done,
	})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		watch.Stop() // a writer that is slow is not the executor's fault
		data := m.GetData()
		if len(data) == 0 || int64(len(data)) > f.part.GetBytes()-f.done {
			return fmt.Errorf("%w: %d bytes at offset %d of %d", errWrong, len(data), f.done, f.part.GetBytes())
		}
		if _, err := f.w.Write(data); err != nil {
			return fmt.Errorf("%w partition %d of attempt %s: %w", errWrite, f.part.GetPartition(), f.part.GetAttemptId(), err)
		}
		f.sum.Write(data)
		f.done += int64(len(data))
		watch.Reset(f.stall)
	}
}

func (f *fetch) check() error {
	if f.done != f.part.GetBytes() {
		return lost(f.part, fmt.Errorf("%w: it has %d bytes, not %d", errWrong, f.done, f.part.GetBytes()))
	}
	if !bytes.Equal(f.sum.Sum(nil), f.part.GetSha256()) {
		return lost(f.part, fmt.Errorf("%w: wrong checksum", errWrong))
	}
	return nil
}

// sleep waits; false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
