package exchangeclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
)

var data = bytes.Repeat([]byte("signet "), 5000) // 35,000 bytes

func fetch(t *testing.T, e *executor) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	err := exchangeclient.Fetch(t.Context(), dialer(t, nil), part(e.address, data), &out)
	return out.Bytes(), err
}

func lostError(t *testing.T, err error) *exchangeclient.LostError {
	t.Helper()
	var le *exchangeclient.LostError
	require.ErrorAs(t, err, &le)
	require.Equal(t, "attempt-1", le.Attempt)
	require.Contains(t, err.Error(), "exec-1")
	require.Contains(t, err.Error(), "task 3")
	return le
}

func TestFetch_WholePart(t *testing.T) {
	e := start(t, sends(data, len(data), nil))
	got, err := fetch(t, e)
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.Equal(t, "attempt-1", e.calls[0].GetAttemptId())
	require.Equal(t, int32(2), e.calls[0].GetPartition())
	require.Equal(t, "t", e.calls[0].GetTicket())
}

// A stream that breaks goes on where it was; as long as there is progress it may break any number of times.
func TestFetch_ResumesAtOffset(t *testing.T) {
	broken := status.Error(codes.Unavailable, "connection reset")
	var answers []answer
	for end := 1000; end < len(data); end += 1000 {
		answers = append(answers, sends(data, end, broken))
	}
	e := start(t, append(answers, sends(data, len(data), nil))...)
	got, err := fetch(t, e)
	require.NoError(t, err)
	require.Equal(t, data, got)
	offsets := e.offsets()
	require.Len(t, offsets, 35)
	for i, off := range offsets {
		require.Equal(t, int64(i)*1000, off)
	}
}

// The executor's process is gone for a moment, or its connection is.
func TestFetch_ConnectionBreaksInTheMiddle(t *testing.T) {
	half := make(chan struct{})
	e := start(t, func(req *executorv1.FetchRequest, st stream) error {
		if err := sends(data, 20000, nil)(req, st); err != nil {
			return err
		}
		close(half)
		<-st.Context().Done()
		return st.Context().Err()
	}, sends(data, len(data), nil))
	result := make(chan error, 1)
	var out bytes.Buffer
	d := dialer(t, func(c *exchangeclient.Config) { c.Tries, c.MaxPause = 1000, 20*time.Millisecond })
	go func() { result <- exchangeclient.Fetch(t.Context(), d, part(e.address, data), &out) }()
	<-half
	address := e.address
	e.stop()
	e.listen(address)
	select {
	case err := <-result:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("no result")
	}
	require.Equal(t, data, out.Bytes())
}

func TestFetch_UnknownIsLostAtOnce(t *testing.T) {
	for _, code := range []codes.Code{codes.NotFound, codes.OutOfRange, codes.DataLoss, codes.Unimplemented, codes.PermissionDenied} {
		e := start(t, fails(status.Error(code, "no such output")))
		_, err := fetch(t, e)
		lostError(t, err)
		require.ErrorContains(t, err, "no such output")
		require.Len(t, e.offsets(), 1, "%s is not tried again", code)
	}
}

func TestFetch_GivesUpAfterTries(t *testing.T) {
	e := start(t, sends(data, 2000, status.Error(codes.Unavailable, "busy")))
	_, err := fetch(t, e)
	lostError(t, err)
	require.ErrorContains(t, err, "given up after 6 tries")
	require.Equal(t, []int64{0, 2000, 2000, 2000, 2000, 2000, 2000}, e.offsets(), "the first one made progress")
}

func TestFetch_NobodyListens(t *testing.T) {
	const address = "127.0.0.1:1" // where nobody listens
	err := exchangeclient.Fetch(t.Context(), dialer(t, nil), part(address, data), io.Discard)
	lostError(t, err)
	require.ErrorContains(t, err, "refused")
	require.ErrorContains(t, err, "only processes of its own machine", "the likely mistake where executors of several machines have a loopback address")
}

