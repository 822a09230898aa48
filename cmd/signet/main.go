package main

import (
	"os"

	"github.com/signet-io/signet/internal/cli"
	"github.com/signet-io/signet/internal/interrupts"
)

func main() { os.Exit(cli.Main(os.Args[1:], interrupts.C)) }
