package broker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

// createJob is a CTAS whose table gets the given UUID.
func (b *bench) createJob(edit ...func(*broker.LeaseSpec)) *job {
	return b.job(append([]func(*broker.LeaseSpec){func(s *broker.LeaseSpec) {
		s.JobID, s.Mode, s.AllowCreate, s.TableUUID = uuid.NewString(), sinkv1.WriteMode_WRITE_MODE_CREATE, true, uuid.NewString()
	}}, edit...)...)
}

// buildCreate makes the request of a CTAS.
func (j *job) buildCreate() (*built, error) {
	l, err := j.sink.load()
	if err != nil {
		return nil, err
	}
	if !l.missing {
		return nil, fmt.Errorf("the table exists")
	}
	var schema iceberg.Schema
	if err := json.Unmarshal([]byte(catalogtest.SchemaJSON), &schema); err != nil {
		return nil, err
	}
	b := &built{id: rand.Int64N(1<<62) + 1, seq: 1}
	mf, err := j.sink.stage(2, l.home, *iceberg.UnpartitionedSpec, &schema, b.id)
	if err != nil {
		return nil, err
	}
	b.manifests = []iceberg.ManifestFile{mf}
	if b.list, err = b.putList(l.home, j.sink.put); err != nil {
		return nil, err
	}
	b.reqs = []map[string]any{{"type": "assert-create"}}
	b.upds = append([]map[string]any{
		{"action": "assign-uuid", "uuid": j.spec.TableUUID},
		{"action": "upgrade-format-version", "format-version": 2},
		{"action": "add-schema", "schema": json.RawMessage(catalogtest.SchemaJSON), "last-column-id": 2},
		{"action": "set-current-schema", "schema-id": -1},
		{"action": "add-spec", "spec": map[string]any{"spec-id": 0, "fields": []any{}}},
		{"action": "set-default-spec", "spec-id": -1},
		{"action": "add-sort-order", "sort-order": map[string]any{"order-id": 0, "fields": []any{}}},
		{"action": "set-default-sort-order", "sort-order-id": -1},
		{"action": "set-location", "location": l.home},
		{"action": "set-properties", "updates": map[string]string{markerProperty: fmt.Sprintf("%s:%d", j.spec.Markers[0], b.id), "owner": "me"}},
	}, b.snapshotUpdates(j.spec.Markers, 0)...)
	return b, nil
}

func (j *job) create() (*hostv1.CommitTableResponse, error) {
	b, err := j.buildCreate()
	if err != nil {
		return nil, err
	}
	return j.sink.sendBuilt(b)
}

func TestCreate_TableAndRowsInOneCommit(t *testing.T) {
	b := newBench(t)
	j := b.createJob()
	r, err := j.create()
	require.NoError(t, err)
	now := b.load()
	require.Equal(t, j.spec.TableUUID, now.UUID)
	require.Equal(t, now.MetadataLocation, r.GetLocation())
	require.Equal(t, "me", now.Metadata.Properties()["owner"])
	require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
	require.Equal(t, coordinator.Committed, j.gate.state())
	_, err = j.create()
	require.Error(t, err)

	_, err = b.job().sink.append() // the table is an ordinary one
	require.NoError(t, err)
}

func TestCreate_Refusals(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*built)
		want  string
	}{
		"other location": {func(b *built) { b.update("set-location")["location"] = "file:///elsewhere" }, "only"},
		"neighbour's location": {func(b *built) {
			b.update("set-location")["location"] = b.update("set-location")["location"].(string) + "2"
		}, "only"},
		"other UUID":                      {func(b *built) { b.update("assign-uuid")["uuid"] = uuid.NewString() }, "assign-uuid"},
		"no UUID":                         {func(b *built) { b.drop("assign-uuid") }, "lacks"},
		"no schema":                       {func(b *built) { b.drop("add-schema") }, "lacks"},
		"no snapshot":                     {func(b *built) { b.drop("add-snapshot") }, "lacks"},
		"version 1 with sequence numbers": {func(b *built) { b.update("upgrade-format-version")["format-version"] = 1 }, "sequence number 1: want 0"},
		"version 4":                       {func(b *built) { b.update("upgrade-format-version")["format-version"] = 4 }, "format version"},
		"no assert-create":                {func(b *built) { b.reqs = []map[string]any{} }, "assert-create"},
		"pins a table": {func(b *built) {
			b.reqs = append(b.reqs, map[string]any{"type": "assert-table-uuid", "uuid": uuid.NewString()})
		}, "assert-create"},
		"no marker property":    {func(b *built) { b.props()[markerProperty] = "" }, "is missing"},
		"other marker property": {func(b *built) { b.props()["signet.landed.other"] = "abc:1" }, "reserved"},
		"metadata elsewhere":    {func(b *built) { b.props()["write.metadata.path"] = "file:///tmp/x" }, "write.metadata.path"},
		"data elsewhere":        {func(b *built) { b.props()["write.data.path"] = "file:///tmp/x" }, "write.data.path"},
		"data in a bucket":      {func(b *built) { b.props()["write.folder-storage.path"] = "s3://b/x" }, "write.folder-storage.path"},
		"property twice": {func(b *built) {
			b.upds = append(b.upds, map[string]any{"action": "set-properties", "updates": map[string]string{"owner": "you"}})
		}, "twice"},
		"removes something": {func(b *built) {
			b.upds = append(b.upds, map[string]any{"action": "remove-properties", "removals": []string{"a"}})
		}, "not allowed"},
		"parent":          {func(b *built) { b.snap()["parent-snapshot-id"] = 1 }, "parent"},
		"sequence number": {func(b *built) { b.snap()["sequence-number"] = 2 }, "sequence number"},
		"retention":       {func(b *built) { b.update("set-snapshot-ref")["max-ref-age-ms"] = 1 }, "retention"},
		"list elsewhere":  {func(b *built) { b.snap()["manifest-list"] = "file:///etc/passwd" }, "not below"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			j := b.createJob()
			made, err := j.buildCreate()
			require.NoError(t, err)
			tc.spoil(made)
			_, err = j.sink.sendBuilt(made)
			requireRefusal(t, permanent, err, tc.want)
			require.Empty(t, b.cat.Sent())
			require.Zero(t, j.gate.m.Seals())
		})
	}
}

