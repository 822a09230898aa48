package iceberg

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// wide is a table of 16 columns, partitioned by day, and n files of it without their bytes.
func wide(b *testing.B, n int) (*testHost, sinkv1.SinkClient, func() (*job, []*planv1.DataFile)) {
	b.Helper()
	h := newHost(b, "wide")
	c := h.client(New())
	fields := []*planv1.Field{field("ts", kTS)}
	for i := range 15 {
		fields = append(fields, field(fmt.Sprintf("c%02d", i), []planv1.TypeKind{kLong, kStr, kDbl}[i%3]))
	}
	createTable(b, h, c, &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: fields}, Partition: []*sinkv1.PartitionClause{clause("ts", tDay)}})
	return h, c, func() (*job, []*planv1.DataFile) {
		j := newJob(b, h, c)
		files := make([]*planv1.DataFile, n)
		for i := range files {
			f := j.plainFile(i, 1000)
			f.Partition = []*planv1.Value{vInt(int64(i % 2000))}
			for k, col := range j.spec.GetSchema().GetFields() {
				rows, nulls, size := int64(1000), int64(i%3), int64(8000+i)
				m := &planv1.ColumnMetrics{FieldId: col.GetId(), SizeBytes: &size, ValueCount: &rows, NullCount: &nulls}
				lo, hi := vInt(int64(i*k)), vInt(int64(i*k+1000))
				switch col.GetType().GetKind() {
				case kStr:
					lo, hi = vStr(fmt.Sprintf("customer name %06d", i)), vStr(fmt.Sprintf("customer name %06d", i+1000))
				case kDbl:
					lo, hi = vF64(float64(i)/7), vF64(float64(i+1000)/7)
				}
				m.Lower, m.Upper = &planv1.Bound{Value: lo}, &planv1.Bound{Value: hi}
				f.Columns = append(f.Columns, m)
			}
			files[i] = f
		}
		return j, files
	}
}

// BenchmarkStage includes the way of the task manifests to the sink over gRPC.
func BenchmarkStage(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, _, next := wide(b, n)
			j, files := next()
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, j.stage(files))
			}
			b.ReportMetric(float64(len(j.refs)), "manifests")
		})
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, _, next := wide(b, n)
			var load, build, send int64
			rounds := 0
			for b.Loop() {
				b.StopTimer()
				j, files := next()
				require.NoError(b, j.stage(files))
				b.StartTimer()
				resp := j.commit()
				require.Equal(b, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
				rounds++
				load, build, send = load+resp.GetTimings().GetLoadMicros(), build+resp.GetTimings().GetBuildMicros(), send+resp.GetTimings().GetCommitMicros()
			}
			b.ReportMetric(float64(load)/float64(rounds), "load-µs")
			b.ReportMetric(float64(build)/float64(rounds), "build-µs")
			b.ReportMetric(float64(send)/float64(rounds), "send-µs")
		})
	}
}
