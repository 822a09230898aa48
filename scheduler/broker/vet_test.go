package broker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/scheduler/broker"
)

// snap is the snapshot of a built request.
func (b *built) snap() map[string]any { return b.update("add-snapshot")["snapshot"].(map[string]any) }

func (b *built) summary() map[string]string { return b.snap()["summary"].(map[string]string) }

func (b *built) update(action string) map[string]any {
	for _, u := range b.upds {
		if u["action"] == action {
			return u
		}
	}
	return nil
}

func (b *built) props() map[string]string {
	return b.update("set-properties")["updates"].(map[string]string)
}

func (b *built) drop(action string) {
	for i, u := range b.upds {
		if u["action"] == action {
			b.upds = append(b.upds[:i:i], b.upds[i+1:]...)
			return
		}
	}
}

// relist writes another manifest list into the request.
func (b *built) relist(t *testing.T, s *sink, manifests []iceberg.ManifestFile) {
	t.Helper()
	b.manifests = manifests
	uri, err := b.putList(b.md.Location(), s.put)
	require.NoError(t, err)
	b.snap()["manifest-list"] = uri
}

// TestVet_Append spoils one thing at a time in a good append. Each is refused for good, with its reason, and nothing is sent or sealed.
// Numbers in docs/semantics.md: S69.
func TestVet_Append(t *testing.T) {
	type env struct {
		*testing.T
		*built
		j *job
	}
	b := newBench(t)
	b.createTable()
	_, err := b.job().sink.append() // a parent with a marker
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		spoil func(e env)
		want  string
	}{
		"other action": {func(e env) {
			e.upds = append(e.upds, map[string]any{"action": "remove-snapshots", "snapshot-ids": []int64{1}})
		}, "not allowed"},
		"action of a create":      {func(e env) { e.upds = append(e.upds, map[string]any{"action": "set-location", "location": "x"}) }, "not allowed in a write"},
		"unknown action":          {func(e env) { e.upds = append(e.upds, map[string]any{"action": "sell-table"}) }, "not allowed"},
		"no action":               {func(e env) { e.upds = append(e.upds, map[string]any{"snapshot": 1}) }, "without"},
		"two snapshots":           {func(e env) { e.upds = append(e.upds, e.upds[0]) }, "twice"},
		"no snapshot":             {func(e env) { e.drop("add-snapshot") }, "one add-snapshot"},
		"no ref":                  {func(e env) { e.drop("set-snapshot-ref") }, "set-snapshot-ref"},
		"other branch":            {func(e env) { e.update("set-snapshot-ref")["ref-name"] = "audit" }, "branch main"},
		"a tag":                   {func(e env) { e.update("set-snapshot-ref")["type"] = "tag" }, "branch main"},
		"ref to another snapshot": {func(e env) { e.update("set-snapshot-ref")["snapshot-id"] = *e.parent }, "branch main"},
		"retention changed":       {func(e env) { e.update("set-snapshot-ref")["max-snapshot-age-ms"] = 1 }, "retention"},
		"retention emptied":       {func(e env) { e.update("set-snapshot-ref")["min-snapshots-to-keep"] = 1 }, "retention"},
		"unknown member":          {func(e env) { e.snap()["key-id"] = "k" }, "not allowed"},
		"member in other case":    {func(e env) { e.snap()["Manifest-List"] = "file:///elsewhere" }, "not allowed"},
		"overwrite":               {func(e env) { e.summary()["operation"] = "overwrite" }, "append"},
		"no operation":            {func(e env) { delete(e.summary(), "operation") }, "append"},
		"no summary marker":       {func(e env) { delete(e.summary(), "signet.markers") }, "exactly"},
		"foreign summary marker":  {func(e env) { e.summary()["signet.markers"] += ",abc" }, "exactly"},
		"another user":            {func(e env) { e.summary()["signet.user"] = "eve" }, "signet.user"},
		"a property nobody set":   {func(e env) { e.summary()["ticket"] = "7" }, "which no job has set"},
		"old sequence number":     {func(e env) { e.snap()["sequence-number"] = e.seq - 1 }, "sequence number"},
		"far sequence number":     {func(e env) { e.snap()["sequence-number"] = e.seq + 7 }, "sequence number"},
		"other parent":            {func(e env) { e.snap()["parent-snapshot-id"] = 4711 }, "parent"},
		"no parent":               {func(e env) { delete(e.snap(), "parent-snapshot-id") }, "parent"},
		"id of another snapshot": {func(e env) {
			e.snap()["snapshot-id"], e.update("set-snapshot-ref")["snapshot-id"] = *e.parent, *e.parent
			e.own(*e.parent, e.j)
		}, "exists already"},
		"negative id": {func(e env) {
			e.snap()["snapshot-id"], e.update("set-snapshot-ref")["snapshot-id"] = -1, -1
			e.own(-1, e.j)
		}, "snapshot id"},
		"no table UUID":          {func(e env) { e.reqs = e.reqs[1:] }, "assert-table-uuid"},
		"other table UUID":       {func(e env) { e.reqs[0]["uuid"] = uuid.NewString() }, "assert-table-uuid"},
		"no head":                {func(e env) { e.reqs = e.reqs[:1] }, "pinned"},
		"head of another branch": {func(e env) { e.reqs[1]["ref"] = "audit" }, "main"},
		"head twice":             {func(e env) { e.reqs = append(e.reqs, e.reqs[1]) }, "twice"},
		"unknown requirement":    {func(e env) { e.reqs = append(e.reqs, map[string]any{"type": "assert-luck"}) }, "not allowed"},
		"assert-create":          {func(e env) { e.reqs = append(e.reqs, map[string]any{"type": "assert-create"}) }, "assert-create"},
		"UUID that is none":      {func(e env) { e.reqs[0]["uuid"] = "uuid" }, "no UUID"},

		"no marker property": {func(e env) { e.drop("set-properties") }, "marker property"},
		"another property":   {func(e env) { e.props()["owner"] = "me" }, "marker property"},
		"another cluster's marker": {func(e env) {
			e.props()["signet.landed.other"] = e.props()[markerProperty]
			delete(e.props(), markerProperty)
		}, "nothing else"},
		"two property updates": {func(e env) {
			e.upds = append(e.upds, map[string]any{"action": "set-properties", "updates": map[string]string{"a": "b"}})
		}, "marker property"},
		"own marker missing":        {func(e env) { e.props()[markerProperty] = "" }, "is missing"},
		"marker of other snapshot":  {func(e env) { e.props()[markerProperty] = e.j.spec.Markers[0] + ":1" }, "another snapshot"},
		"foreign marker forged":     {func(e env) { e.props()[markerProperty] += ",abcdef:1" }, "neither"},
		"other job's marker lost":   {func(e env) { e.props()[markerProperty] = fmt.Sprintf("%s:%d", e.j.spec.Markers[0], e.id) }, "evicted"},
		"other job's marker edited": {func(e env) { e.props()[markerProperty] = strings.Replace(e.props()[markerProperty], ":", ":1", 1) }, "neither"},

		"list not ours":       {func(e env) { e.snap()["manifest-list"] = e.md.CurrentSnapshot().ManifestList }, "not created by this job"},
		"list elsewhere":      {func(e env) { e.snap()["manifest-list"] = "file:///etc/passwd" }, "not below"},
		"list of another dir": {func(e env) { e.snap()["manifest-list"] = e.md.Location() + "/data/list.avro" }, "not below"},
		"list climbs":         {func(e env) { e.snap()["manifest-list"] = e.md.Location() + "/metadata/../../x.avro" }, "not below"},
		"no list":             {func(e env) { delete(e.snap(), "manifest-list") }, "not below"},
		"list is no list": {func(e env) {
			uri := e.md.Location() + "/metadata/junk.avro"
			require.NoError(e, e.j.sink.put(uri, []byte("Obj\x01 no avro")))
			e.snap()["manifest-list"] = uri
		}, "manifest list"},
		"parent's manifest dropped": {func(e env) { e.relist(e.T, e.j.sink, e.manifests[:1]) }, "in no manifest of the snapshot"},
		"manifest not ours": {func(e env) {
			foreign := e.md.Location() + "/metadata/other-m0.avro"
			e.relist(e.T, e.j.sink, append(e.manifests, iceberg.NewManifestFile(2, foreign, 10, 0, e.id).Build()))
		}, "not created by this job"},
		"manifest elsewhere": {func(e env) {
			e.relist(e.T, e.j.sink, append(e.manifests, iceberg.NewManifestFile(2, "file:///etc/passwd", 10, 0, e.id).Build()))
		}, "outside of the table"},
		"manifest twice": {func(e env) { e.relist(e.T, e.j.sink, append(e.manifests, e.manifests[0])) }, "twice"},
		"deletes": {func(e env) {
			m := e.manifests[0]
			e.relist(e.T, e.j.sink, append(e.manifests[1:], iceberg.NewManifestFile(2, m.FilePath(), m.Length(), 0, e.id).Content(iceberg.ManifestContentDeletes).Build()))
		}, "deletes"},
		"existing files": {func(e env) {
			m := e.manifests[0]
			e.relist(e.T, e.j.sink, append(e.manifests[1:], iceberg.NewManifestFile(2, m.FilePath(), m.Length(), 0, e.id).AddedFiles(1).ExistingFiles(3).Build()))
		}, "beside files of the parent"},
		"more rows than accepted": {func(e env) {
			m := e.manifests[0]
			e.relist(e.T, e.j.sink, append(e.manifests[1:], iceberg.NewManifestFile(2, m.FilePath(), m.Length(), 0, e.id).AddedFiles(1).AddedRows(999).Build()))
		}, "accepted were"},
		"summary counts lie (C22)": {func(e env) { e.summary()["added-records"] = "999" }, "added-records"},
		"summary count is text":    {func(e env) { e.summary()["added-data-files"] = "abc" }, "added-data-files"},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.load().MetadataLocation
			sent := len(b.cat.Sent())
			j := b.job(func(s *broker.LeaseSpec) { s.Totals = &sinkv1.Totals{Files: 1, Rows: 10} })
			l, err := j.sink.load()
			require.NoError(t, err)
			made, err := j.sink.build(l)
			require.NoError(t, err)
			tc.spoil(env{t, made, j})
			_, err = j.sink.sendBuilt(made)
			requireRefusal(t, permanent, err, tc.want)
			require.Len(t, b.cat.Sent(), sent, "nothing is sent")
			require.Equal(t, before, b.load().MetadataLocation)
			require.Zero(t, j.gate.m.Seals(), "nothing is sealed")

			_, err = j.sink.append() // and the lease still works
			require.NoError(t, err)
		})
	}
}

