package iceberg

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/scope"
)

// The host holds overwrites against their scope by its own reading: it must cover what the sink removes, and nothing else.
func TestScope_CoversWhatTheSinkRemoves(t *testing.T) {
	const eq, ge = planv1.CompareOp_COMPARE_OP_EQ, planv1.CompareOp_COMPARE_OP_GE
	id := int32(2) // of name, by which the table is partitioned
	for name, tc := range map[string]struct {
		scope *planv1.Scope
		write string // partition that is written; "-": none
		gone  string // partitions
	}{
		"all":                        {scopeAll(), "-", "abn"},
		"all, by rows":               {scopeAll(), "a", "abn"},
		"partitions":                 {scopePartitions(), "a", "a"},
		"the NULL partition":         {scopePartitions(), "", "n"},
		"partitions, none":           {scopePartitions(), "-", ""},
		"a new partition":            {scopePartitions(), "z", ""},
		"filter":                     {scopeFilter(id, eq, vStr("b")), "-", "b"},
		"filter with rows":           {scopeFilter(id, ge, vStr("b")), "b", "b"},
		"filter that covers nothing": {scopeFilter(id, eq, vStr("q")), "-", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := partitioned(t, "scoped", "2")
			j := newJob(t, h, c)
			files := []*planv1.DataFile{j.in("a", 0, 1), j.in("b", 1, 2), j.in("", 2, 3)}
			j.land(files)
			ov := newOverwrite(h, c, tc.scope)
			require.EqualValues(t, "name", ov.spec.GetSchema().GetFields()[1].GetName())
			require.EqualValues(t, id, ov.spec.GetSchema().GetFields()[1].GetId())
			sc, err := scope.New(ov.spec)
			require.NoError(t, err)
			var added []*planv1.DataFile
			if tc.write != "-" {
				added = append(added, ov.in(tc.write, 0, 1))
				require.NoError(t, sc.Wrote(added[0].GetPartition()))
			}
			require.Error(t, sc.Wrote(nil))

			spec := h.table().Spec()
			doc, err := json.Marshal(spec)
			require.NoError(t, err)
			covered := ""
			for _, e := range h.entries() {
				ok, err := sc.Covers(e, int32(spec.ID()), doc)
				require.NoError(t, err)
				i := slices.IndexFunc(files, func(f *planv1.DataFile) bool { return f.GetPath() == e.Path })
				if ok {
					covered += string("abn"[i])
				}
				ok, err = sc.Covers(e, 77, []byte(`{"spec-id":77,"fields":[]}`)) // as if it were of another spec
				require.NoError(t, err)
				require.Equal(t, tc.scope.GetAll(), ok)
			}
			if ov.land(added); tc.gone != "" || added != nil {
				live := h.livePaths()
				gone := ""
				for i, f := range files {
					if !slices.Contains(live, f.GetPath()) {
						gone += string("abn"[i])
					}
				}
				require.Equal(t, tc.gone, gone, "the sink")
			}
			require.Equal(t, tc.gone, covered, "the scope")
		})
	}
}

// entries are those of the current snapshot's data manifests.
func (h *testHost) entries() []*icemanifest.Entry {
	h.t.Helper()
	fs, err := h.table().FS(h.t.Context())
	require.NoError(h.t, err)
	list, err := h.table().CurrentSnapshot().Manifests(fs)
	require.NoError(h.t, err)
	var out []*icemanifest.Entry
	for _, m := range list {
		raw, err := os.ReadFile(h.path(m.FilePath()))
		require.NoError(h.t, err)
		held, err := icemanifest.Read(raw, icemanifest.Record{Content: int32(m.ManifestContent()), SnapshotID: m.SnapshotID(), SequenceNumber: m.SequenceNum()})
		require.NoError(h.t, err)
		out = append(out, held.Entries...)
	}
	return out
}
