package broker_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/scheduler/broker"
)

// part is one entry of a manifest that is written in another one's place.
type part struct {
	status   iceberg.ManifestEntryStatus
	snapshot int64
	sequence int64
	file     iceberg.DataFile
}

// entriesOf reads a manifest as other engines do.
func (s *sink) entriesOf(m iceberg.ManifestFile) ([]part, error) {
	raw, err := s.get(m.FilePath())
	if err != nil {
		return nil, err
	}
	entries, err := iceberg.ReadManifest(m, bytes.NewReader(raw), false)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, e := range entries {
		out = append(out, part{iceberg.EntryStatusEXISTING, e.SnapshotID(), e.SequenceNum(), e.DataFile()})
	}
	return out, nil
}

// rewrite writes a manifest of these entries for the snapshot of a commit.
func (s *sink) rewrite(b *built, parts []part) (iceberg.ManifestFile, error) {
	var entries []iceberg.ManifestEntry
	for _, p := range parts {
		entries = append(entries, iceberg.NewManifestEntry(p.status, &p.snapshot, &p.sequence, &p.sequence, p.file))
	}
	var buf bytes.Buffer
	mf, err := iceberg.WriteManifest(b.md.Location()+"/metadata/"+uuid.NewString()+"-r.avro", &buf, 2, b.md.PartitionSpec(), b.md.CurrentSchema(), b.id, entries)
	if err != nil {
		return nil, err
	}
	return mf, s.put(mf.FilePath(), buf.Bytes())
}

// scopeOf covers the files of these paths.
type scopeOf map[string]bool

func (s scopeOf) Covers(e *icemanifest.Entry, specID int32, partition []byte) (bool, error) {
	if specID != 0 || !strings.Contains(string(partition), `"spec-id":0`) {
		return false, fmt.Errorf("partition spec %d: %s", specID, partition)
	}
	return s[e.Path], nil
}

