package broker_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/broker"
)

// addManifest writes a manifest of files that the snapshot of a commit adds.
func (s *sink) addManifest(b *built, files ...iceberg.DataFile) (iceberg.ManifestFile, error) {
	var entries []iceberg.ManifestEntry
	for _, f := range files {
		entries = append(entries, iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &b.id, nil, nil, f))
	}
	var buf bytes.Buffer
	mf, err := iceberg.WriteManifest(b.md.Location()+"/metadata/"+uuid.NewString()+"-p.avro", &buf, b.md.Version(), b.md.PartitionSpec(), b.md.CurrentSchema(), b.id, entries)
	if err != nil {
		return nil, err
	}
	return mf, s.put(mf.FilePath(), buf.Bytes())
}

// touch makes a data file lie where it is said to be.
func touch(t *testing.T, f iceberg.DataFile, size int64) {
	t.Helper()
	path := strings.TrimPrefix(f.FilePath(), "file://")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
}

// TestVet_Picks spoils one thing at a time in a good commit that picks a staged snapshot of two files, while main has moved on. Numbers in docs/semantics.md: S69.
func TestVet_Picks(t *testing.T) {
	type env struct {
		*testing.T
		*built
		s      *sink
		files  []iceberg.DataFile // of the staged snapshot
		staged int64
		kept   []iceberg.ManifestFile // of main
	}
	say := func(e env, files, rows int) {
		e.summary()["added-data-files"], e.summary()["added-records"] = strconv.Itoa(files), strconv.Itoa(rows)
	}
	adds := func(e env, files ...iceberg.DataFile) {
		m, err := e.s.addManifest(e.built, files...)
		require.NoError(e, err)
		e.relist(e.T, e.s, append([]iceberg.ManifestFile{m}, e.kept...))
		say(e, len(files), 10*len(files))
	}
	for name, tc := range map[string]struct {
		before func(e env)                  // the request is built
		spec   func(s *broker.LeaseSpec)    // of the picking job
		spoil  func(e env)                  // the request
		main   func(b *bench, staged int64) // another commit on main
		want   string                       // empty: it lands
	}{
		"as it should be": {},
		"in two manifests": {spoil: func(e env) {
			one, err := e.s.addManifest(e.built, e.files[1])
			require.NoError(e, err)
			two, err := e.s.addManifest(e.built, e.files[0])
			require.NoError(e, err)
			e.relist(e.T, e.s, append([]iceberg.ManifestFile{one, two}, e.kept...))
		}},
		"a file less":             {spoil: func(e env) { adds(e, e.files[0]) }, want: "1 files of the picked snapshot are not added"},
		"no file":                 {spoil: func(e env) { e.relist(e.T, e.s, e.kept); say(e, 0, 0) }, want: "2 files of the picked snapshot are not added"},
		"a file more":             {spoil: func(e env) { adds(e, e.files[0], e.files[1], newFile(e.T, e.built, 10)) }, want: "which the picked snapshot did not add"},
		"another file":            {spoil: func(e env) { adds(e, e.files[0], newFile(e.T, e.built, 10)) }, want: "which the picked snapshot did not add"},
		"a file twice":            {spoil: func(e env) { adds(e, e.files[0], e.files[0]) }, want: "which the picked snapshot did not add"},
		"a file with other rows":  {spoil: func(e env) { adds(e, e.files[0], fileAt(e.T, e.built, e.files[1].FilePath(), 11)) }, want: "which the picked snapshot did not add, or not so"},
		"main's files left out":   {spoil: func(e env) { e.kept = nil; adds(e, e.files...) }, want: "in no manifest of the snapshot"},
		"the summary says more":   {spoil: func(e env) { say(e, 3, 20) }, want: "added-data-files"},
		"without its source":      {spoil: func(e env) { delete(e.summary(), "source-snapshot-id") }, want: "source-snapshot-id"},
		"of another source":       {spoil: func(e env) { e.summary()["source-snapshot-id"] = "5" }, want: "source-snapshot-id"},
		"without its wap.id":      {spoil: func(e env) { delete(e.summary(), "published-wap-id") }, want: `published-wap-id is "": want "w"`},
		"as if staged":            {spoil: func(e env) { e.summary()["wap.id"] = "w" }, want: "wap.id"},
		"as an overwrite":         {spoil: func(e env) { e.summary()["operation"] = "overwrite" }, want: "that of the picked snapshot is append"},
		"as a delete":             {spoil: func(e env) { e.summary()["operation"] = "delete" }, want: "want append or overwrite"},
		"by a lease of an append": {spec: func(s *broker.LeaseSpec) { s.Mode, s.Pick = sinkv1.WriteMode_WRITE_MODE_APPEND, "" }, want: `want ""`},
		"an unknown snapshot":     {spec: func(s *broker.LeaseSpec) { s.Pick = "4711" }, want: "no snapshot 4711 any more"},
		"nothing in particular":   {spec: func(s *broker.LeaseSpec) { s.Pick = "" }, want: `picks snapshot ""`},
		"a file that is gone": {before: func(e env) {
			require.NoError(e, os.Remove(strings.TrimPrefix(e.files[1].FilePath(), "file://")))
		}, want: "is gone"},
		"a file that was cut": {before: func(e env) { touch(e.T, e.files[1], 99) }, want: "has 99 bytes, its manifest says 100"},
		"an ancestor": {main: func(b *bench, staged int64) {
			head := strconv.FormatInt(b.load().Metadata.CurrentSnapshot().SnapshotID, 10)
			require.NoError(b, b.job(altering).alter("["+uuidRequirement(b.load())+`,{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":`+head+"}]",
				`[{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":`+strconv.FormatInt(staged, 10)+"}]"))
		}, want: "is on the branch main already"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.createTable()
			stager := b.job(func(s *broker.LeaseSpec) { s.WapID = "w" }).sink
			l, err := stager.load()
			require.NoError(t, err)
			made, err := stager.build(l)
			require.NoError(t, err)
			files := []iceberg.DataFile{newFile(t, made, 10), newFile(t, made, 10)}
			for _, f := range files {
				touch(t, f, 100)
			}
			m, err := stager.addManifest(made, files...)
			require.NoError(t, err)
			made.relist(t, stager, []iceberg.ManifestFile{m})
			made.upds = slices.DeleteFunc(made.upds, func(u map[string]any) bool { return u["action"] == "set-snapshot-ref" })
			made.summary()["wap.id"], made.summary()["added-data-files"], made.summary()["added-records"] = "w", "2", "20"
			_, err = stager.sendBuilt(made)
			require.NoError(t, err)
			staged := made.id

			_, err = b.job().sink.append()
			require.NoError(t, err)
			if tc.main != nil {
				tc.main(b, staged)
			}
			j := b.job(func(s *broker.LeaseSpec) {
				s.Mode, s.Pick = sinkv1.WriteMode_WRITE_MODE_PICK, strconv.FormatInt(staged, 10)
				if tc.spec != nil {
					tc.spec(s)
				}
			})
			l, err = j.sink.load()
			require.NoError(t, err)
			made, err = j.sink.build(l)
			require.NoError(t, err)
			e := env{t, made, j.sink, files, staged, made.manifests[1:]}
			adds(e, files...)
			made.summary()["source-snapshot-id"], made.summary()["published-wap-id"] = strconv.FormatInt(staged, 10), "w"
			for _, f := range []func(env){tc.before, tc.spoil} {
				if f != nil {
					f(e)
				}
			}
			before := b.load()
			_, err = j.sink.sendBuilt(made)
			if tc.want == "" {
				require.NoError(t, err)
				require.Equal(t, made.id, b.load().Metadata.CurrentSnapshot().SnapshotID)
				return
			}
			requireRefusal(t, permanent, err, tc.want)
			require.Equal(t, before.MetadataLocation, b.load().MetadataLocation)
			require.Zero(t, j.gate.m.Seals(), "nothing is sealed")
		})
	}
}