// own sets the marker entry of the request to another snapshot.
func (b *built) own(id int64, j *job) {
	b.props()[markerProperty] = strings.Replace(b.props()[markerProperty], j.spec.Markers[0]+":"+strconv.FormatInt(b.id, 10), j.spec.Markers[0]+":"+strconv.FormatInt(id, 10), 1)
}

// Documents that two readers could read in two ways are refused as such.
func TestVet_AmbiguousJSON(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	made, err := j.sink.build(l)
	require.NoError(t, err)
	reqs, upds, err := made.encode()
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		reqs, upds []byte
		want       string
	}{
		"member twice":     {reqs, bytes.Replace(upds, []byte(`"operation"`), []byte(`"operation":"append","operation"`), 1), "twice"},
		"nested twice":     {reqs, bytes.Replace(upds, []byte(`"snapshot-id"`), []byte(`"snapshot-id":1,"snapshot-id"`), 1), "twice"},
		"requirement too":  {bytes.Replace(reqs, []byte(`"uuid"`), []byte(`"uuid":"x","uuid"`), 1), upds, "twice"},
		"something behind": {append(bytes.Clone(reqs), []byte(" []")...), upds, "follows"},
		"cut":              {reqs[:len(reqs)-1], upds, "requirements"},
		"empty":            {nil, nil, "requirements"},
		"null items":       {[]byte("[null]"), upds, "requirements"},
		"too deep":         {[]byte(strings.Repeat("[", 1<<20)), upds, "nested"},
		"an object":        {[]byte("{}"), upds, "requirements"},
		"wrong type":       {reqs, bytes.Replace(upds, []byte(`"sequence-number":1`), []byte(`"sequence-number":"1"`), 1), "updates"},
		"fraction":         {reqs, bytes.Replace(upds, []byte(`"sequence-number":1`), []byte(`"sequence-number":1.5`), 1), "updates"},
	} {
		_, err := j.sink.send(j.sink.ctx, tc.reqs, tc.upds)
		requireRefusal(t, permanent, err, tc.want)
		require.Empty(t, b.cat.Sent(), name)
	}
	_, err = j.sink.send(j.sink.ctx, reqs, upds)
	require.NoError(t, err)
}

