package iceberg_test

import (
	"testing"

	"github.com/signet-io/signet/plugins/sinktest"
	"github.com/signet-io/signet/plugins/sinktest/icecatalog"
	"github.com/signet-io/signet/sinks/iceberg"
)

func TestConformance(t *testing.T) {
	sinktest.Run(t, sinktest.InProcess(iceberg.New()), sinktest.Options{Catalog: icecatalog.In(t.TempDir())})
}
