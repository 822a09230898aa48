package broker

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/internal/mutant"
)

// maxManifest caps an Iceberg manifest that the broker reads, in bytes.
const maxManifest = 256 << 20

// rules are what a write mode may do to a table's files.
type rules struct {
	operations []string // of the snapshot
	removes    bool     // files may go
	named      bool     // only those that the accepted task manifests replaced
	scoped     bool     // only those that the statement's scope covers
}

var modeRules = map[sinkv1.WriteMode]rules{
	sinkv1.WriteMode_WRITE_MODE_APPEND:    {operations: []string{"append"}},
	sinkv1.WriteMode_WRITE_MODE_CREATE:    {operations: []string{"append"}},
	sinkv1.WriteMode_WRITE_MODE_OVERWRITE: {operations: []string{"append", "overwrite", "delete"}, removes: true, scoped: true},
	sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL: {operations: []string{"append", "overwrite", "delete"}, removes: true, named: true},
	sinkv1.WriteMode_WRITE_MODE_REPLACE:   {operations: []string{"overwrite"}, removes: true},
	sinkv1.WriteMode_WRITE_MODE_REWRITE:   {operations: []string{"replace"}, removes: true, named: true},
	sinkv1.WriteMode_WRITE_MODE_PICK:      {operations: []string{"append", "overwrite"}, removes: true, named: true},
}

// account follows every file of the parent's manifests that are not listed any more into the manifests that the lease wrote in their place: each must be
// there once, unchanged, or be marked as removed by this snapshot.
type account struct {
	lease   *Lease
	store   storage.Store
	md      table.Metadata
	snap    *snapshot
	rules   rules
	old     map[uint64][]held // live files that are unaccounted for, by their sum
	left    int
	removed []removed
	named   map[string]struct{} // the files that go, where the mode names them
	by      string              // what names them
}

// removed is a file that goes, and the partition spec of its manifest.
type removed struct {
	*icemanifest.Entry
	spec int32
}

// held is what Sum leaves out.
type held struct {
	snapshot int64
	rowID    *int64
	path     string
}

// settle reads the manifests that went and those that came for them.
func (a *account) settle(ctx context.Context, gone, came []iceberg.ManifestFile, oldest int64) error {
	for _, m := range gone {
		if m.SequenceNum() > 0 && live(m) == 0 { // nothing is left of it; lists of version 1 may leave counts out
			continue
		}
		entries, err := a.read(ctx, m)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Live() {
				continue
			}
			sum, err := e.Sum()
			if err != nil {
				return invalid("manifest %q: %v", m.FilePath(), err)
			}
			a.old[sum] = append(a.old[sum], held{e.SnapshotID, e.FirstRowID, e.Path})
			a.left++
		}
	}
	for _, m := range came {
		entries, err := a.read(ctx, m)
		if err != nil {
			return err
		}
		if err := a.match(m, entries); err != nil {
			return err
		}
	}
	if a.left > 0 {
		for _, files := range a.old {
			for _, f := range files {
				return invalid("file %q of the parent is in no manifest of the snapshot", f.path)
			}
		}
	}
	return a.allowed(oldest)
}

func live(m iceberg.ManifestFile) int64 {
	return int64(m.AddedDataFiles()) + int64(m.ExistingDataFiles())
}

func (a *account) read(ctx context.Context, m iceberg.ManifestFile) ([]*icemanifest.Entry, error) {
	raw, err := readAll(ctx, a.store, m.FilePath(), maxManifest)
	if err != nil {
		return nil, err
	}
	if a.lease.owns(m.FilePath()) { // a plugin wrote it
		if err := checkContainer(raw); err != nil {
			return nil, invalid("manifest %q: %v", m.FilePath(), err)
		}
	}
	got, err := icemanifest.Read(raw, icemanifest.Record{
		Content: int32(m.ManifestContent()), SnapshotID: m.SnapshotID(), SequenceNumber: m.SequenceNum(), FirstRowID: m.FirstRowID(),
	})
	if err != nil {
		return nil, invalid("manifest %q: %v", m.FilePath(), err)
	}
	return got.Entries, nil
}

// match takes the entries of a manifest that came off the account.
func (a *account) match(m iceberg.ManifestFile, entries []*icemanifest.Entry) error {
	var counts, rows [3]int64
	for _, e := range entries {
		counts[e.Status]++
		rows[e.Status] += e.Records
		sum, err := e.Sum()
		if err != nil {
			return invalid("manifest %q: %v", m.FilePath(), err)
		}
		i := -1
		if e.Status != icemanifest.Added {
			i = slices.IndexFunc(a.old[sum], func(h held) bool { return a.same(e, h) })
		}
		switch {
		case e.Status == icemanifest.Added:
			return invalid("manifest %q adds file %q beside files of the parent", m.FilePath(), e.Path)
		case i < 0:
			return invalid("manifest %q: file %q is not, or not so, in the manifests of the parent that it replaces", m.FilePath(), e.Path)
		case e.Status == icemanifest.Deleted:
			a.removed = append(a.removed, removed{e, m.PartitionSpecID()})
		}
		if i >= 0 {
			a.old[sum] = slices.Delete(a.old[sum], i, i+1)
			a.left--
		}
	}
	if counts != [3]int64{int64(m.ExistingDataFiles()), int64(m.AddedDataFiles()), int64(m.DeletedDataFiles())} ||
		rows != [3]int64{m.ExistingRows(), m.AddedRows(), m.DeletedRows()} {
		return invalid("manifest %q holds other files than the manifest list says", m.FilePath())
	}
	return nil
}

