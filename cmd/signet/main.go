package main

import (
	"os"

	"github.com/signet-io/signet/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