func TestVet_RequestArrivesInPieces(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	made, err := j.sink.build(l)
	require.NoError(t, err)
	reqs, upds, err := made.encode()
	require.NoError(t, err)
	st, err := j.sink.catalog.CommitTable(j.sink.ctx)
	require.NoError(t, err)
	for i := range max(len(reqs), len(upds)) {
		m := &hostv1.CommitTableRequest{}
		if i < len(reqs) {
			m.Requirements = reqs[i : i+1]
		}
		if i < len(upds) {
			m.Updates = upds[i : i+1]
		}
		require.NoError(t, st.Send(m))
	}
	_, err = st.CloseAndRecv()
	require.NoError(t, err)
}

func TestVet_RequestTooLarge(t *testing.T) {
	b := newBench(t)
	b.createTable()
	j := b.job()
	st, err := j.sink.catalog.CommitTable(j.sink.ctx)
	require.NoError(t, err)
	for range 10 {
		if st.Send(&hostv1.CommitTableRequest{Updates: make([]byte, 1<<20)}) != nil {
			break
		}
	}
	_, err = st.CloseAndRecv()
	requireRefusal(t, permanent, err, "passes")
}

// The marker property keeps the newest 256 and what must stay; older ones may go.
func TestVet_MarkerEviction(t *testing.T) {
	b := newBench(t)
	tbl := b.createTable()
	var old []string
	for i := range 300 {
		old = append(old, fmt.Sprintf("%024x:%d", i, i+1))
	}
	reqs, upds := catalogtest.SetProperties(tbl, map[string]string{markerProperty: strings.Join(old, ",")})
	_, err := b.cat.Commit(t.Context(), ident, reqs, upds)
	require.NoError(t, err)
	keep := fmt.Sprintf("%024x", 3)
	j := b.job(func(s *broker.LeaseSpec) { s.KeepMarkers = []string{keep} })
	try := func(kept []string) error {
		l, err := j.sink.load()
		require.NoError(t, err)
		made, err := j.sink.build(l)
		require.NoError(t, err)
		own := fmt.Sprintf("%s:%d", j.spec.Markers[0], made.id)
		made.props()[markerProperty] = strings.Join(append(kept, own), ",")
		_, err = j.sink.sendBuilt(made)
		return err
	}
	requireRefusal(t, permanent, try(old[100:]), "must stay")
	requireRefusal(t, permanent, try(append([]string{old[3]}, old[50:]...)[:200]), "evicted")
	reversed := append([]string{old[299]}, old[:299]...)
	requireRefusal(t, permanent, try(reversed), "must stay")
	require.NoError(t, try(append([]string{old[3]}, old[46:]...))) // 255 old ones and the own
}

