package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

// sealed is a job whose scheduler died after the seal: the request went out with the given fault, or not at all.
func sealed(t *testing.T, b *bench, send catalogtest.Fault, sent bool, edit ...func(*broker.LeaseSpec)) (*job, coordinator.Attempt) {
	t.Helper()
	j := b.job(edit...)
	l, err := j.sink.load()
	require.NoError(t, err)
	made, err := j.sink.build(l)
	require.NoError(t, err)
	reqs, upds, err := made.encode()
	require.NoError(t, err)
	a := coordinator.Attempt{
		Epoch: b.config.Epoch, Kind: coordinator.KindCatalog, SnapshotID: made.id, Version: jsonInt(made.id), Parent: made.parent, SequenceNumber: made.seq,
		TableUUID: l.md.TableUUID().String(), Location: l.md.Location(), Markers: j.spec.Markers, Requirements: reqs, Updates: upds,
	}
	if l.md.Version() == 1 { // as the broker seals it
		a.Follows = b.load().MetadataLocation
		made.reqs = append(made.reqs, map[string]any{"type": catalog.AssertMetadataLocation, "metadata-location": a.Follows})
		reqs, _, err = made.encode()
		require.NoError(t, err)
		a.Requirements = reqs
	}
	_, err = j.gate.Seal(t.Context(), a)
	require.NoError(t, err)
	if sent {
		b.cat.Next(send)
		_, _ = b.cat.Commit(t.Context(), ident, reqs, upds)
	}
	open := j.gate.crash(b.config.Epoch + 1)
	require.NotNil(t, open)
	b.restart()
	return j, *open
}

func jsonInt(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func (j *job) resolve(t *testing.T, a coordinator.Attempt) coordinator.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o, err := j.broker.Resolve(ctx, j.spec, a)
	require.NoError(t, err)
	require.NoError(t, j.gate.Settle(ctx, a.Seq, o))
	return o
}

// S62: the scheduler died after the seal; whatever became of the request, the job has one end and the table its rows once.
func TestResolve_AfterACrash(t *testing.T) {
	for name, tc := range map[string]struct {
		fault catalogtest.Fault
		sent  bool
	}{
		"nothing had left":           {0, false},
		"it had landed":              {catalogtest.LostReply, true},
		"it was lost on the way":     {catalogtest.Dropped, true},
		"it arrives while resolving": {catalogtest.Late, true},
	} {
		eachVersion(t, name, func(t *testing.T, b *bench) {
			j, a := sealed(t, b, tc.fault, tc.sent)
			o := j.resolve(t, a)
			require.Equal(t, coordinator.OutcomeLanded, o.Kind)
			_ = b.cat.Release(t.Context())
			require.Equal(t, coordinator.Committed, j.gate.state())
			require.Equal(t, a.Version, j.gate.m.Result().Version)
			require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
			require.Equal(t, b.load().MetadataLocation, j.gate.m.Result().Location)
		})
	}
}

// Our own snapshot was followed by others, and may even have expired: the marker property still tells (I6).
func TestResolve_FoundByTheMarker(t *testing.T) {
	eachVersion(t, "format", func(t *testing.T, b *bench) {
		j, a := sealed(t, b, catalogtest.LostReply, true)
		_, err := b.job().sink.append()
		require.NoError(t, err)
		now := b.load()
		reqs, err := json.Marshal([]map[string]any{{"type": "assert-table-uuid", "uuid": now.UUID}})
		require.NoError(t, err)
		upds, err := json.Marshal([]map[string]any{{"action": "remove-snapshots", "snapshot-ids": []int64{a.SnapshotID}}})
		require.NoError(t, err)
		_, err = b.cat.Commit(t.Context(), ident, reqs, upds)
		require.NoError(t, err)
		o := j.resolve(t, a)
		require.Equal(t, coordinator.OutcomeFound, o.Kind)
		require.Equal(t, a.Version, j.gate.m.Result().Version)
		require.False(t, j.gate.m.Result().Already)
	})
}

