package iceberg

import (
	"slices"
	"strconv"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// stagedTable has one file on main, and a staged snapshot with another one; main has moved on since.
type stagedTable struct {
	*testHost
	c      sinkv1.SinkClient
	base   *planv1.DataFile
	staged *planv1.DataFile
	moved  *planv1.DataFile
	id     int64 // of the staged snapshot
}

func newStaged(t *testing.T, version string) *stagedTable {
	h, c := versioned(t, "staged", version)
	h.setProperties("write.wap.enabled", "true")
	s := &stagedTable{testHost: h, c: c}
	j := newJob(t, h, c)
	s.base = j.plainFile(0, 10)
	j.land([]*planv1.DataFile{s.base})
	j = h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, WapId: "w"})
	s.staged = j.plainFile(0, 7)
	id, err := strconv.ParseInt(j.land([]*planv1.DataFile{s.staged}).GetVersion(), 10, 64)
	require.NoError(t, err)
	s.id = id
	j = newJob(t, h, c)
	s.moved = j.plainFile(0, 3)
	j.land([]*planv1.DataFile{s.moved})
	return s
}

func (s *stagedTable) request() *sinkv1.PrepareWriteRequest {
	return &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_PICK, Pick: versionOf(s.id)}
}

func (s *stagedTable) append(rows int64) *planv1.DataFile {
	j := newJob(s.t, s.testHost, s.c)
	f := j.plainFile(0, rows)
	j.land([]*planv1.DataFile{f})
	return f
}

func TestPick_OnTheTableAsItIsWhenItCommits(t *testing.T) {
	for _, version := range []string{"1", "2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			s := newStaged(t, version)
			j := s.prepared(s.c, s.request())
			require.Equal(t, versionOf(s.id), j.spec.GetPick())
			// Somebody else's append lands between the load and the request: the pick is built anew on top of it.
			var theirs *planv1.DataFile
			s.before = func([]byte, []byte) error {
				s.before = nil
				theirs = s.append(5)
				return sdk.Refuse(sdk.Conflict, "main has moved")
			}
			resp := j.commit()
			require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
			require.EqualValues(t, 2, resp.GetAttempts())
			require.ElementsMatch(t, pathsOf([]*planv1.DataFile{s.base, s.moved, theirs, s.staged}), s.branchPaths("main"))
			head := s.table().CurrentSnapshot()
			require.Equal(t, "append", string(head.Summary.Operation))
			for key, want := range map[string]string{
				"published-wap-id": "w", "source-snapshot-id": versionOf(s.id), "added-records": "7", "total-records": "25", "total-data-files": "4", "changed-partition-count": "1",
			} {
				require.Equal(t, want, head.Summary.Properties[key], key)
			}
			e := s.entry(s.staged.GetPath())
			require.Equal(t, head.SnapshotID, e.SnapshotID())
			if version != "1" {
				require.Equal(t, head.SequenceNumber, e.SequenceNum())
			}
			if version == "3" {
				require.EqualValues(t, 25, *head.FirstRowID, "behind what main and the staged snapshot were given")
				require.EqualValues(t, 32, s.table().Metadata().NextRowID())
			}
			require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, j.commit().GetOutcome(), "the marker is found")
		})
	}
}

