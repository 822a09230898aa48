package sdk

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

const (
	committed = sinkv1.Outcome_OUTCOME_COMMITTED
	already   = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED
	conflict  = sinkv1.Outcome_OUTCOME_CONFLICT
	retryable = sinkv1.Outcome_OUTCOME_RETRYABLE
	permanent = sinkv1.Outcome_OUTCOME_PERMANENT
	unknown   = sinkv1.Outcome_OUTCOME_UNKNOWN
)

// The outcome follows from what the host answered; a sink can only make it less certain, never more.
func TestOutcome_FollowsTheHost(t *testing.T) {
	lost, broken := status.Error(codes.Unavailable, "gone"), errors.New("defect")
	says := func(o sinkv1.Outcome) *sinkv1.CommitResponse {
		return &sinkv1.CommitResponse{Outcome: o, Version: "sink's"}
	}
	for _, c := range []struct {
		name    string
		answers []error // of the commit points, in order
		resp    *sinkv1.CommitResponse
		err     error
		want    sinkv1.Outcome
	}{
		{"landed", []error{nil}, says(committed), nil, committed},
		{"landed, then panic", []error{nil}, nil, fmt.Errorf("%w", ErrPanic), committed},
		{"landed, sink says conflict", []error{nil}, says(conflict), nil, committed},
		{"already, then error", []error{Refuse(Already, "")}, nil, broken, committed},
		{"lost, sink passes it on", []error{lost}, nil, lost, unknown},
		{"lost, then panic", []error{lost}, nil, ErrPanic, unknown},
		{"lost, sink claims a conflict", []error{lost}, says(conflict), nil, unknown},
		{"lost, sink claims nothing was sent", []error{lost}, says(retryable), nil, unknown},
		{"lost, then found", []error{lost}, says(already), nil, already},
		{"lost, then a conflict of the next try", []error{lost, Refuse(Conflict, "")}, nil, Refuse(Conflict, ""), unknown},
		{"unknown", []error{Refuse(Unknown, "")}, nil, Refuse(Unknown, ""), unknown},
		{"conflict, then landed", []error{Refuse(Conflict, ""), nil}, says(committed), nil, committed},
		{"conflict", []error{Refuse(Conflict, "")}, nil, Refuse(Conflict, ""), conflict},
		{"conflict, then an error", []error{Refuse(Conflict, "")}, nil, broken, permanent},
		{"fenced", []error{Refuse(Fenced, "")}, nil, Refuse(Fenced, ""), permanent},
		{"refused", nil, nil, Refuse(Permanent, ""), permanent},
		{"wrapped refusal", nil, nil, fmt.Errorf("load: %w", Refuse(Retryable, "")), retryable},
		{"host gone before", nil, nil, lost, retryable},
		{"deadline before", nil, nil, context.DeadlineExceeded, retryable},
		{"defect before", nil, nil, broken, permanent},
		{"panic before", nil, nil, ErrPanic, permanent},
		{"no outcome", nil, &sinkv1.CommitResponse{}, nil, permanent},
		{"nothing", nil, nil, nil, permanent},
		{"plain conflict", nil, says(conflict), nil, conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			track := &tracker{}
			for _, a := range c.answers {
				require.NoError(t, track.ask())
				require.Equal(t, a, track.answer("host's", "at", a))
			}
			got := track.outcome(c.resp, c.err)
			require.Equal(t, c.want, got.GetOutcome(), got.GetMessage())
			if c.err != nil {
				require.Contains(t, got.GetMessage(), c.err.Error())
			}
		})
	}
}

func TestRefusal_TravelsWithItsKind(t *testing.T) {
	for kind, k := range kinds {
		sent := fmt.Errorf("while loading: %w", &RefusalError{Kind: kind, Message: "no", Version: "7", Location: "file:///t"})
		err := edge(sent)
		require.Equal(t, k.code, status.Code(err))
		back := FromStatus(err)
		require.ErrorIs(t, back, k.err)
		r := new(RefusalError)
		require.ErrorAs(t, back, &r)
		require.Equal(t, RefusalError{Kind: kind, Message: "while loading: no", Version: "7", Location: "file:///t"}, *r)
		for other, o := range kinds {
			require.Equal(t, other == kind, errors.Is(back, o.err))
		}
	}
	require.NoError(t, FromStatus(nil))
	require.Equal(t, codes.Internal, status.Code(edge(fmt.Errorf("x: %w", ErrPanic))))
	require.Equal(t, codes.DataLoss, status.Code(edge(ErrManifest)))
	require.Equal(t, codes.Unavailable, status.Code(edge(fmt.Errorf("x: %w", status.Error(codes.Unavailable, "y")))))
}
