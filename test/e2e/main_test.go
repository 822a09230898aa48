package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

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
	return m.Run()
}
