package executor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// What the scheduler has no room or no descriptors for is nobody's input.
func TestPlanError_SchedulerWithoutRoomIsAResource(t *testing.T) {
	for code, want := range map[codes.Code]planv1.ErrorClass{
		codes.ResourceExhausted: planv1.ErrorClass_ERROR_CLASS_RESOURCE, codes.Unavailable: planv1.ErrorClass_ERROR_CLASS_IO,
	} {
		err := planError(t.Context(), nil, "", outputError(status.Error(code, "spool: too many open files")))
		require.Equal(t, want, err.GetClass(), code)
		require.Contains(t, err.GetMessage(), "too many open files")
		require.NotContains(t, err.GetMessage(), "scratch")
	}
}
