package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// impatient is a sink that does not wait between attempts.
func impatient() *Sink {
	s := New()
	s.pause = func(ctx context.Context, _ int) error { return ctx.Err() }
	return s
}

func simpleTable(t testing.TB, name string, s *Sink) (*testHost, sinkv1.SinkClient) {
	t.Helper()
	h := newHost(t, name)
	c := h.client(s)
	createTable(t, h, c, simple(nil))
	return h, c
}

func TestCommit_AppendsOneFile(t *testing.T) {
	h, c := simpleTable(t, "one", New())
	j := newJob(t, h, c)
	resp := j.land(j.write(row{vInt(1), vStr("a")}, row{vInt(2), null}))
	require.EqualValues(t, 1, resp.GetAttempts())
	require.Positive(t, resp.GetTimings().GetCommitMicros())
	tbl := h.table()
	snap := tbl.CurrentSnapshot()
	require.Equal(t, resp.GetVersion(), versionOf(snap.SnapshotID))
	require.Equal(t, resp.GetLocation(), tbl.MetadataLocation())
	require.EqualValues(t, 1, snap.SequenceNumber)
	require.Nil(t, snap.ParentSnapshotID)
	require.Regexp(t, fmt.Sprintf(`^file://.*/n/one/metadata/snap-%d-1-.+-[0-9a-f]{16}\.avro$`, snap.SnapshotID), snap.ManifestList)
	require.Equal(t, "append", string(snap.Summary.Operation))
	size := strconv.FormatInt(j.totals.GetBytes(), 10)
	require.Equal(t, map[string]string{
		"added-data-files": "1", "added-records": "2", "added-files-size": size, "total-data-files": "1", "total-records": "2", "total-files-size": size,
		"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0", "changed-partition-count": "1",
		"engine-name": "signet", "engine-version": Version, summaryMarkers: j.marker(), "signet.job-ids": j.id,
	}, map[string]string(snap.Summary.Properties))
	require.Equal(t, j.marker()+":"+resp.GetVersion(), tbl.Properties()[testProperty])
	readBack(t, h, 2)
}

func TestCommit_AgainIsFound(t *testing.T) { // C15, I11
	h, c := simpleTable(t, "again", New())
	j := newJob(t, h, c)
	resp := j.land(j.write(row{vInt(1), vStr("a")}))
	for range 2 {
		again := j.commit()
		require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, again.GetOutcome())
		require.Equal(t, resp.GetVersion(), again.GetVersion())
	}
	found, err := c.Lookup(t.Context(), &sinkv1.LookupRequest{Table: h.ref(), Marker: j.marker(), MarkerProperty: testProperty})
	require.NoError(t, err)
	require.True(t, found.GetFound())
	require.Equal(t, resp.GetVersion(), found.GetVersion())
	readBack(t, h, 1)
}

func TestCommit_MarkerIsFoundInEitherPlace(t *testing.T) { // I6
	for name, forget := range map[string]func(*testHost){
		"summary gone, as after expiry": func(h *testHost) {
			next := newJob(h.t, h, h.client(New()))
			next.land(next.write(row{vInt(2), vStr("b")}))
			first := h.table().Metadata().Snapshots()[0].SnapshotID
			h.alter(map[string]any{"action": "remove-snapshots", "snapshot-ids": []int64{first}})
		},
		"property gone": func(h *testHost) {
			h.alter(map[string]any{"action": "remove-properties", "removals": []string{testProperty}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := simpleTable(t, "places", New())
			j := newJob(t, h, c)
			resp := j.land(j.write(row{vInt(1), vStr("a")}))
			forget(h)
			again := j.commit()
			require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, again.GetOutcome())
			require.Equal(t, resp.GetVersion(), again.GetVersion())
		})
	}
}

