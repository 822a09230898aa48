package eventlog

import (
	"path/filepath"
	"testing"

	"github.com/signet-io/signet/internal/redact"
)

// BenchmarkLog writes the two records of an attempt, as fast as the disk takes them.
func BenchmarkLog(b *testing.B) {
	r := &redact.Redactor{}
	r.Add("some-secret-value", "another-secret-value")
	l, err := New(Config{Dir: filepath.Join(b.TempDir(), "e"), Queue: 1 << 30, MaxBytes: 1 << 40, Redact: r.Text})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range b.N {
		launched, done := attempt("job", int32(i)), attempt("job", int32(i)) //nolint:gosec // small
		done.Event, done.Rows, done.Bytes, done.Executor = Succeeded, 10, 100, "39d9f8f6-828a-443c-9b8c-5c0eea132461"
		l.Write(launched)
		l.Write(done)
	}
	if err := l.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(2*b.N)/b.Elapsed().Seconds(), "records/s")
}
