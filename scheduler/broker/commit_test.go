package broker_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

func TestCommit_LandsOnceAndSaysWhereAgain(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	r, err := j.sink.append()
	require.NoError(t, err)
	now := b.load()
	require.Equal(t, now.MetadataLocation, r.GetLocation())
	require.Equal(t, strconv.FormatInt(now.Metadata.CurrentSnapshot().SnapshotID, 10), r.GetVersion())
	require.Equal(t, j.spec.Markers[0]+":"+r.GetVersion(), now.Metadata.Properties()[markerProperty])
	require.Equal(t, coordinator.Committed, j.gate.state())
	require.Equal(t, r.GetVersion(), j.gate.m.Result().Version)

	_, err = j.sink.append()
	again := requireRefusal(t, already, err, "has committed") // S24, C15
	require.Equal(t, r.GetVersion(), again.GetVersion())
	require.Equal(t, r.GetLocation(), again.GetLocation())
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
}

// C5, S64: memory and journal are gone, the key is the same: the table's marker answers.
func TestCommit_MarkerAnswersWhenMemoryIsLost(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	r, err := j.sink.append()
	require.NoError(t, err)
	b.restart()
	other := b.job(func(s *broker.LeaseSpec) { s.Markers = j.spec.Markers })
	_, err = other.sink.append()
	again := requireRefusal(t, already, err, "has committed")
	require.Equal(t, r.GetVersion(), again.GetVersion())
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
	require.Equal(t, coordinator.Committing, other.gate.state(), "nothing was sealed")
}

func TestCommit_CancelledBeforeTheSeal(t *testing.T) { // S21
	b := newBench(t)
	b.createTable()
	j := b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	built, err := j.sink.build(l)
	require.NoError(t, err)
	require.NoError(t, j.gate.Step(coordinator.Cancel{Reason: "user"}))
	_, err = j.sink.sendBuilt(built)
	requireRefusal(t, fenced, err, "fenced")
	require.Empty(t, b.cat.Sent())
	require.Nil(t, b.load().Metadata.CurrentSnapshot())
}

func TestCommit_OlderEpochIsFenced(t *testing.T) { // S65, C7
	b := newBench(t)
	b.createTable()
	j := b.job()
	require.NoError(t, j.gate.Step(coordinator.Restart{Epoch: 9}))
	require.NoError(t, j.gate.Step(coordinator.Start{}))
	_, err := j.sink.append()
	requireRefusal(t, fenced, err, "fenced")
	require.Empty(t, b.cat.Sent())
}

// C3, C1, S63: the reply is lost after landing; the look finds the own snapshot and nobody hears of a failure.
func TestCommit_LostReply(t *testing.T) {
	eachVersion(t, "format", func(t *testing.T, b *bench) {
		j := b.job()
		b.cat.Next(catalogtest.LostReply)
		r, err := j.sink.append()
		require.NoError(t, err)
		require.Equal(t, r.GetVersion(), j.gate.m.Result().Version)
		require.False(t, j.gate.m.Result().Already)
		require.Equal(t, []coordinator.OutcomeKind{coordinator.OutcomeLanded}, j.gate.outcomes())
		require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
		require.Len(t, b.cat.Sent(), 1)
	})
}

// lyingCatalog lands a commit and then says what it was told to say.
type lyingCatalog struct {
	catalog.Catalog
	says error
}

func (c *lyingCatalog) Commit(ctx context.Context, id catalog.Ident, requirements, updates []byte) (*catalog.Table, error) {
	if t, err := c.Catalog.Commit(ctx, id, requirements, updates); err != nil || c.says == nil {
		return t, err
	}
	return nil, c.says
}

// C3: a definite answer about our own landed commit (a 503 that the client repeated, then a 409) is no failure: the table is asked first.
func TestCommit_DefiniteAnswerAboutOurOwnCommit(t *testing.T) {
	for _, says := range []error{catalog.ErrConflict, catalog.ErrPermanent, catalog.ErrNotSent} {
		b := newBench(t)
		b.createTable()
		j := b.job(func(s *broker.LeaseSpec) { s.Catalog = &lyingCatalog{b.cat, says} })
		_, err := j.sink.append()
		require.NoError(t, err)
		require.Equal(t, []coordinator.OutcomeKind{coordinator.OutcomeLanded}, j.gate.outcomes())
		require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
	}
}

// After an unknown outcome, what the catalog says about a repetition is not the end: an earlier copy may still land.
func TestCommit_RepetitionIsRefusedAndLandsAnyway(t *testing.T) {
	eachVersion(t, "format", func(t *testing.T, b *bench) {
		j := b.job()
		b.cat.Next(catalogtest.Dropped, catalogtest.Conflict, catalogtest.Refuse)
		_, err := j.sink.append()
		require.NoError(t, err)
		require.Equal(t, []coordinator.OutcomeKind{coordinator.OutcomeUnknown, coordinator.OutcomeLanded}, j.gate.outcomes())
		require.Len(t, b.cat.Sent(), 4)
	})
}

// C2, I5: an error that applied nothing is not believed either: the identical request goes out again until it lands.
func TestCommit_UnknownIsResolvedByTheIdenticalRequest(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	b.cat.Next(catalogtest.Dropped, catalogtest.Dropped, catalogtest.Dropped)
	r, err := j.sink.append()
	require.NoError(t, err)
	require.Equal(t, []coordinator.OutcomeKind{coordinator.OutcomeUnknown, coordinator.OutcomeLanded}, j.gate.outcomes())
	sent := b.cat.Sent()
	require.Len(t, sent, 4)
	for _, s := range sent {
		require.Equal(t, sent[0].Requirements, s.Requirements)
		require.Equal(t, sent[0].Updates, s.Updates)
	}
	require.Equal(t, r.GetVersion(), j.gate.m.Result().Version)
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
}

