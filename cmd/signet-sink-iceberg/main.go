// Command signet-sink-iceberg is the sink plugin for Apache Iceberg tables. The scheduler starts it.
package main

import (
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg"
)

func main() { sdk.Serve(iceberg.New()) }
