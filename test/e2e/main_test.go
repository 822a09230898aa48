package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/signet-io/signet/internal/cli"
	"github.com/signet-io/signet/test/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for processes more than they work.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("5"); err != nil {
			panic(err)
		}
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "signet-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := harness.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	harness.Inline = func(args []string, out, errs io.Writer) int {
		return cli.Run(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: out, Err: errs}, nil)
	}
	return m.Run()
}