// A request in flight overtakes its own repetition: still once.
func TestCommit_LateArrivalAndRepetition(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	b.cat.Next(catalogtest.Late, catalogtest.Late, catalogtest.Late)
	done := make(chan error, 1)
	go func() {
		_, err := j.sink.append()
		done <- err
	}()
	<-b.cat.Arrived()
	<-b.cat.Arrived()
	_ = b.cat.Release(context.Background()) // both copies arrive, one after the other
	require.NoError(t, <-done)
	_ = b.cat.Release(context.Background())
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
	require.Equal(t, coordinator.Committed, j.gate.state())
}

func TestCommit_DefiniteConflictReleasesTheSeal(t *testing.T) { // S68
	b := newBench(t)
	b.createTable()
	j, other := b.job(), b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	built, err := j.sink.build(l)
	require.NoError(t, err)
	_, err = other.sink.append()
	require.NoError(t, err)
	_, err = j.sink.sendBuilt(built)
	requireRefusal(t, conflict, err, "")
	require.Equal(t, coordinator.Committing, j.gate.state())
	_, err = j.sink.append()
	require.NoError(t, err)
	require.Equal(t, 2, len(b.counts()), "C19: both are there")
}

func TestCommit_CatalogSaysConflictOrRefuses(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	b.cat.Next(catalogtest.Conflict)
	_, err := j.sink.append()
	requireRefusal(t, conflict, err, "conflict")
	require.Equal(t, coordinator.Committing, j.gate.state())
	b.cat.Next(catalogtest.Refuse)
	_, err = j.sink.append()
	requireRefusal(t, permanent, err, "refused")
	require.Equal(t, coordinator.Aborted, j.gate.state())
	require.Empty(t, b.load().Metadata.Snapshots())
}

// S21, S68: a cancel that comes while the request is out waits, and is refused once the commit has landed.
func TestCommit_CancelWhileSealedWaits(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	b.cat.Next(catalogtest.Slow)
	done := make(chan error, 1)
	go func() {
		_, err := j.sink.append()
		done <- err
	}()
	<-b.cat.Arrived()
	require.NoError(t, j.gate.Step(coordinator.Cancel{Reason: "user"}))
	require.Equal(t, coordinator.Sealed, j.gate.state())
	_ = b.cat.Release(context.Background())
	require.NoError(t, <-done)
	err := j.gate.Step(coordinator.Cancel{Reason: "user"})
	var at *coordinator.AlreadyError
	require.ErrorAs(t, err, &at)
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
}

func TestCommit_CancelIsHonouredAfterAConflict(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	b.cat.Next(catalogtest.Slow)
	l, err := j.sink.load()
	require.NoError(t, err)
	built, err := j.sink.build(l)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := j.sink.sendBuilt(built)
		done <- err
	}()
	<-b.cat.Arrived()
	_, err = b.job().sink.append()
	require.NoError(t, err)
	require.NoError(t, j.gate.Step(coordinator.Cancel{Reason: "user"}))
	_ = b.cat.Release(context.Background())
	requireRefusal(t, conflict, <-done, "")
	require.Equal(t, coordinator.Aborted, j.gate.state())
	_, err = j.sink.append()
	requireRefusal(t, fenced, err, "fenced")
}

// The plugin dies or gives up while its request is out: the broker goes on, and the journal hears the end.
func TestCommit_GoesOnWithoutThePlugin(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	built, err := j.sink.build(l)
	require.NoError(t, err)
	reqs, upds, err := built.encode()
	require.NoError(t, err)
	b.cat.Next(catalogtest.Slow)
	ctx, cancel := context.WithCancel(j.sink.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := j.sink.send(ctx, reqs, upds)
		done <- err
	}()
	<-b.cat.Arrived()
	cancel()
	require.Error(t, <-done)
	j.lease.Close()
	_ = b.cat.Release(context.Background())
	j.gate.await(coordinator.Committed)
	require.Equal(t, []coordinator.OutcomeKind{coordinator.OutcomeLanded}, j.gate.outcomes(), "the send itself was not cut")
	require.Len(t, b.cat.Sent(), 1)
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
}

// C25: eight clients, one table, several commits each: all land, each exactly once, although some replies are lost and some requests too.
func TestCommit_EightClientsOnOneTable(t *testing.T) {
	const clients, commits = 8, 4
	b := newBench(t)
	b.createTable()
	for i := range clients * commits {
		switch i % 5 {
		case 1:
			b.cat.Next(catalogtest.LostReply)
		case 3:
			b.cat.Next(catalogtest.Dropped)
		default:
			b.cat.Next(catalogtest.Pass)
		}
	}
	var mu sync.Mutex
	var markers []string
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range commits {
				j := b.job()
				_, err := j.sink.appendUntil(200)
				if err != nil && kindOf(err) != already {
					t.Errorf("commit: %v", err)
					return
				}
				j.gate.await(coordinator.Committed)
				mu.Lock()
				markers = append(markers, j.spec.Markers[0])
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	counts := b.counts()
	require.Len(t, markers, clients*commits)
	for _, m := range markers {
		require.Equal(t, 1, counts[m], "marker %s", m)
	}
	require.Len(t, b.load().Metadata.Snapshots(), clients*commits)
	list, err := b.job().sink.manifestsOfHead()
	require.NoError(t, err)
	require.Len(t, list, clients*commits, "no append lost another's manifest")
}