// All leases of a job name the place that was chosen first, although the catalog would choose anew where files lie already.
func TestCreate_OnePlacePerJob(t *testing.T) {
	b := newBench(t)
	j := b.createJob()
	l, err := j.sink.load()
	require.NoError(t, err)
	require.Equal(t, l.home, j.lease.Location())
	require.NoError(t, j.sink.put(l.home+"/metadata/x.avro", []byte("x")))
	j.spec.Location = j.lease.Location()
	j.newLease()
	_, err = j.create()
	require.NoError(t, err)
	require.Equal(t, l.home, b.load().Location)

	given := b.createJob(func(s *broker.LeaseSpec) { s.Ident, s.Location = catalog.Ident{"demo", "other"}, l.home+"-chosen" })
	o, err := given.sink.load()
	require.NoError(t, err)
	require.Equal(t, l.home+"-chosen", o.home)
}

func TestCreate_SomebodyElseWasFaster(t *testing.T) {
	b := newBench(t)
	j := b.createJob()
	made, err := j.buildCreate()
	require.NoError(t, err)
	b.createTable()
	_, err = j.sink.sendBuilt(made)
	requireRefusal(t, conflict, err, "")
	require.Equal(t, coordinator.Committing, j.gate.state())
	l, err := j.sink.load()
	require.NoError(t, err)
	require.False(t, l.missing)
	_, err = j.sink.sendBuilt(made)
	requireRefusal(t, exists, err, "exists")
	require.Empty(t, b.load().Metadata.Snapshots())
}

func TestCreate_UnknownOutcomes(t *testing.T) {
	for _, faults := range [][]catalogtest.Fault{
		{catalogtest.LostReply},
		{catalogtest.Dropped, catalogtest.Dropped},
		{catalogtest.Dropped, catalogtest.LostReply},
	} {
		b := newBench(t)
		j := b.createJob()
		b.cat.Next(faults...)
		_, err := j.create()
		require.NoError(t, err)
		require.Equal(t, coordinator.Committed, j.gate.state())
		require.Equal(t, 1, b.counts()[j.spec.Markers[0]])
	}
}

func TestCreate_UnknownThenTakenByAnother(t *testing.T) {
	b := newBench(t)
	j := b.createJob()
	made, err := j.buildCreate()
	require.NoError(t, err)
	b.cat.Next(catalogtest.Dropped, catalogtest.Slow)
	done := make(chan error, 1)
	go func() {
		_, err := j.sink.sendBuilt(made)
		done <- err
	}()
	<-b.cat.Arrived()
	<-b.cat.Arrived()
	b.createTable()
	_ = b.cat.Release(t.Context())
	requireRefusal(t, conflict, <-done, "UUID")
	require.Equal(t, []coordinator.OutcomeKind{coordinator.OutcomeUnknown, coordinator.OutcomeDead}, j.gate.outcomes())
}

// The marker of a CTAS answers when memory is lost.
func TestCreate_MarkerAnswers(t *testing.T) {
	b := newBench(t)
	j := b.createJob()
	made, err := j.buildCreate()
	require.NoError(t, err)
	_, err = j.sink.sendBuilt(made)
	require.NoError(t, err)
	b.restart()
	again := b.createJob(func(s *broker.LeaseSpec) { s.Markers, s.TableUUID = j.spec.Markers, j.spec.TableUUID })
	_, err = again.sink.sendBuilt(made)
	requireRefusal(t, already, err, "committed")
}

// ddl calls CreateTable under a lease of the given spec.
func (j *job) ddl(r *hostv1.CreateTableRequest) (*hostv1.CreateTableResponse, error) {
	if r.Schema == nil {
		r.Schema = []byte(catalogtest.SchemaJSON)
	}
	return j.sink.catalog.CreateTable(j.sink.ctx, r)
}