// same compares what a sum leaves out. A row id may be given to a file that had none (version 2 became 3).
func (a *account) same(e *icemanifest.Entry, h held) bool {
	if h.rowID != nil && (e.FirstRowID == nil && e.Live() || e.FirstRowID != nil && *e.FirstRowID != *h.rowID) {
		return false
	}
	if e.Status == icemanifest.Deleted {
		return e.SnapshotID == a.snap.ID
	}
	return e.SnapshotID == h.snapshot
}

// allowed checks what was removed by the rules of the mode.
func (a *account) allowed(oldest int64) error {
	if len(a.removed) == 0 {
		return nil
	}
	if !a.rules.removes {
		return invalid("file %q is removed, and a commit of this mode removes none", a.removed[0].Path)
	}
	if a.rules.scoped {
		return a.inScope(oldest)
	}
	if !a.rules.named {
		return nil
	}
	paths := map[string]bool{}
	for _, e := range a.removed {
		if e.Content == icemanifest.Data {
			if _, ok := a.named[e.Path]; !ok && !mutant.On("broker/removed-unvetted") {
				return invalid("data file %q is removed, and no %s replaces it", e.Path, a.by)
			}
			paths[e.Path] = true
		}
	}
	for _, e := range a.removed {
		_, renewed := a.lease.spec.Deleted[e.Referenced]
		if e.Content != icemanifest.Data && !paths[e.Referenced] && !renewed && e.Sequence >= oldest {
			return invalid("delete file %q is removed, and the data files that it is about stay", e.Path)
		}
	}
	return nil
}

// inScope checks that what an overwrite removes is what its statement covers.
func (a *account) inScope(oldest int64) error {
	paths := map[string]bool{}
	for _, e := range a.removed {
		if e.Content != icemanifest.Data {
			continue
		}
		if ok, err := a.covers(e); err != nil {
			return err
		} else if !ok && !mutant.On("broker/scope-unvetted") {
			return invalid("data file %q is removed, and the statement's scope does not cover all of its rows", e.Path)
		}
		paths[e.Path] = true
	}
	for _, e := range a.removed {
		if e.Content == icemanifest.Data || paths[e.Referenced] || e.Sequence < oldest {
			continue
		}
		if ok, err := a.covers(e); err != nil {
			return err
		} else if !ok {
			return invalid("delete file %q is removed, and data files that it may be about stay", e.Path)
		}
	}
	return nil
}

func (a *account) covers(e removed) (bool, error) {
	if a.lease.spec.Scope == nil {
		return false, nil
	}
	for _, spec := range a.md.PartitionSpecs() {
		if spec.ID() != int(e.spec) {
			continue
		}
		doc, err := json.Marshal(spec)
		if err != nil {
			return false, invalid("partition spec %d: %v", e.spec, err)
		}
		ok, err := a.lease.spec.Scope.Covers(e.Entry, e.spec, doc)
		if err != nil {
			return false, invalid("the scope of the write: %v", err)
		}
		return ok, nil
	}
	return false, invalid("file %q is of partition spec %d, which the table does not have", e.Path, e.spec)
}

// vetRemoved compares what was removed with what the summary says.
func (a *account) vetRemoved() error {
	var files, rows int64
	for _, e := range a.removed {
		if e.Content == icemanifest.Data {
			files++
			rows += e.Records
		}
	}
	if a.rules.named && files != int64(len(a.named)) {
		return invalid("%d data files are removed, the %ss replace %d", files, a.by, len(a.named))
	}
	for key, want := range map[string]int64{"deleted-data-files": files, "deleted-records": rows} {
		v, ok := a.snap.Summary[key]
		if ok && v != strconv.FormatInt(want, 10) || !ok && want != 0 {
			return invalid("summary %s is %q: the manifests remove %d", key, v, want)
		}
	}
	return nil
}

// vetDeletes checks a manifest of added delete files: each is about a data file of which an accepted task manifest deletes rows.
func (l *Lease) vetDeletes(ctx context.Context, s storage.Store, m iceberg.ManifestFile) error {
	if !l.spec.Deletes {
		return invalid("manifest %q adds deletes, which a commit of this mode does not", m.FilePath())
	}
	entries, err := (&account{lease: l, store: s}).read(ctx, m)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := l.spec.Deleted[e.Referenced]; !ok || e.Content != icemanifest.PositionDeletes {
			return invalid("delete file %q is about %q, of which no accepted task manifest deletes rows", e.Path, e.Referenced)
		}
	}
	if int32(len(entries)) != m.AddedDataFiles() {
		return invalid("manifest %q holds %d files, the manifest list says %d", m.FilePath(), len(entries), m.AddedDataFiles())
	}
	return nil
}