// TestVet_Removals spoils one thing at a time in a good commit that removes one file and keeps another one of the same manifest. Numbers in docs/semantics.md: S69.
func TestVet_Removals(t *testing.T) {
	type env struct {
		*testing.T
		*built
		s     *sink
		parts []part
	}
	remove := func(e env, i int) {
		e.parts[i].status, e.parts[i].snapshot = iceberg.EntryStatusDELETED, e.id
	}
	for name, tc := range map[string]struct {
		mode      sinkv1.WriteMode // row-level if unset
		operation string           // overwrite if unset
		replaced  []int            // files that the accepted task manifests replaced; nil: the first
		covered   []int            // files that the scope of an overwrite covers; nil: it has none
		spoil     func(e env) []part
		want      string // empty: it lands
	}{
		"as it should be": {},
		"a rewrite":       {mode: sinkv1.WriteMode_WRITE_MODE_REWRITE, operation: "replace"},
		"an overwrite":    {mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, replaced: []int{}, covered: []int{0}},
		"an overwrite that removes less than it covers": {mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, replaced: []int{}, covered: []int{0, 1}},
		"an overwrite of another file":                  {mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, replaced: []int{}, covered: []int{1}, want: "scope does not cover"},
		"an overwrite of a file more":                   {mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, replaced: []int{}, covered: []int{0}, spoil: func(e env) []part { remove(e, 1); return e.parts }, want: "scope does not cover"},
		"an overwrite without a scope":                  {mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, replaced: []int{}, want: "scope does not cover"},
		"an append":                                     {mode: sinkv1.WriteMode_WRITE_MODE_APPEND, operation: "append", want: "removes none"},
		"a rewrite that calls itself an overwrite":      {mode: sinkv1.WriteMode_WRITE_MODE_REWRITE, want: "want replace"},
		"an overwrite that calls itself a rewrite":      {mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, covered: []int{0}, operation: "replace", want: "want append or overwrite"},
		"a file that no task replaced":                  {replaced: []int{1}, want: "no accepted task manifest replaces it"},
		"fewer files than were replaced":                {replaced: []int{0, 1}, want: "the accepted task manifests replace 2"},
		"more files than were replaced":                 {spoil: func(e env) []part { remove(e, 1); return e.parts }, want: "no accepted task manifest replaces it"},
		"a file that is forgotten":                      {spoil: func(e env) []part { return e.parts[:1] }, want: "in no manifest of the snapshot"},
		"a file twice":                                  {spoil: func(e env) []part { return append(e.parts, e.parts[1]) }, want: "not so"},
		"a file removed twice":                          {spoil: func(e env) []part { return append(e.parts, e.parts[0]) }, want: "not so"},
		"a file of nowhere": {spoil: func(e env) []part {
			return append(e.parts, part{iceberg.EntryStatusEXISTING, e.parts[1].snapshot, 1, newFile(e.T, e.built, 7)})
		}, want: "not so"},
		"a file with other counts": {spoil: func(e env) []part {
			e.parts[1].file = fileAt(e.T, e.built, e.parts[1].file.FilePath(), 11)
			return e.parts
		}, want: "not so"},
		"a file of another age":      {spoil: func(e env) []part { e.parts[1].sequence = 2; return e.parts }, want: "not so"},
		"a file of another snapshot": {spoil: func(e env) []part { e.parts[1].snapshot = 4711; return e.parts }, want: "not so"},
		"removed by somebody else":   {spoil: func(e env) []part { e.parts[0].snapshot = 4711; return e.parts }, want: "not so"},
		"added among them": {spoil: func(e env) []part {
			return append(e.parts, part{iceberg.EntryStatusADDED, e.id, e.seq, newFile(e.T, e.built, 10)})
		}, want: "beside files of the parent"},
		"the summary says less": {spoil: func(e env) []part { e.summary()["deleted-records"] = "9"; return e.parts }, want: "deleted-records"},
		"the summary is silent": {spoil: func(e env) []part { delete(e.summary(), "deleted-data-files"); return e.parts }, want: "deleted-data-files"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.createTable()
			first := b.job().sink
			l, err := first.load()
			require.NoError(t, err)
			base, err := first.build(l)
			require.NoError(t, err)
			two, err := first.rewrite(base, []part{
				{iceberg.EntryStatusADDED, base.id, 1, newFile(t, base, 10)}, {iceberg.EntryStatusADDED, base.id, 1, newFile(t, base, 10)},
			})
			require.NoError(t, err)
			base.relist(t, first, []iceberg.ManifestFile{two})
			base.summary()["added-data-files"], base.summary()["added-records"] = "2", "20"
			_, err = first.sendBuilt(base)
			require.NoError(t, err)

			var parts []part
			j := b.job(func(s *broker.LeaseSpec) {
				s.Mode = tc.mode
				if tc.mode == 0 {
					s.Mode = sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL
				}
				s.Totals, s.Replaced = &sinkv1.Totals{Files: 1, Rows: 10}, map[string]struct{}{}
				head, err := first.manifestsOfHead()
				require.NoError(t, err)
				parts, err = first.entriesOf(head[0])
				require.NoError(t, err)
				which := tc.replaced
				if which == nil {
					which = []int{0}
				}
				if tc.covered != nil {
					sc := scopeOf{}
					for _, i := range tc.covered {
						sc[parts[i].file.FilePath()] = true
					}
					s.Scope = sc
				}
				for _, i := range which {
					s.Replaced[parts[i].file.FilePath()] = struct{}{}
				}
			})
			l, err = j.sink.load()
			require.NoError(t, err)
			made, err := j.sink.build(l)
			require.NoError(t, err)
			made.summary()["operation"] = "overwrite"
			if tc.operation != "" {
				made.summary()["operation"] = tc.operation
			}
			e := env{t, made, j.sink, parts}
			remove(e, 0)
			spoilt := parts
			removed := 1
			if tc.spoil != nil {
				made.summary()["deleted-records"] = ""
				spoilt = tc.spoil(e)
				removed = 0
				for _, p := range spoilt {
					if p.status == iceberg.EntryStatusDELETED {
						removed++
					}
				}
			}
			for key, n := range map[string]int{"deleted-data-files": removed, "deleted-records": 10 * removed} {
				if v, ok := made.summary()[key]; !ok && name != "the summary is silent" || ok && v == "" {
					made.summary()[key] = strconv.Itoa(n)
				}
			}
			m, err := j.sink.rewrite(made, spoilt)
			require.NoError(t, err)
			made.relist(t, j.sink, []iceberg.ManifestFile{made.manifests[0], m})
			before := b.load().MetadataLocation
			_, err = j.sink.sendBuilt(made)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			requireRefusal(t, permanent, err, tc.want)
			require.Equal(t, before, b.load().MetadataLocation)
			require.Zero(t, j.gate.m.Seals(), "nothing is sealed")
		})
	}
}

func newFile(t *testing.T, b *built, rows int64) iceberg.DataFile {
	t.Helper()
	return fileAt(t, b, fmt.Sprintf("%s/data/%s.parquet", b.md.Location(), uuid.NewString()), rows)
}

func fileAt(t *testing.T, b *built, path string, rows int64) iceberg.DataFile {
	t.Helper()
	df, err := iceberg.NewDataFileBuilder(b.md.PartitionSpec(), iceberg.EntryContentData, path, iceberg.ParquetFile, nil, nil, nil, rows, 100)
	require.NoError(t, err)
	return df.Build()
}