func TestCommit_ConflictKeepsThePeersRows(t *testing.T) { // C19, C4
	h, c := simpleTable(t, "peer", impatient())
	a, b := newJob(t, h, c), newJob(t, h, c)
	require.NoError(t, a.stage(a.write(row{vInt(1), vStr("a")})))
	require.NoError(t, b.stage(b.write(row{vInt(2), vStr("b")}, row{vInt(3), vStr("c")})))
	h.before = func(_, _ []byte) error {
		h.before = nil
		require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, b.commit().GetOutcome())
		return nil
	}
	resp := a.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	require.EqualValues(t, 2, resp.GetAttempts())
	require.Equal(t, "3", h.table().CurrentSnapshot().Summary.Properties["total-records"])
	require.EqualValues(t, 2, h.table().CurrentSnapshot().SequenceNumber)
	readBack(t, h, 3)
	var lists int
	for _, name := range h.created() {
		if strings.HasPrefix(name, "snap-") {
			lists++
		}
	}
	require.Equal(t, 3, lists, "each attempt has a list of its own name")
}

func TestCommit_LooksAgainBeforeEveryAttempt(t *testing.T) { // C4
	h, c := simpleTable(t, "twin", impatient())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	h.before = func(_, _ []byte) error { // the same job's other incarnation is faster
		h.before = nil
		require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, j.commit().GetOutcome())
		return nil
	}
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, j.commit().GetOutcome())
	readBack(t, h, 1)
}

func TestCommit_ConcurrentAppendsAllLand(t *testing.T) { // C25
	h, _ := simpleTable(t, "crowd", New())
	var wg sync.WaitGroup
	var jobs []*job
	for range 8 {
		c := h.client(New())
		j := newJob(t, h, c)
		require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
		jobs = append(jobs, j)
	}
	outcomes := make([]*sinkv1.CommitResponse, len(jobs))
	for i, j := range jobs {
		wg.Go(func() {
			req := j.request()
			req.MaxAttempts = 1000
			outcomes[i], _ = j.c.Commit(t.Context(), req)
		})
	}
	wg.Wait()
	for _, o := range outcomes {
		require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, o.GetOutcome(), o.GetMessage())
	}
	readBack(t, h, 8)
	require.Equal(t, "8", h.table().CurrentSnapshot().Summary.Properties["total-data-files"])
	require.Len(t, strings.Split(h.table().Properties()[testProperty], ","), 8)
}

func TestCommit_EndsAfterItsAttempts(t *testing.T) {
	h, c := simpleTable(t, "stubborn", impatient())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	h.before = func(_, _ []byte) error { return sdk.Refuse(sdk.Conflict, "moved") }
	req := j.request()
	req.MaxAttempts = 3
	resp, err := c.Commit(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_CONFLICT, resp.GetOutcome())
	require.Contains(t, resp.GetMessage(), "gave up after 3 attempts")
	require.EqualValues(t, 3, resp.GetAttempts())
	require.Equal(t, 3, h.requests)
}

func TestCommit_OutcomesOfTheHostsAnswers(t *testing.T) { // C1, C2, I4, I5
	for kind, want := range map[hostv1.RefusalKind]sinkv1.Outcome{
		sdk.Unknown: sinkv1.Outcome_OUTCOME_UNKNOWN, sdk.Permanent: sinkv1.Outcome_OUTCOME_PERMANENT, sdk.Fenced: sinkv1.Outcome_OUTCOME_PERMANENT,
		sdk.NotFound: sinkv1.Outcome_OUTCOME_PERMANENT, sdk.Already: sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, 0: sinkv1.Outcome_OUTCOME_UNKNOWN,
	} {
		h, c := simpleTable(t, "answers", impatient())
		j := newJob(t, h, c)
		require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
		h.before = func(_, _ []byte) error {
			if kind == 0 {
				return errors.New("connection cut")
			}
			return &sdk.RefusalError{Kind: kind, Message: "because", Version: "42", Location: "file:///there"}
		}
		resp := j.commit()
		require.Equal(t, want, resp.GetOutcome(), kind)
		require.Equal(t, 1, h.requests, "no second try of %v", kind)
		if kind == sdk.Already {
			require.Equal(t, "42", resp.GetVersion())
		}
	}
	h, c := simpleTable(t, "retried", impatient())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	h.before = func(_, _ []byte) error { h.before = nil; return sdk.Refuse(sdk.Retryable, "busy") }
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, j.commit().GetOutcome())
}

