package executor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestSessionError_IsTheReasonAlone(t *testing.T) {
	for want, err := range map[string]error{
		"the scheduler ended the session": nil,
		"plain":                           errors.New("plain"),
		"wrong token":                     status.Error(codes.Unauthenticated, "wrong token"),
		"Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused": status.Error(codes.Unavailable,
			`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`),
	} {
		require.Equal(t, want, sessionError(err))
	}
}
