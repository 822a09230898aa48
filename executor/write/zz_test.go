package write_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

func TestZZRSS(t *testing.T) {
	files, _ := filepath.Glob("/tmp/execb/data/li/*.parquet")
	mem := int64(512 << 20)
	pool := duckdb.NewPool(duckdb.Options{Ready: -1, Setup: transform.Register})
	defer pool.Close()
	fields := "orderkey long,partkey long,suppkey long,linenumber int,quantity decimal(15,2),price decimal(15,2),discount decimal(15,2),tax decimal(15,2),rf string,ls string,ship date,commitd date,receipt date,si string,sm string,comment string"
	var tb *table
	{
		var fs = newTable(t, field(1, "a", "int"))
		_ = fs
	}
	n := int32(0)
	var fl []any
	_ = fl
	tb = newTable(t)
	for _, f := range strings.Split(fields, ",") {
		if i := strings.Index(f, " "); i > 0 && !strings.HasPrefix(f, "2)") {
			name, ty := f[:i], f[i+1:]
			if ty == "decimal(15" {
				ty = "decimal(15,2)"
			}
			n++
			fd := field(n, name, ty)
			tb.Schema.Fields = append(tb.Schema.Fields, fd)
		}
	}
	tb2 := newTable(t, tb.Schema.Fields...)
	switch os.Getenv("ZZ") {
	case "day":
		tb2.partitionBy("d", 11, identity, 0)
		tb2.write().SortForPartitions = true
	case "month":
		tb2.partitionBy("d", 11, 5, 0)
	case "sort":
		tb2.sortBy(11, identity, 0, false, false)
	case "bucket":
		tb2.partitionBy("d", 1, bucket, 16)
	case "daysort":
		tb2.partitionBy("d", 11, identity, 0)
		tb2.write().SortForPartitions = true
		tb2.sortBy(1, identity, 0, false, false)
	}
	scratch := t.TempDir()
	tb2.task.Sql = "SELECT * FROM read_parquet(" + duckdb.ListLiteral(files) + ")"
	t0 := time.Now()
	inst, err := pool.Open(context.Background(), duckdb.Access{ReadFiles: files, WriteDirs: []string{scratch}, TempDir: scratch + "/spill", Threads: 2, MemoryBytes: mem, KeepOrder: write.KeepOrder(tb2.task)})
	if err != nil {
		t.Fatal(err)
	}
	out, err := write.Run(context.Background(), inst, tb2.task, write.Options{Scratch: scratch, Store: upload.Local{}})
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "VmHWM") {
			fmt.Println(os.Getenv("ZZ"), len(out), l, time.Since(t0), cpu(), err)
		}
	}
	inst.Close()
}