func TestCommit_LostReplyIsFoundAfterwards(t *testing.T) { // C3, I4
	h, c := simpleTable(t, "lost", impatient())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	h.after = func() error { h.after = nil; return errors.New("connection cut") }
	require.Equal(t, sinkv1.Outcome_OUTCOME_UNKNOWN, j.commit().GetOutcome())
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, j.commit().GetOutcome())
	readBack(t, h, 1)
}

func TestCommit_ARequestIsDeadOnceTheSequenceNumberHasPassed(t *testing.T) { // C33
	h, c := simpleTable(t, "rollback", impatient())
	first := newJob(t, h, c)
	first.land(first.write(row{vInt(1), vStr("a")}))
	head := h.table().CurrentSnapshot().SnapshotID
	late := newJob(t, h, c)
	require.NoError(t, late.stage(late.write(row{vInt(2), vStr("b")})))
	var requirements, updates []byte
	h.before = func(r, u []byte) error {
		requirements, updates = r, u
		h.before = nil
		return sdk.Refuse(sdk.Unknown, "in flight")
	}
	require.Equal(t, sinkv1.Outcome_OUTCOME_UNKNOWN, late.commit().GetOutcome())

	// Another writer commits, and the head is rolled back to where the request in flight was built.
	other := newJob(t, h, c)
	other.land(other.write(row{vInt(3), vStr("c")}))
	h.alter(map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": head})
	_, err := h.apply(t.Context(), requirements, updates)
	require.Error(t, err, "its sequence number has been used")
	require.Len(t, h.table().Metadata().Snapshots(), 2)
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, late.commit().GetOutcome())
	readBack(t, h, 2)
}

func TestCommit_ComputedSummaryWins(t *testing.T) { // C22
	h, c := simpleTable(t, "summary", New())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	u := j.unit()
	u.Properties = map[string]string{"added-records": "999", "total-records": "abc", "signet.markers": "x", "engine-name": "spark", "operation": "delete", "team": "blue", "wap.id": "7"}
	resp, err := c.Commit(t.Context(), j.request(u))
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome())
	p := h.table().CurrentSnapshot().Summary.Properties
	require.Equal(t, []string{"1", "1", j.marker(), "signet", "blue", ""}, []string{p["added-records"], p["total-records"], p["signet.markers"], p["engine-name"], p["team"], p["wap.id"]})
	require.Equal(t, "append", string(h.table().CurrentSnapshot().Summary.Operation))
}

func TestCommit_TotalsOfAParentThatDoesNotSay(t *testing.T) {
	h, c := simpleTable(t, "totals", New())
	j := newJob(t, h, c)
	j.land(j.write(row{vInt(1), vStr("a")}))
	h.rewriteMetadata(func(m map[string]any) {
		summary := m["snapshots"].([]any)[0].(map[string]any)["summary"].(map[string]any)
		delete(summary, "total-records")
		summary["total-data-files"] = "many"
	})
	c = h.client(New()) // nothing cached
	j = newJob(t, h, c)
	j.land(j.write(row{vInt(2), vStr("b")}))
	p := h.table().CurrentSnapshot().Summary.Properties
	require.NotContains(t, p, "total-records")
	require.NotContains(t, p, "total-data-files")
	require.Equal(t, "1", p["added-records"])
	require.Contains(t, p, "total-files-size")
}