func TestDDL_CreateAndDrop(t *testing.T) {
	b := newBench(t)
	maker := func(s *broker.LeaseSpec) { s.Gate, s.AllowCreate, s.Mode = nil, true, 0 }
	j := b.job(maker)
	_, err := j.ddl(&hostv1.CreateTableRequest{Location: "file:///elsewhere"})
	requireRefusal(t, permanent, err, "only")
	for k, v := range map[string]string{"signet.landed.test": "abc:1", "write.metadata.path": "file:///tmp/x", "write.data.path": "file:///tmp/x", "write.object-storage.path": "/tmp/x"} {
		_, err = j.ddl(&hostv1.CreateTableRequest{Properties: map[string]string{k: v}})
		requireRefusal(t, permanent, err, k)
	}
	r, err := j.ddl(&hostv1.CreateTableRequest{Properties: map[string]string{"owner": "me"}})
	require.NoError(t, err)
	require.Equal(t, b.load().MetadataLocation, r.GetLocation())
	require.True(t, json.Valid(r.GetMetadata()))
	_, err = b.job(maker, func(s *broker.LeaseSpec) { s.JobID = "another" }).ddl(&hostv1.CreateTableRequest{})
	requireRefusal(t, exists, err, "exists")

	other := b.job(func(s *broker.LeaseSpec) { s.Gate, s.Mode = nil, 0 })
	_, err = other.ddl(&hostv1.CreateTableRequest{})
	requireRefusal(t, permanent, err, "does not allow")
	_, err = other.sink.catalog.DropTable(other.sink.ctx, &hostv1.DropTableRequest{})
	requireRefusal(t, permanent, err, "does not allow")

	drop := b.job(func(s *broker.LeaseSpec) { s.Gate, s.AllowDrop, s.Mode = nil, true, 0 })
	_, err = drop.sink.catalog.DropTable(drop.sink.ctx, &hostv1.DropTableRequest{})
	require.NoError(t, err)
	_, err = drop.sink.catalog.DropTable(drop.sink.ctx, &hostv1.DropTableRequest{})
	requireRefusal(t, notFound, err, "not found")
	_, err = other.sink.load()
	requireRefusal(t, notFound, err, "does not exist")

	nowhere := b.job(maker, func(s *broker.LeaseSpec) { s.Ident = catalog.Ident{"no such", "t"} })
	_, err = nowhere.ddl(&hostv1.CreateTableRequest{})
	requireRefusal(t, notFound, err, "")
	require.False(t, strings.Contains(err.Error(), "sqlite"), "no catalog details reach the plugin")
}

// Metadata of a later version of the format, or with a type that nobody here knows, is refused once and for all, and says why.
func TestLoad_UnreadableMetadata(t *testing.T) {
	for change, want := range map[[2]string]string{
		{`"format-version":2`, `"format-version":7`}: "version",
		{`"type":"long"`, `"type":"frob"`}:           "type",
	} {
		b := newBench(t)
		tbl := b.createTable()
		j := b.job()
		path := strings.TrimPrefix(tbl.MetadataLocation, "file://")
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		edited := bytes.ReplaceAll(raw, []byte(change[0]), []byte(change[1]))
		require.NotEqual(t, raw, edited)
		require.NoError(t, os.WriteFile(path, append(edited, '\n'), 0o600)) // of another size, so that no cache takes it for the same
		_, err = j.sink.load()
		r := requireRefusal(t, permanent, err, "unreadable metadata")
		require.Contains(t, r.Message, want)
	}
}

func TestLoad_VerbatimAndUnchanged(t *testing.T) {
	b := newBench(t)
	tbl := b.createTable()
	j := b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	raw, err := b.cat.RawMetadata(t.Context(), tbl)
	require.NoError(t, err)
	require.Equal(t, string(raw), string(l.raw))
	require.Equal(t, tbl.MetadataLocation, l.location)
	load := func(known string) *hostv1.LoadTableResponse {
		st, err := j.sink.catalog.LoadTable(j.sink.ctx, &hostv1.LoadTableRequest{KnownLocation: known})
		require.NoError(t, err)
		m, err := st.Recv()
		require.NoError(t, err)
		return m
	}
	require.True(t, load(tbl.MetadataLocation).GetUnchanged())
	require.Empty(t, load(tbl.MetadataLocation).GetMetadata())
	require.False(t, load("file:///old").GetUnchanged())

	big := map[string]string{"comment": strings.Repeat("x", 3<<20)} // four chunks
	reqs, upds := catalogtest.SetProperties(tbl, big)
	_, err = b.cat.Commit(t.Context(), ident, reqs, upds)
	require.NoError(t, err)
	l, err = j.sink.load()
	require.NoError(t, err)
	require.Equal(t, big["comment"], l.md.Properties()["comment"])
	_, err = j.sink.append()
	require.NoError(t, err)
}
