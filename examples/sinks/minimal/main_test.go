package main

import (
	"testing"

	"github.com/signet-io/signet/plugins/sinktest"
)

func TestConformance(t *testing.T) { sinktest.Run(t, sinktest.InProcess(minimal{})) }