func TestCommit_SeveralUnitsInOneSnapshot(t *testing.T) {
	h := newHost(t, "group")
	c := h.client(New())
	createTable(t, h, c, &sinkv1.TableDefinition{Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("name", tIdentity)}})
	a, b := newJob(t, h, c), newJob(t, h, c)
	require.NoError(t, a.stage(a.write(row{vInt(1), vStr("x")}, row{vInt(2), vStr("y")})))
	require.NoError(t, b.stage(b.write(row{vInt(3), vStr("y")})))
	ua, ub := a.unit(), b.unit()
	ua.Properties = map[string]string{"signet.user": "ann", "signet.query-hash": "h", "ticket": "7", "added-records": "999", "signet.x": "y"}
	ub.Properties = map[string]string{"signet.user": "bob", "signet.query-hash": "h", "ticket": "8", "also": "b"}
	resp, err := c.Commit(t.Context(), a.request(ua, ub))
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	p := h.table().CurrentSnapshot().Summary.Properties
	require.Equal(t, []string{"ann,bob", "h", "7", "b", "3", ""}, []string{p["signet.user"], p["signet.query-hash"], p["ticket"], p["also"], p["added-records"], p["signet.x"]})
	require.Equal(t, a.marker()+","+b.marker(), p[summaryMarkers])
	require.Equal(t, a.id+","+b.id, p["signet.job-ids"])
	require.Equal(t, "2", p["changed-partition-count"])
	require.Equal(t, "3", p["added-data-files"])
	require.Equal(t, fmt.Sprintf("%s:%s,%s:%s", a.marker(), resp.GetVersion(), b.marker(), resp.GetVersion()), h.table().Properties()[testProperty])
	readBack(t, h, 3)
	list := h.manifestList() // the manifests of both jobs are one
	require.Len(t, list, 1)
	require.EqualValues(t, 3, *list[0].Files.Added)
	require.EqualValues(t, 3, *list[0].Rows.Added)
	require.Equal(t, []string{"x", "y"}, []string{string(list[0].Partitions[0].Lower), string(list[0].Partitions[0].Upper)})

	both, err := c.Commit(t.Context(), a.request(a.unit(), b.unit()))
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, both.GetOutcome())
	third := newJob(t, h, c)
	require.NoError(t, third.stage(third.write(row{vInt(4), vStr("z")})))
	mixed, err := c.Commit(t.Context(), a.request(a.unit(), third.unit()))
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, mixed.GetOutcome())
	require.Contains(t, mixed.GetMessage(), "1 of 2 jobs")
}

func TestCommit_NothingToCommit(t *testing.T) { // C16
	h, c := simpleTable(t, "zero", New())
	j := newJob(t, h, c)
	resp := j.land()
	require.Contains(t, resp.GetMessage(), "no files")
	require.Nil(t, h.table().CurrentSnapshot())
	require.Zero(t, h.requests)
}

func TestCommit_RefusesARequestThatCannotBe(t *testing.T) {
	h, c := simpleTable(t, "request", New())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	for want, change := range map[string]func(*sinkv1.CommitRequest){
		"without units":           func(r *sinkv1.CommitRequest) { r.Units = nil },
		"without a marker prop":   func(r *sinkv1.CommitRequest) { r.MarkerProperty = "" },
		"is empty or comes twice": func(r *sinkv1.CommitRequest) { r.Units = append(r.Units, r.GetUnits()[0]) },
		"WRITE_MODE_CREATE":       func(r *sinkv1.CommitRequest) { r.Mode = sinkv1.WriteMode_WRITE_MODE_CREATE },
		"WRITE_MODE_UNSPECIFIED":  func(r *sinkv1.CommitRequest) { r.Mode = 0 },
		"marker \"\"":             func(r *sinkv1.CommitRequest) { r.Units[0].Marker = "" },
	} {
		req := j.request(j.unit())
		change(req)
		resp, err := c.Commit(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome(), want)
		require.Contains(t, resp.GetMessage(), want)
	}
	require.Zero(t, h.requests)
}

