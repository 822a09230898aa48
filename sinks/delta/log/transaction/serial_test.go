package transaction_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

// Whatever statements run beside each other: one that lands leaves what it would have left, had it run alone at its place in the log; one that does not changes nothing.
func TestWhatLandsIsAsIfItHadRunAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		history := []*log.Snapshot{table(t, nil, file("a", "x"), file("b", "y"), file("c", ""))}
		var commits []log.Commit
		for n := range rapid.IntRange(1, 8).Draw(rt, "statements") {
			head := history[len(history)-1]
			read := rapid.IntRange(0, len(history)-1).Draw(rt, "read at")
			do := statement(rt, n)
			tx := do(history[read])
			err := transaction.Check(tx, commits[read:])
			var conflict *transaction.Conflict
			if err != nil {
				if !errors.As(err, &conflict) {
					rt.Fatal(err)
				}
				if len(commits) == read {
					rt.Fatalf("a conflict with nobody: %v", err)
				}
				continue
			}
			actions, err := tx.Build(head, clock, fmt.Sprint(n))
			if errors.Is(err, transaction.ErrNothing) {
				continue
			}
			if err != nil {
				rt.Fatalf("what passed the checks cannot be built: %v", err)
			}
			next, c := after(t, head, actions)
			alone, err := do(head).Build(head, clock, fmt.Sprint(n))
			if err != nil {
				rt.Fatal(err)
			}
			if want, _ := after(t, head, alone); !slices.Equal(paths(next), paths(want)) {
				rt.Fatalf("%s read at %d left %v at %d; alone it leaves %v", tx.Operation, read, paths(next), len(commits), paths(want))
			}
			history, commits = append(history, next), append(commits, c)
		}
	})
}

// statement draws a statement that can be run on any snapshot.
func statement(t *rapid.T, n int) func(*log.Snapshot) *transaction.Transaction {
	partitions := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", ""}), 0, 3, rapid.ID).Draw(t, "partitions")
	var adds []*log.Add
	for i, p := range partitions {
		adds = append(adds, file(fmt.Sprintf("new-%d-%d", n, i), p))
	}
	kind := rapid.SampledFrom([]string{"append", "overwrite", "where", "dynamic", "delete"}).Draw(t, "kind")
	return func(s *log.Snapshot) *transaction.Transaction {
		tx := appending(s, adds...)
		switch kind {
		case "append":
			return tx
		case "overwrite":
			tx.Operation = transaction.Overwritten(nil, "", false)
			tx.Overwrite(s)
		case "where":
			tx.Operation = transaction.Overwritten(nil, "p = 'x'", false)
			tx.OverwriteWhere(s, isX)
		case "dynamic":
			tx.Operation = transaction.Overwritten(nil, "", true)
			if err := tx.OverwritePartitions(s); err != nil {
				t.Fatal(err)
			}
		case "delete":
			tx.Operation, tx.Adds = transaction.Deleted(), nil
			tx.OverwriteWhere(s, func(f *log.Add) bool { return !isX(f) })
		}
		return tx
	}
}