// A pick lands on the metadata that it was built on, or not at all: the staged snapshot may expire, and its files go, without main moving.
func TestVet_PicksFollowTheMetadata(t *testing.T) {
	b := newBench(t)
	tbl := b.createTable()
	stager := b.job(func(s *broker.LeaseSpec) { s.WapID = "w" }).sink
	l, err := stager.load()
	require.NoError(t, err)
	made, err := stager.build(l)
	require.NoError(t, err)
	made.upds = slices.DeleteFunc(made.upds, func(u map[string]any) bool { return u["action"] == "set-snapshot-ref" })
	made.summary()["wap.id"] = "w"
	raw, err := stager.entriesOf(made.manifests[0])
	require.NoError(t, err)
	touch(t, raw[0].file, 100)
	_, err = stager.sendBuilt(made)
	require.NoError(t, err)
	staged := made.id
	_, err = b.job().sink.append()
	require.NoError(t, err)

	j := b.job(func(s *broker.LeaseSpec) {
		s.Mode, s.Pick = sinkv1.WriteMode_WRITE_MODE_PICK, strconv.FormatInt(staged, 10)
	})
	l, err = j.sink.load()
	require.NoError(t, err)
	made, err = j.sink.build(l)
	require.NoError(t, err)
	m, err := j.sink.addManifest(made, raw[0].file)
	require.NoError(t, err)
	made.relist(t, j.sink, []iceberg.ManifestFile{m, made.manifests[1]})
	made.summary()["source-snapshot-id"], made.summary()["published-wap-id"] = strconv.FormatInt(staged, 10), "w"
	before := b.load().Metadata.CurrentSnapshot().SnapshotID
	require.NoError(t, b.job(altering).alter("["+uuidRequirement(tbl)+"]", `[{"action":"remove-snapshots","snapshot-ids":[`+strconv.FormatInt(staged, 10)+`]}]`))
	_, err = j.sink.sendBuilt(made)
	requireRefusal(t, conflict, err, "metadata")
	require.Equal(t, before, b.load().Metadata.CurrentSnapshot().SnapshotID)
}
