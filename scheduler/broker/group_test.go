package broker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

func units(n int) func(*broker.LeaseSpec) {
	return func(s *broker.LeaseSpec) {
		s.Markers = nil
		for range n {
			s.Markers = append(s.Markers, newMarker())
		}
	}
}

func with(markers ...string) func(*broker.LeaseSpec) {
	return func(s *broker.LeaseSpec) { s.Markers = markers }
}

// A lease for several units lands them together: one snapshot, and a marker of each.
func TestGroup_EveryUnitHasItsMarker(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job(units(3))
	r, err := j.sink.append()
	require.NoError(t, err)
	md := b.load().Metadata
	require.Len(t, md.Snapshots(), 1)
	for _, m := range j.spec.Markers {
		require.Contains(t, strings.Split(md.Properties()[markerProperty], ","), m+":"+r.GetVersion())
		require.Equal(t, 1, b.counts()[m])
	}
	require.Equal(t, strings.Join(j.spec.Markers, ","), md.Snapshots()[0].Summary.Properties[broker.SummaryMarkers])
}

// What the group adds is what was accepted of all its units, and their markers are all there.
func TestGroup_IsVettedAsAWhole(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job(units(2), func(s *broker.LeaseSpec) { s.Totals = &sinkv1.Totals{Files: 2, Rows: 4} })
	_, err := j.sink.append()
	requireRefusal(t, permanent, err, "accepted were 2 with 4")
	j = b.job(units(2))
	j.sink.markers = j.spec.Markers[:1]
	_, err = j.sink.append()
	requireRefusal(t, permanent, err, "want exactly")
	require.Empty(t, b.cat.Sent())
}

// C5, S64: one unit of three has committed before, so that the others go without it.
func TestGroup_OneUnitHasCommittedBefore(t *testing.T) {
	b := newBench(t)
	b.createTable()
	first := b.job()
	_, err := first.sink.append()
	require.NoError(t, err)
	j := b.job(with(newMarker(), first.spec.Markers[0], newMarker()))
	_, err = j.sink.append()
	requireRefusal(t, permanent, err, "1 of 3 units have committed before")
	require.Len(t, b.load().Metadata.Snapshots(), 1)
	require.Equal(t, coordinator.Committing, j.gate.state(), "nothing was sealed")
}

// S63, S67: one unit is found where an earlier run has put it. That says nothing about the group's request, which is dead.
func TestGroup_OneUnitFoundIsNotAll(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j, a := sealed(t, b, catalogtest.Dropped, true, units(2))
	_, err := b.job(with(j.spec.Markers[0])).sink.append()
	require.NoError(t, err)
	require.Equal(t, coordinator.OutcomeDead, j.resolve(t, a).Kind)
	require.Zero(t, b.counts()[j.spec.Markers[1]])
}

// All units are found, each in the snapshot of an earlier run.
func TestGroup_EachFoundInItsOwnSnapshot(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j, a := sealed(t, b, catalogtest.Dropped, true, units(2))
	want := map[string]string{}
	for _, m := range j.spec.Markers {
		r, err := b.job(with(m)).sink.append()
		require.NoError(t, err)
		want[m] = r.GetVersion()
	}
	o := j.resolve(t, a)
	require.Equal(t, coordinator.OutcomeFound, o.Kind)
	require.Equal(t, want, o.Versions)
	require.Contains(t, []string{want[j.spec.Markers[0]], want[j.spec.Markers[1]]}, o.Version)
}

// The group has landed, and its snapshot has expired since: one marker of its own is enough to know.
func TestGroup_LandedAndExpired(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j, a := sealed(t, b, catalogtest.LostReply, true, units(2))
	_, err := b.job().sink.append()
	require.NoError(t, err)
	b.commitRaw(t, []map[string]any{{"action": "remove-snapshots", "snapshot-ids": []int64{a.SnapshotID}}})
	b.commitRaw(t, []map[string]any{{"action": "set-properties", "updates": map[string]string{markerProperty: j.spec.Markers[1] + ":" + a.Version}}})
	require.Nil(t, b.load().Metadata.SnapshotByID(a.SnapshotID))
	require.Equal(t, coordinator.OutcomeLanded, j.resolve(t, a).Kind)
}

// commitRaw is another engine's change of the table.
func (b *bench) commitRaw(t *testing.T, updates []map[string]any) {
	t.Helper()
	reqs, err := json.Marshal([]map[string]any{{"type": "assert-table-uuid", "uuid": b.load().UUID}})
	require.NoError(t, err)
	upds, err := json.Marshal(updates)
	require.NoError(t, err)
	_, err = b.cat.Commit(t.Context(), ident, reqs, upds)
	require.NoError(t, err)
}
