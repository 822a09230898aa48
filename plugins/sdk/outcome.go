package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
)

// tracker knows how far one Commit call got with its commit points, so that an error or a panic afterwards is given the right outcome.
type tracker struct {
	mu       sync.Mutex
	open     int // requests without a definite answer; a lost one stays open whatever later attempts say
	landed   bool
	version  string
	location string
}

// ask is called right before a request that may land.
func (t *tracker) ask() error {
	if err := fault.Hit("sdk.commit-point.before-send"); err != nil {
		return Refuse(Retryable, "%v", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
	return nil
}

// answer is called with the host's answer, and returns it.
func (t *tracker) answer(version, location string, err error) error {
	if lost := fault.Hit("sdk.commit-point.after-reply"); lost != nil {
		return lost // as if the reply had never come
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	refusal := new(RefusalError)
	switch {
	case err == nil:
		t.landed, t.version, t.location = true, version, location
	case errors.As(err, &refusal) && refusal.Kind == Already:
		t.landed, t.version, t.location = true, refusal.Version, refusal.Location
	case errors.As(err, &refusal) && refusal.Kind != Unknown:
		t.open--
	}
	return err
}

// outcome turns the end of a Commit call into the answer that the host gets.
func (t *tracker) outcome(resp *sinkv1.CommitResponse, err error) *sinkv1.CommitResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && resp.GetOutcome() == sinkv1.Outcome_OUTCOME_UNSPECIFIED {
		err = errors.New("the sink returned no outcome; this is a defect of the sink")
	}
	if err == nil {
		return t.checked(resp)
	}
	out := &sinkv1.CommitResponse{Message: err.Error(), Attempts: resp.GetAttempts(), Timings: resp.GetTimings()}
	refusal := new(RefusalError)
	switch errors.As(err, &refusal); {
	case t.landed:
		out.Outcome, out.Version, out.Location = sinkv1.Outcome_OUTCOME_COMMITTED, t.version, t.location
		out.Message = fmt.Sprintf("committed; afterwards the sink failed: %v", err)
	case t.open > 0:
		out.Outcome = sinkv1.Outcome_OUTCOME_UNKNOWN
	case refusal.Kind == 0 && transient(err):
		out.Outcome = sinkv1.Outcome_OUTCOME_RETRYABLE
	default:
		out.Outcome = outcomes[refusal.Kind]
		out.Version, out.Location = refusal.Version, refusal.Location
	}
	return out
}

// transient tells errors of the way to the host from errors of the sink.
func transient(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted:
		return true
	}
	return false
}

// outcomes of an error while nothing is pending. An error that is no refusal is one of the sink itself: nothing was sent, and it would
// fail the same way again.
var outcomes = map[refusalKind]sinkv1.Outcome{
	0: sinkv1.Outcome_OUTCOME_PERMANENT, Conflict: sinkv1.Outcome_OUTCOME_CONFLICT, Unknown: sinkv1.Outcome_OUTCOME_RETRYABLE,
	Permanent: sinkv1.Outcome_OUTCOME_PERMANENT, Already: sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, Fenced: sinkv1.Outcome_OUTCOME_PERMANENT,
	Retryable: sinkv1.Outcome_OUTCOME_RETRYABLE, NotFound: sinkv1.Outcome_OUTCOME_PERMANENT, Exists: sinkv1.Outcome_OUTCOME_PERMANENT,
}

// checked corrects an answer that contradicts what the host said.
func (t *tracker) checked(resp *sinkv1.CommitResponse) *sinkv1.CommitResponse {
	good := resp.GetOutcome() == sinkv1.Outcome_OUTCOME_COMMITTED || resp.GetOutcome() == sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED
	switch {
	case t.landed && !good:
		resp.Outcome, resp.Message = sinkv1.Outcome_OUTCOME_COMMITTED, "committed; the sink answered otherwise: "+resp.GetMessage()
		resp.Version, resp.Location = t.version, t.location
	case t.open > 0 && !good:
		resp.Outcome = sinkv1.Outcome_OUTCOME_UNKNOWN
	}
	return resp
}
