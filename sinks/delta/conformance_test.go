package delta_test

import (
	"testing"

	"github.com/signet-io/signet/plugins/sinktest"
	"github.com/signet-io/signet/sinks/delta"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, sinktest.InProcess(delta.New()), sinktest.Options{EmptyIsNull: true})
}
