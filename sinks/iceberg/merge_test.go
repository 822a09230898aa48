package iceberg

import (
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

func TestMerge_TheListDoesNotGrowWithCommits(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := partitioned(t, "merge", version)
		h.setProperties("commit.manifest.min-count-to-merge", "4")
		var all []*planv1.DataFile
		rows := map[string]int64{}
		for i := range 14 {
			j := newJob(t, h, c)
			f := j.in(string(rune('a'+i)), 0, int64(10+i))
			if i == 5 {
				f.Partition = []*planv1.Value{{}}
			}
			all = append(all, f)
			j.land([]*planv1.DataFile{f})
			if version == "3" {
				rows[f.GetPath()] = h.firstRowID(f.GetPath())
			}
			require.LessOrEqual(t, len(h.readList(h.table().CurrentSnapshot().ManifestList)), 4)
			require.Equal(t, pathsOf(all), h.livePaths(), "every file, once (C10)")
		}
		list := h.readList(h.table().CurrentSnapshot().ManifestList)
		merged := list[len(list)-1]
		require.Zero(t, *merged.Files.Added)
		require.EqualValues(t, 1, merged.MinSequenceNumber)
		require.Equal(t, "a", string(merged.Partitions[0].Lower))
		require.True(t, merged.Partitions[0].ContainsNull)
		for i, f := range all[:8] {
			h.wantEntry(f.GetPath(), icebergo.EntryStatusEXISTING, int64(i+1), h.table().Metadata().Snapshots()[i].SnapshotID)
		}
		var next int64
		for _, f := range all {
			if version == "3" {
				require.Equal(t, next, h.firstRowID(f.GetPath()), "row ids stay what they were")
				require.Equal(t, rows[f.GetPath()], next)
				next += f.GetRecordCount()
			}
		}
		if version == "3" {
			require.Equal(t, next, h.table().Metadata().NextRowID(), "merging takes no row ids")
		}
		h.wantSummary(map[string]string{"operation": "append", "total-data-files": "14"}, "deleted-data-files")

		// A file of a merged manifest is removed like any other.
		del := newRowLevel(h, c, "delete")
		del.replaced = replacedFiles(all[2])
		del.land()
		require.Equal(t, pathsOf(all[:2], all[3:]), h.livePaths())
	})
}

func TestMerge_OffAndRetried(t *testing.T) { // C10
	h, c := versioned(t, "off", "2")
	h.setProperties("commit.manifest.min-count-to-merge", "3", "commit.manifest-merge.enabled", "false")
	var all []*planv1.DataFile
	land := func() {
		j := newJob(t, h, c)
		f := j.plainFile(0, 1)
		all = append(all, f)
		j.land([]*planv1.DataFile{f})
	}
	for range 5 {
		land()
	}
	require.Len(t, h.readList(h.table().CurrentSnapshot().ManifestList), 5)
	h.setProperties("commit.manifest-merge.enabled", "true")
	j := newJob(t, h, c)
	f := j.plainFile(0, 1)
	all = append(all, f)
	require.NoError(t, j.stage([]*planv1.DataFile{f}))
	other := newJob(t, h, c)
	theirs := other.plainFile(0, 2)
	require.NoError(t, other.stage([]*planv1.DataFile{theirs}))
	h.before = func(_, _ []byte) error {
		h.mu.Lock()
		h.before = nil
		h.mu.Unlock()
		require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, other.commit().GetOutcome())
		return nil
	}
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	require.EqualValues(t, 2, resp.GetAttempts())
	require.Equal(t, pathsOf(all, []*planv1.DataFile{theirs}), h.livePaths())
	require.Len(t, h.readList(h.table().CurrentSnapshot().ManifestList), 2, "one merged, and the newest")
}