func TestVet_AppendNeedsFormatVersion2AndATable(t *testing.T) {
	b := newBench(t)
	j := b.job()
	_, err := j.sink.append()
	requireRefusal(t, notFound, err, "does not exist")
	spec := catalogtest.Spec()
	spec.Properties = map[string]string{"format-version": "1"}
	_, err = b.cat.Create(t.Context(), ident, spec)
	require.NoError(t, err)
	j = b.job()
	l, err := j.sink.load()
	require.NoError(t, err)
	require.Equal(t, 1, l.md.Version())
	made, err := j.sink.build(l)
	require.NoError(t, err)
	_, err = j.sink.sendBuilt(made)
	requireRefusal(t, permanent, err, "version 2")
}

// Readers and DDL leases do not commit; neither does a lease of a mode that nobody knows.
func TestVet_LeasesThatDoNotCommit(t *testing.T) {
	b := newBench(t)
	b.createTable()
	for name, edit := range map[string]func(*broker.LeaseSpec){
		"read only": func(s *broker.LeaseSpec) { s.ReadOnly = true },
		"no gate":   func(s *broker.LeaseSpec) { s.Gate = nil },
		"no mode":   func(s *broker.LeaseSpec) { s.Mode = 0 },
	} {
		b.config.Epoch = 1
		maker, taker := b.job(), b.job(edit)
		l, err := maker.sink.load()
		require.NoError(t, err)
		made, err := maker.sink.build(l)
		require.NoError(t, err)
		reqs, upds, err := made.encode()
		require.NoError(t, err)
		_, err = taker.sink.send(taker.sink.ctx, reqs, upds)
		requireRefusal(t, permanent, err, "")
		require.Empty(t, b.cat.Sent(), name)
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`[{"type":"assert-create"}]`), []byte(`[{"action":"set-location","location":"x"}]`))
	f.Add([]byte(`[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]`), []byte(`[{"action":"add-snapshot","snapshot":{}}]`))
	f.Fuzz(func(t *testing.T, reqs, upds []byte) {
		if err := broker.ParseRequest(reqs, upds); err != nil {
			return
		}
		require.True(t, json.Valid(reqs))
		require.True(t, json.Valid(upds))
	})
}