// The table moved on by another commit, and nothing of ours is there: dead, and a late arrival cannot land any more.
func TestResolve_DeadOnceTheSequenceNumberIsPassed(t *testing.T) {
	eachVersion(t, "format", func(t *testing.T, b *bench) {
		j, a := sealed(t, b, catalogtest.Late, true)
		_, err := b.job().sink.append()
		require.NoError(t, err)
		require.Equal(t, coordinator.OutcomeDead, j.resolve(t, a).Kind)
		require.Equal(t, coordinator.Committing, j.gate.state())
		require.Error(t, b.cat.Release(t.Context()))
		require.Zero(t, b.counts()[j.spec.Markers[0]])

		require.NoError(t, j.gate.Step(coordinator.Cancel{}))
		require.Equal(t, coordinator.Aborted, j.gate.state())
	})
}

// C33: main is rolled back to the pinned parent while the request is in flight. It had been declared dead, so it must not land.
func TestResolve_RolledBackToTheParent(t *testing.T) {
	eachVersion(t, "format", func(t *testing.T, b *bench) {
		_, err := b.job().sink.append()
		require.NoError(t, err)
		parent := b.load().Metadata.CurrentSnapshot().SnapshotID
		j, a := sealed(t, b, catalogtest.Late, true)
		_, err = b.job().sink.append()
		require.NoError(t, err)
		now := b.load()
		reqs, err := json.Marshal([]map[string]any{{"type": "assert-table-uuid", "uuid": now.UUID}})
		require.NoError(t, err)
		upds, err := json.Marshal([]map[string]any{{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": parent}})
		require.NoError(t, err)
		_, err = b.cat.Commit(t.Context(), ident, reqs, upds)
		require.NoError(t, err)
		require.Equal(t, parent, b.load().Metadata.CurrentSnapshot().SnapshotID)

		require.Equal(t, coordinator.OutcomeDead, j.resolve(t, a).Kind)
		require.Error(t, b.cat.Release(t.Context()), "the late copy arrives on the very head it was pinned to")
		require.Zero(t, b.counts()[j.spec.Markers[0]])
	})
}

func TestResolve_TableDroppedOrRecreated(t *testing.T) { // C32
	for _, again := range []bool{false, true} {
		b := newBench(t)
		b.createTable()
		j, a := sealed(t, b, catalogtest.Dropped, true)
		require.NoError(t, b.cat.Drop(t.Context(), ident))
		if again {
			b.createTable()
		}
		require.Equal(t, coordinator.OutcomeDead, j.resolve(t, a).Kind)
		if again {
			require.Empty(t, b.load().Metadata.Snapshots())
			// And the job's next lease is refused by the UUID.
			l := b.job(func(s *broker.LeaseSpec) { s.TableUUID = a.TableUUID })
			_, err := l.sink.append()
			requireRefusal(t, permanent, err, "dropped and created again")
		}
	}
}

// S67: until there is an answer Resolve returns nothing but its context's error, and forgets nothing.
func TestResolve_WaitsForTheCatalog(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j, a := sealed(t, b, catalogtest.Dropped, true)
	blind := &blindCatalog{Catalog: b.cat, loads: make(chan struct{})}
	blind.blind.Store(true)
	j.spec.Catalog = blind
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := j.broker.Resolve(ctx, j.spec, a)
		done <- err
	}()
	for range 5 {
		<-blind.loads
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	blind.blind.Store(false)
	require.Equal(t, coordinator.OutcomeLanded, j.resolve(t, a).Kind)
}

// blindCatalog cannot be read, as long as it is told so.
type blindCatalog struct {
	catalog.Catalog
	blind atomic.Bool
	loads chan struct{} // one for each load that somebody waits for; nil: nobody does
}

func (c *blindCatalog) Load(ctx context.Context, id catalog.Ident) (*catalog.Table, error) {
	select {
	case c.loads <- struct{}{}:
	default:
	}
	if c.blind.Load() {
		return nil, errors.New("connection refused")
	}
	return c.Catalog.Load(ctx, id)
}

// The plugin's call gives up after a bounded time with "unknown"; the broker does not, and a second call hears the end.
func TestCommit_UnknownLongerThanTheCall(t *testing.T) {
	b := newBenchWith(t, broker.Config{SettleWait: 20 * time.Millisecond})
	b.createTable()
	blind := &blindCatalog{Catalog: b.cat}
	j := b.job(func(s *broker.LeaseSpec) { s.Catalog = blind })
	l, err := j.sink.load()
	require.NoError(t, err)
	made, err := j.sink.build(l)
	require.NoError(t, err)
	b.cat.Next(catalogtest.LostReply)
	blind.blind.Store(true)
	_, err = j.sink.sendBuilt(made)
	requireRefusal(t, unknown, err, "goes on resolving")
	require.Equal(t, coordinator.Resolving, j.gate.state())
	_, err = j.sink.sendBuilt(made)
	requireRefusal(t, unknown, err, "goes on resolving")
	require.NoError(t, j.gate.Step(coordinator.Cancel{Reason: "user"}), "waits")
	_, err = j.lease.Sweep(t.Context(), nil) // C1, S67
	require.ErrorIs(t, err, broker.ErrUnsettled)
	require.Len(t, j.lease.Created(), 2)

	blind.blind.Store(false)
	j.gate.await(coordinator.Committed)
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
	require.ErrorContains(t, j.gate.Step(coordinator.Cancel{}), "has committed")
}

// The journal cannot be written when the outcome is there: the answer waits for it, the commit stays landed.
func TestCommit_OutcomeThatCannotBeRecorded(t *testing.T) {
	b := newBenchWith(t, broker.Config{SettleWait: 20 * time.Millisecond})
	b.createTable()
	j := b.job()
	j.gate.failWith(errors.New("disk full"))
	_, err := j.sink.append()
	requireRefusal(t, unknown, err, "")
	require.Equal(t, coordinator.Sealed, j.gate.state())
	j.gate.failWith(nil)
	j.gate.await(coordinator.Committed)
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
}

// A broker that closes lets the send end, stops resolving, and leaves the attempt to the journal.
func TestBroker_CloseLeavesTheAttemptToTheJournal(t *testing.T) {
	b := newBench(t)
	b.createTable()
	blind := &blindCatalog{Catalog: b.cat}
	j := b.job(func(s *broker.LeaseSpec) { s.Catalog = blind })
	l, err := j.sink.load()
	require.NoError(t, err)
	made, err := j.sink.build(l)
	require.NoError(t, err)
	b.cat.Next(catalogtest.Dropped)
	blind.blind.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := j.sink.sendBuilt(made)
		done <- err
	}()
	j.gate.await(coordinator.Resolving)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, j.broker.Close(ctx))
	requireRefusal(t, unknown, <-done, "")
	_, err = j.broker.Lease(j.spec)
	require.ErrorContains(t, err, "closed")
	require.Equal(t, coordinator.Resolving, j.gate.state())

	a := j.gate.crash(b.config.Epoch + 1)
	b.restart()
	j.bench, j.spec.Catalog = b, b.cat
	require.Equal(t, coordinator.OutcomeLanded, j.resolve(t, *a).Kind)
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
}

func TestLease_SpecIsChecked(t *testing.T) {
	b := newBench(t)
	for want, spec := range map[string]broker.LeaseSpec{
		"neither a catalog": {},
		"needs its store":   {Location: "file:///x"},
		"without a marker":  {Catalog: b.cat, Gate: newGate(t, 1)},
		"no marker propert": {Catalog: b.cat, Gate: newGate(t, 1), Markers: []string{"ab"}},
		"hexadecimal":       {Catalog: b.cat, Gate: newGate(t, 1), Markers: []string{"a,b"}, MarkerProperty: "x", Mode: sinkv1.WriteMode_WRITE_MODE_APPEND},
	} {
		_, err := b.broker.Lease(spec)
		require.ErrorContains(t, err, want)
	}
}

// eachVersion runs a test on a table of each format version that tells requests dead in its own way: by sequence numbers, or by the metadata that they follow.
func eachVersion(t *testing.T, name string, f func(*testing.T, *bench)) {
	t.Helper()
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("%s/v%d", name, version), func(t *testing.T) {
			b := newBench(t)
			b.version = version
			require.Equal(t, version, b.createTable().Metadata.Version())
			f(t, b)
		})
	}
}