// What happens between the planning of a pick and its commit.
func TestPick_Meanwhile(t *testing.T) {
	publish := func(s *stagedTable) {
		other := s.prepared(s.c, s.request())
		require.Equal(s.t, sinkv1.Outcome_OUTCOME_COMMITTED, other.commit().GetOutcome())
	}
	for name, tc := range map[string]struct {
		do   func(s *stagedTable)
		want string // empty: it lands
	}{
		"nothing":    {do: func(*stagedTable) {}},
		"an upgrade": {do: func(s *stagedTable) { s.alter(map[string]any{"action": "upgrade-format-version", "format-version": 3}) }},
		"another column": {do: func(s *stagedTable) {
			s.alterSchema(jsonID, jsonName, `{"id":3,"name":"n","required":false,"type":"int"}`)
		}},
		"a column that is no more": {do: func(s *stagedTable) { s.alterSchema(jsonID) }},
		"a column that is demanded": {do: func(s *stagedTable) {
			s.alterSchema(jsonID, `{"id":2,"name":"name","required":true,"type":"string"}`)
		}, want: "column name was made required after snapshot"},
		"a new column that is demanded": {do: func(s *stagedTable) {
			s.rewriteMetadata(func(doc map[string]any) {
				schema := map[string]any{"type": "struct", "schema-id": 9, "fields": []any{map[string]any{"id": 8, "name": "must", "required": true, "type": "int"}}}
				doc["schemas"] = append(doc["schemas"].([]any), schema)
				doc["current-schema-id"] = 9
			})
		}, want: "column must was added as required after snapshot"},
		"it is published": {do: publish, want: "has its changes"},
		"its wap.id is": {do: func(s *stagedTable) {
			s.rewriteMetadata(func(doc map[string]any) {
				for _, x := range doc["snapshots"].([]any) {
					if snap := x.(map[string]any); snap["parent-snapshot-id"] == nil {
						snap["summary"].(map[string]any)["published-wap-id"] = "w"
					}
				}
			})
			s.setProperties("x", "y") // in another file
		}, want: `has published the wap.id "w"`},
		"it has expired": {do: func(s *stagedTable) {
			s.alter(map[string]any{"action": "remove-snapshots", "snapshot-ids": []int64{s.id}})
		}, want: "no snapshot "},
		"its file is on main": {do: func(s *stagedTable) {
			j := newJob(s.t, s.testHost, s.c)
			j.land([]*planv1.DataFile{j.plainFile(0, 1), s.staged})
		}, want: "its rows would be there twice"},
		"its file was, and is removed": {do: func(s *stagedTable) {
			j := newJob(s.t, s.testHost, s.c)
			j.land([]*planv1.DataFile{s.staged})
			up := newRowLevel(s.testHost, s.c, "delete")
			up.replaced = replacedFiles(s.staged)
			up.land()
		}, want: "its rows are not brought back"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStaged(t, "2")
			j := s.prepared(s.c, s.request())
			tc.do(s)
			before := s.table().MetadataLocation()
			if tc.want != "" {
				j.refused(tc.want)
				require.Equal(t, before, s.table().MetadataLocation())
				return
			}
			require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, j.commit().GetOutcome())
			require.ElementsMatch(t, pathsOf([]*planv1.DataFile{s.base, s.moved, s.staged}), s.branchPaths("main"))
		})
	}
}

func TestPick_RefusedWhenItIsPlanned(t *testing.T) {
	s := newStaged(t, "2")
	head := s.table().CurrentSnapshot().SnapshotID
	for id, want := range map[string]string{"": "no snapshot's id", "x": "no snapshot's id", "5": "no snapshot 5 any more", versionOf(head): "it is an ancestor of the current one"} {
		_, err := s.c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: s.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_PICK, Pick: id})
		refused(t, err, sdk.Permanent, want)
	}
	// A spec is for its mode, and one job.
	j := s.prepared(s.c, s.request())
	j.mode = sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL
	j.refused("write mode")
	j.mode = sinkv1.WriteMode_WRITE_MODE_PICK
	other := newJob(t, s.testHost, s.c)
	resp, err := s.c.Commit(t.Context(), j.request(j.unit(), other.unit()))
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome())
	require.Contains(t, resp.GetMessage(), "one job per commit")
	j.spec.Pick = ""
	j.refused("picks snapshot")
}

// A snapshot of another writer may say what it is not, and its manifests may hold the files of others among its own.
func TestPick_OfForeignSnapshots(t *testing.T) {
	s := newStaged(t, "2")
	operation := func(op string) {
		s.rewriteMetadata(func(doc map[string]any) {
			for _, x := range doc["snapshots"].([]any) {
				snap := x.(map[string]any)
				if sum := snap["summary"].(map[string]any); sum["wap.id"] == "w" {
					sum["operation"] = op
					sum["replace-partitions"] = strconv.FormatBool(op == "overwrite")
				}
			}
		})
		s.setProperties("x", op) // in another file
	}
	operation("delete")
	_, err := s.c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: s.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_PICK, Pick: versionOf(s.id)})
	refused(t, err, sdk.Permanent, "only an append, or an overwrite of the partitions that it writes")
	operation("overwrite") // of the table's one partition, to which somebody has added since
	s.prepared(s.c, s.request()).refused("has added data file", "run the statement of snapshot")

	// An append that removes: rows that are changed, on a branch, under another name.
	h, c := versioned(t, "removes", "2")
	j := newJob(t, h, c)
	base := j.plainFile(0, 10)
	j.land([]*planv1.DataFile{base})
	h.setRef("b", "branch")
	up := h.onBranch(c, sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, "b")
	up.replaced = replacedFiles(base)
	up.land([]*planv1.DataFile{up.plainFile(0, 10)})
	id := h.table().SnapshotByName("b").SnapshotID
	j = newJob(t, h, c)
	j.land([]*planv1.DataFile{j.plainFile(0, 1)})
	h.rewriteMetadata(func(doc map[string]any) {
		at := slices.IndexFunc(doc["snapshots"].([]any), func(x any) bool {
			return x.(map[string]any)["summary"].(map[string]any)["operation"] == string(icetable.OpOverwrite)
		})
		doc["snapshots"].([]any)[at].(map[string]any)["summary"].(map[string]any)["operation"] = "append"
	})
	h.setProperties("x", "y")
	pick := h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_PICK, Pick: versionOf(id)})
	pick.refused("calls itself an append and removes data file")
}
