package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
)

// target is a commit point to which one identical request can be sent any number of times.
type target interface {
	// send sends the attempt. It returns where the commit is.
	send(ctx context.Context, a *coordinator.Attempt) (location string, err error)
	// look tells from the state of the table or store alone whether the attempt landed (landed, found), can never land (dead), or
	// neither (unknown). An error: the look itself failed.
	look(ctx context.Context, a *coordinator.Attempt) (coordinator.Outcome, error)
}

func outcome(k coordinator.OutcomeKind, format string, args ...any) coordinator.Outcome {
	return coordinator.Outcome{Kind: k, Reason: fmt.Sprintf(format, args...)}
}

// errLost stands for a reply that a fault point took away.
var errLost = errors.New("the reply was lost")

// sendOnce sends the attempt and decides what the answer means. first is true when this very request was never sent before: only then is a
// definite answer of the commit point about all there is. A failed send is never believed without a look.
func sendOnce(ctx context.Context, t target, a *coordinator.Attempt, first bool) (o coordinator.Outcome, unsent bool) {
	location, err := t.send(ctx, a)
	if err == nil {
		if err = fault.Hit("broker.commit.after-send"); err == nil {
			err = fault.Hit("broker.commit.lost-reply")
		}
		if err == nil {
			return coordinator.Outcome{Kind: coordinator.OutcomeLanded, Version: a.Version, Location: location}, false
		}
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	unsent = errors.Is(err, catalog.ErrNotSent)
	// The caller's time may be up just because the send took it; the look has its own.
	lookCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	seen, lookErr := look(lookCtx, t, a)
	switch {
	case lookErr == nil && seen.Kind != coordinator.OutcomeUnknown:
		return seen, false
	case first && unsent:
		return outcome(coordinator.OutcomeConflict, "nothing was sent: %v", err), true
	case lookErr != nil:
		return outcome(coordinator.OutcomeUnknown, "%v; and the table could not be read: %v", err, lookErr), false
	case first && errors.Is(err, catalog.ErrConflict):
		return outcome(coordinator.OutcomeConflict, "%v", err), false
	case first && errors.Is(err, catalog.ErrPermanent):
		return outcome(coordinator.OutcomeRefused, "%v", err), false
	default:
		return outcome(coordinator.OutcomeUnknown, "%v", err), false
	}
}

func look(ctx context.Context, t target, a *coordinator.Attempt) (coordinator.Outcome, error) {
	if err := fault.Hit("broker.look.before"); err != nil {
		return coordinator.Outcome{}, err
	}
	return t.look(ctx, a)
}

// definite reports whether an outcome ends an attempt.
func definite(o coordinator.Outcome) bool { return o.Kind != coordinator.OutcomeUnknown }
