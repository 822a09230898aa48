package broker_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

func exist(t *testing.T, uris ...string) (n int) {
	t.Helper()
	for _, u := range uris {
		if _, err := os.Stat(strings.TrimPrefix(u, "file://")); err == nil {
			n++
		}
	}
	return n
}

// C9: after a retry the clean-up looks at what the table has, not at what the last attempt was.
func TestSweep_KeepsWhatTheCommitRefersTo(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	stale, err := j.sink.build(l)
	require.NoError(t, err)
	_, err = b.job().sink.append()
	require.NoError(t, err)
	_, err = j.sink.sendBuilt(stale)
	requireRefusal(t, conflict, err, "")
	_, err = j.sink.append()
	require.NoError(t, err)
	require.Len(t, j.lease.Created(), 4)
	n, err := j.lease.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 2, n, "list and manifest of the attempt that lost")
	left := j.lease.Created()
	require.Len(t, left, 2)
	require.Equal(t, 2, exist(t, left...))
	_, err = j.sink.load()
	requireRefusal(t, fenced, err, "no such lease")
	list, err := b.job().sink.manifestsOfHead()
	require.NoError(t, err)
	require.Equal(t, 2, exist(t, list[0].FilePath(), list[1].FilePath()))
}

// C1, C17: what memory says does not count: the reply of the landed commit was lost together with the memory of it.
func TestSweep_AsksTheTable(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	made, err := j.sink.build(l)
	require.NoError(t, err)
	reqs, upds, err := made.encode()
	require.NoError(t, err)
	_, err = b.cat.Commit(t.Context(), ident, reqs, upds) // behind the broker's back
	require.NoError(t, err)
	n, err := j.lease.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, 2, exist(t, j.lease.Created()...))
}

func TestSweep_RemovesAllOfAnAbortedJob(t *testing.T) {
	b := newBench(t)
	b.createTable()
	staged := b.job(func(s *broker.LeaseSpec) { s.Gate = nil })
	l, err := staged.sink.load()
	require.NoError(t, err)
	_, err = staged.sink.build(l)
	require.NoError(t, err)
	objects := staged.lease.Created()
	staged.lease.Close()

	b.restart() // a later lease adopts what the journal says that staging made
	j := b.job(func(s *broker.LeaseSpec) { s.Adopted = objects })
	b.cat.Next(catalogtest.Refuse)
	_, err = j.sink.append()
	requireRefusal(t, permanent, err, "refused")
	require.Equal(t, coordinator.Aborted, j.gate.state())
	made := j.lease.Created()
	require.Len(t, made, 4)
	kept := made[0]
	n, err := j.lease.Sweep(t.Context(), func(uri string) bool { return uri == kept })
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, 1, exist(t, made...))
	require.Equal(t, []string{kept}, j.lease.Created())
	n, err = j.lease.Sweep(t.Context(), nil) // again: the rest, and no error for what is gone
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// A snapshot of ours that has been expired may have left manifests to later ones: nothing is touched.
func TestSweep_LeavesWhatItCannotJudge(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	r, err := j.sink.append()
	require.NoError(t, err)
	_, err = b.job().sink.append()
	require.NoError(t, err)
	now := b.load()
	reqs, _ := catalogtest.SetProperties(now, nil)
	_, err = b.cat.Commit(t.Context(), ident, reqs, []byte(`[{"action":"remove-snapshots","snapshot-ids":[`+r.GetVersion()+`]}]`))
	require.NoError(t, err)
	_, err = j.lease.Sweep(t.Context(), nil)
	require.ErrorContains(t, err, "orphan removal")
	require.Equal(t, 2, exist(t, j.lease.Created()...))

	require.NoError(t, b.cat.Drop(t.Context(), ident))
	_, err = j.lease.Sweep(t.Context(), nil)
	require.ErrorContains(t, err, "gone")
}

func TestSweep_StorageSink(t *testing.T) {
	j := storageJob(t)
	require.NoError(t, j.sink.put(j.uri("parts/a/x.bin"), []byte("x")))
	_, err := j.commitObject("1", j.body("a"))
	require.NoError(t, err)
	n, err := j.lease.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, n, "only the sink knows what its commit refers to")

	lost := j.storageJob(j.spec.Location, func(s *broker.LeaseSpec) { s.Adopted = []string{j.uri("parts/a/x.bin")} })
	require.NoError(t, lost.sink.put(j.uri("parts/b/x.bin"), []byte("x")))
	n, err = lost.lease.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 1, n, "what an earlier lease made stays, unless the caller decides")
	require.Equal(t, 1, exist(t, j.uri("parts/a/x.bin")))
}

// What a job that was to create the table has made lies beside somebody else's table by then: its own goes, theirs stays.
func TestSweep_SomebodyElseCreatedTheTable(t *testing.T) {
	b := newBench(t)
	j := b.createJob()
	_, err := j.buildCreate()
	require.NoError(t, err)
	made, home := j.lease.Created(), j.lease.Location()
	require.NotEmpty(t, made)
	b.createTable()
	theirs := b.load().MetadataLocation

	late := b.createJob(func(s *broker.LeaseSpec) { s.Adopted, s.Location, s.TableUUID = made, home, uuid.NewString() })
	n, err := late.lease.Sweep(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, len(made), n)
	require.Zero(t, exist(t, made...))
	require.Equal(t, 1, exist(t, theirs))
}
