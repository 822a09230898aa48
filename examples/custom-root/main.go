// Command custom-root is a scheduler with a scheduler root of its own: the last operator of every query runs here, over the output of all its tasks, and
// answers with a digest of the rows in place of the rows. Two tables whose digests are equal hold the same rows, and no row has left the cluster for that.
//
//	custom-root --config FILE
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/signet-io/signet/scheduler"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/root"
)

func main() {
	file := flag.String("config", "", "the scheduler's configuration")
	flag.Parse()
	if err := serve(*file); err != nil {
		fmt.Fprintln(os.Stderr, "custom-root:", err)
		os.Exit(1)
	}
}

func serve(file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg, err := config.Load(file, os.Environ(), nil)
	if err != nil {
		return err
	}
	// The predicate picks the operator; a commit stays the scheduler's own, whatever it says.
	results := func(n *plan.Node) bool { return n.Op == plan.OpResult }
	s, err := scheduler.Start(ctx, cfg, scheduler.Options{Version: "custom-root"}, scheduler.WithRoot(results, root.Func(digest)))
	if err != nil {
		return err
	}
	fmt.Println("listening on", s.Addr())
	<-ctx.Done()
	drain, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Stop(drain)
}

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "rows", Type: arrow.PrimitiveTypes.Int64}, {Name: "partitions", Type: arrow.PrimitiveTypes.Int64}, {Name: "digest", Type: arrow.BinaryTypes.String},
}, nil)

// digest adds up a hash of every row, so that their order, and how they are spread over tasks, makes no difference. It runs once for a job. A scheduler that
// dies takes it along, and the job fails.
func digest(ctx context.Context, in root.Input, out root.Output) error {
	var rows int64
	var sum uint64
	err := in.Read(ctx, func(_ int, batch arrow.RecordBatch) error {
		for i := range int(batch.NumRows()) {
			sum += hash(batch, i)
		}
		rows += batch.NumRows()
		return nil
	})
	if err != nil {
		return err
	}
	answer := fmt.Sprintf(`[{"rows": %d, "partitions": %d, "digest": "%016x"}]`, rows, in.Partitions(), sum)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, columns, strings.NewReader(answer))
	if err != nil {
		return err
	}
	defer rec.Release()
	if err := out.Schema(columns); err != nil {
		return err
	}
	return out.Write(rec)
}

// hash is of the values as text, each behind its length, and of where the NULLs are.
func hash(batch arrow.RecordBatch, row int) uint64 {
	h := sha256.New()
	for _, column := range batch.Columns() {
		value := column.ValueStr(row)
		fmt.Fprintf(h, "%t %d %s", column.IsNull(row), len(value), value)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
