package executor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// A place that no executor can write to is no reason to try again.
func TestUnfit_APlaceForFilesIsTheStatementsMatter(t *testing.T) {
	err := checkPrefix("gopher:/bucket/t/data/j/0/0/a", &executorv1.AttemptRef{JobId: "j", AttemptId: "a"})
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, unfit(err).GetClass())
	require.Contains(t, unfit(err).GetMessage(), "gopher:/bucket/t/data")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, unfit(errors.New("another epoch")).GetClass())
}
