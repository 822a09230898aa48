package executor_test

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkOneRow measures a one-row write task from its launch to the arrival of its manifest, with a pool that has had time to refill, as
// between two statements.
func BenchmarkOneRow(b *testing.B) {
	board, g := newSwitchboard(), newGateway(b, 1)
	board.up(b, g)
	start(b, board, nil)
	next(b, g.registers, "registration")
	var took []time.Duration
	for b.Loop() {
		time.Sleep(30 * time.Millisecond) // the pool refills
		task := writeTask(b, 1, "SELECT 1")
		begin := time.Now()
		g.launch(task)
		next(b, g.manifests, "manifest")
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/median")
	b.ReportMetric(0, "ns/op")
}