// A write that registers files may give the table a name mapping: its columns' own names, where it has none.
func TestVet_NameMappingOfAddedFiles(t *testing.T) {
	const own = `[{"field-id":1,"names":["id"]}]`
	try := func(b *bench, adds bool, text string) error {
		j := b.job(func(s *broker.LeaseSpec) { s.AddsFiles = adds })
		l, err := j.sink.load()
		require.NoError(t, err)
		made, err := j.sink.build(l)
		require.NoError(t, err)
		made.props()["schema.name-mapping.default"] = text
		_, err = j.sink.sendBuilt(made)
		return err
	}
	b := newBench(t)
	b.createTable()
	var names []string
	for _, f := range b.load().Metadata.CurrentSchema().Fields() {
		names = append(names, fmt.Sprintf(`{"field-id":%d,"names":[%q]}`, f.ID, f.Name))
	}
	mapping := "[" + strings.Join(names, ",") + "]"
	requireRefusal(t, permanent, try(b, false, mapping), "marker property alone")
	for _, text := range []string{"[]", "{}", own + "x", strings.Replace(mapping, `"names":[`, `"names":["other",`, 1), strings.Replace(mapping, `"field-id":1`, `"field-id":7`, 1)} {
		requireRefusal(t, permanent, try(b, true, text), "marker property alone")
	}
	require.NoError(t, try(b, true, mapping))
	require.Equal(t, mapping, b.load().Metadata.Properties()["schema.name-mapping.default"])
	requireRefusal(t, permanent, try(b, true, mapping), "marker property alone")
}
