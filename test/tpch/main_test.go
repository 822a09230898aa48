//go:build cgo

package tpch_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/test/harness"
)

var (
	dataDir = flag.String("data", "", "directory with TPC-H tables, each a directory of Parquet files; empty: the test makes small ones")
	only    = flag.Int("query", -1, "the only query to run, counted from 1 in TPC-H and from 0 in a seed; -1: all")
	report  = flag.String("report", "", "file to write the table of TPC-H queries to")
	queries = flag.Int("queries", 50, "how many random queries to run")
	first   = flag.Uint64("first", 1, "seed of the first of them")
)

var pool *duckdb.Pool

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(all(m))
}

func all(m *testing.M) int {
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
	pool = duckdb.NewPool(duckdb.Options{Ready: 1, MemoryBytes: 4 << 30})
	defer func() { _ = pool.Close() }()
	return m.Run()
}