func TestCommit_KeepsTheRetentionOfMain(t *testing.T) {
	h, c := simpleTable(t, "retention", New())
	j := newJob(t, h, c)
	j.land(j.write(row{vInt(1), vStr("a")}))
	h.alter(map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": h.table().CurrentSnapshot().SnapshotID, "min-snapshots-to-keep": 7, "max-snapshot-age-ms": 86400000})
	j = newJob(t, h, c)
	j.land(j.write(row{vInt(2), vStr("b")}))
	for name, ref := range h.table().Metadata().Refs() {
		require.Equal(t, "main", name)
		require.Equal(t, 7, *ref.MinSnapshotsToKeep)
		require.EqualValues(t, 86400000, *ref.MaxSnapshotAgeMs)
	}
}

func TestCommit_RequestPinsWhatItWasBuiltOn(t *testing.T) {
	h, c := simpleTable(t, "pins", New())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	h.before = func(requirements, updates []byte) error {
		require.JSONEq(t, fmt.Sprintf(`[{"type":"assert-table-uuid","uuid":%q},{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null},
			{"type":"assert-current-schema-id","current-schema-id":0}]`, j.spec.GetTableUuid()), string(requirements))
		var actions []struct{ Action string }
		require.NoError(t, json.Unmarshal(updates, &actions))
		require.Equal(t, []struct{ Action string }{{"add-snapshot"}, {"set-snapshot-ref"}, {"set-properties"}}, actions)
		return nil
	}
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, j.commit().GetOutcome())
}

func TestMarkers_OldestGoFirst(t *testing.T) {
	var items []string
	for i := range 300 {
		items = append(items, fmt.Sprintf("m%d:%d", i, i))
	}
	got := strings.Split(addMarkers(strings.Join(items, ","), []string{"new"}, 999, []string{"m3", "m299"}), ",")
	require.Len(t, got, maxMarkers+2)
	require.Equal(t, "m3:3", got[0], "its outcome is not journalled yet")
	require.Equal(t, "m44:44", got[1])
	require.Equal(t, "new:999", got[len(got)-1])
	require.Contains(t, got, "m299:299")

	require.Equal(t, "new:1", addMarkers("", []string{"new"}, 1, nil))
	require.Equal(t, "what is this,,a:x,b:2,new:1", addMarkers("what is this,,a:x,b:2", []string{"new"}, 1, nil), "foreign text stays")
	require.Equal(t, "a:1,b:2,c:2", addMarkers("a:1", []string{"b", "c"}, 2, nil))
}

func TestBackoff_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, backoff(ctx, 100), context.Canceled)
}

func TestCommit_ListNameTaken(t *testing.T) {
	h, c := simpleTable(t, "taken", impatient())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	taken := false
	h.beforePut = func(uri string) error {
		if strings.Contains(uri, "/snap-") && !taken {
			taken = true
			return sdk.Refuse(sdk.Exists, "%s", uri)
		}
		return nil
	}
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	require.EqualValues(t, 2, resp.GetAttempts())

	h.beforePut = func(uri string) error {
		if strings.Contains(uri, "/snap-") {
			return nil
		}
		return sdk.Refuse(sdk.Permanent, "disk full")
	}
	j = newJob(t, h, c)
	require.NoError(t, j.stage([]*planv1.DataFile{j.plainFile(0, 1)}), "one small manifest is created by the commit")
	resp = j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome())
	require.Contains(t, resp.GetMessage(), "write Iceberg manifest")
	require.Contains(t, resp.GetMessage(), "disk full")

	refused(t, j.stage(j.manyFiles(3000)), sdk.Permanent, "disk full", "write Iceberg manifest")
}

// A manifest that came within its reference is created under another name when its commit is tried again, in the same call or in another one.
func TestCommit_CreatesItsManifestAgain(t *testing.T) {
	h, c := simpleTable(t, "again", impatient())
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	var tried []string
	h.beforePut = func(uri string) error {
		if !strings.Contains(uri, "/snap-") {
			if tried = append(tried, uri); len(tried) == 1 {
				return sdk.Refuse(sdk.Retryable, "the store is busy")
			}
		}
		return nil
	}
	h.before = func(_, _ []byte) error { return sdk.Refuse(sdk.Permanent, "not now") }
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, j.commit().GetOutcome())
	h.before = nil
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	require.Len(t, tried, 3)
	require.NotEqual(t, tried[0], tried[1])
	require.NotEqual(t, tried[1], tried[2])
	readBack(t, h, 1)
}
