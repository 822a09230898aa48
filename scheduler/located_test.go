package scheduler

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/journal"
)

// S32: clients are sent to an executor only where its address means the same to them, and in plain text on loopback only.
func TestLocated_WhichExecutorsClientsAreSentTo(t *testing.T) {
	for _, c := range []struct{ flight, executor, uri string }{
		{"127.0.0.1:1", "127.0.0.1:2", "grpc+tcp://127.0.0.1:2"},
		{"[::1]:1", "localhost:2", "grpc+tcp://localhost:2"},
		{"127.0.0.1:1", "worker:2", "grpc+tls://worker:2"},
		{"192.0.2.1:1", "192.0.2.2:2", "grpc+tls://192.0.2.2:2"},
		{"192.0.2.1:1", "127.0.0.1:2", ""},
		{"192.0.2.1:1", "", ""},
	} {
		j := newJob(context.Background(), journal.Job{ID: "j", Principal: "ann"})
		j.output = &output{dir: t.TempDir()}
		require.True(t, j.output.locate(&located{part: &planv1.ExchangePart{AttemptId: "a", Address: c.executor, Ticket: "secret", Rows: 3, Bytes: 4}, free: func() {}}))
		b := &flightBackend{s: &Server{jobs: map[string]*job{"j": j}, flight: &flightListener{addr: c.flight}}}
		at, err := b.Location("ann", "j")
		require.NoError(t, err)
		require.Equal(t, c.uri, at.URI, c)
		require.NotContains(t, at.Secret, "secret")
		require.EqualValues(t, 3, at.Rows)
		_, err = b.Location("bob", "j")
		require.Error(t, err)
	}
}

// A job has one output, wherever it lies; what is let go of is let go of once, and nothing comes after it.
func TestLocated_OneOutput(t *testing.T) {
	freed := 0
	at := func() *located { return &located{part: &planv1.ExchangePart{AttemptId: "a"}, free: func() { freed++ }} }
	o := &output{dir: t.TempDir()}
	late, err := o.begin("late")
	require.NoError(t, err)
	require.True(t, o.locate(at()))
	require.False(t, o.locate(at()), "another attempt's")
	require.False(t, late.complete(), "and one that was pushed")
	late.drop()
	j := newJob(context.Background(), journal.Job{ID: "j"})
	j.output = o
	require.True(t, j.keeps("a"))
	require.False(t, j.keeps("b"))
	o.free()
	o.free()
	require.Equal(t, 1, freed)
	require.False(t, j.keeps("a"))
	require.False(t, o.locate(at()), "its time is over")

	o = &output{dir: t.TempDir()}
	pushed, err := o.begin("pushed")
	require.NoError(t, err)
	require.True(t, pushed.complete())
	require.False(t, o.locate(at()))
	o.free()
}