// Whatever an executor sends that is not the part is not taken for it.
func TestFetch_RefusesOtherBytes(t *testing.T) {
	wrong := bytes.Clone(data)
	wrong[17]++
	for want, a := range map[string]answer{
		"wrong checksum":           sends(wrong, len(wrong), nil),
		"it has 34000 bytes":       sends(data, 34000, nil),
		"1000 bytes at offset 350": sends(append(bytes.Clone(data), data...), 2*len(data), nil),
		"it has 0 bytes":           fails(nil),
		"0 bytes at offset 0": func(_ *executorv1.FetchRequest, st stream) error {
			for {
				if err := st.Send(&executorv1.FetchResponse{}); err != nil {
					return err
				}
			}
		},
	} {
		e := start(t, a)
		_, err := fetch(t, e)
		lostError(t, err)
		require.ErrorContains(t, err, want)
		require.Len(t, e.offsets(), 1)
	}
}

func TestFetch_RefusesPartWithoutChecksum(t *testing.T) {
	lostError(t, exchangeclient.Fetch(t.Context(), dialer(t, nil), part("", data), io.Discard))
	p := part("127.0.0.1:1", data)
	p.Sha256 = nil
	require.ErrorContains(t, exchangeclient.Fetch(t.Context(), dialer(t, nil), p, io.Discard), "no checksum")
}

func TestFetch_StalledStreamIsResumed(t *testing.T) {
	e := start(t, hangs, sends(data, len(data), nil))
	var out bytes.Buffer
	d := dialer(t, func(c *exchangeclient.Config) { c.Stall = 50 * time.Millisecond })
	require.NoError(t, exchangeclient.Fetch(t.Context(), d, part(e.address, data), &out))
	require.Equal(t, data, out.Bytes())
	d = dialer(t, func(c *exchangeclient.Config) { c.Stall, c.Tries = 20*time.Millisecond, 2 })
	err := exchangeclient.Fetch(t.Context(), d, part(start(t, hangs).address, data), io.Discard)
	lostError(t, err)
	require.ErrorContains(t, err, "sends nothing")
}

// slowWriter takes longer than the stall limit, once; that is not the executor's fault.
type slowWriter struct {
	bytes.Buffer
	slept bool
}

func (s *slowWriter) Write(p []byte) (int, error) {
	if !s.slept {
		s.slept = true
		<-time.After(3 * stall)
	}
	return s.Buffer.Write(p)
}

const stall = 300 * time.Millisecond

func TestFetch_SlowWriterIsNoStall(t *testing.T) {
	e := start(t, sends(data, len(data), nil))
	out := &slowWriter{}
	d := dialer(t, func(c *exchangeclient.Config) { c.Stall = stall })
	require.NoError(t, exchangeclient.Fetch(t.Context(), d, part(e.address, data), out))
	require.Equal(t, data, out.Bytes())
	require.Len(t, e.offsets(), 1)
}

func TestFetch_CancelStopsIt(t *testing.T) {
	reached := make(chan struct{})
	e := start(t, func(req *executorv1.FetchRequest, st stream) error {
		close(reached)
		return hangs(req, st)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the job was cancelled")
	go func() { <-reached; cancel(why) }()
	err := exchangeclient.Fetch(ctx, dialer(t, nil), part(e.address, data), io.Discard)
	require.ErrorIs(t, err, why)
	require.False(t, errors.As(err, new(*exchangeclient.LostError)))
}

type fullDisk struct{}

var errFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// A full disk here is no loss there.
func TestFetch_WriterErrorIsNoLoss(t *testing.T) {
	e := start(t, sends(data, len(data), nil))
	err := exchangeclient.Fetch(t.Context(), dialer(t, nil), part(e.address, data), fullDisk{})
	require.ErrorIs(t, err, errFull)
	require.False(t, errors.As(err, new(*exchangeclient.LostError)))
	require.Len(t, e.offsets(), 1)
}

func TestFetch_EmptyPart(t *testing.T) {
	e := start(t, fails(nil))
	var out bytes.Buffer
	require.NoError(t, exchangeclient.Fetch(t.Context(), dialer(t, nil), part(e.address, nil), &out))
	require.Zero(t, out.Len())
}
