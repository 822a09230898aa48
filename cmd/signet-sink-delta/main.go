// Command signet-sink-delta is the sink plugin for Delta tables. The scheduler starts it.
package main

import (
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta"
)

func main() { sdk.Serve(delta.New()) }
