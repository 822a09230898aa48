package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/mutant"
)

const mainBranch = "main"

// vetWrite checks what a write to a table that exists may say, against the table as it was last served.
func (l *Lease) vetWrite(ctx context.Context, t *catalog.Table, r *request) error {
	md := t.Metadata
	replaces := l.spec.Mode == sinkv1.WriteMode_WRITE_MODE_REPLACE
	for _, a := range r.actions {
		allowed := a == "add-snapshot" || a == "set-snapshot-ref" || a == "set-properties" || replaces && replaceActions[a]
		if !allowed {
			return invalid("update %q is not allowed in a write", a)
		}
	}
	switch {
	case md.Version() < 2 && l.spec.Mode != sinkv1.WriteMode_WRITE_MODE_APPEND && l.spec.Mode != sinkv1.WriteMode_WRITE_MODE_PICK:
		return refuse(kindPermanent, "table %s has format version %d: only appends are made to it, upgrade the table", l.spec.Ident, md.Version())
	case r.assertCreate:
		return invalid("assert-create is not allowed in a write to a table that exists")
	case !sameUUID(r.assertUUID, l.tableUUID()):
		return invalid("assert-table-uuid must be %s", l.tableUUID())
	case r.assertRef != l.branch():
		return invalid("the branch %s must be pinned by assert-ref-snapshot-id, not %q", l.branch(), r.assertRef)
	case len(r.properties) != 1 || len(r.properties[0]) != 1 && !replaces && !l.setsNames(md, r.properties[0]):
		return invalid("want one set-properties with the marker property alone")
	case replaces && r.version != 0 && (r.version < md.Version() || r.version > 3):
		return invalid("format version %d: the table has %d, and Signet knows 2 and 3", r.version, md.Version())
	}
	var parent *table.Snapshot
	if p := md.SnapshotByName(l.branch()); p != nil {
		parent = p
	}
	if err := l.vetBranch(md); err != nil {
		return err
	}
	if !sameID(r.parent, snapshotID(parent)) {
		return refuse(kindConflict, "branch %s has moved since the commit was built", l.branch())
	}
	s, err := l.openStore(ctx)
	if err != nil {
		return err
	}
	var p *pick
	if l.spec.Mode == sinkv1.WriteMode_WRITE_MODE_PICK {
		if p, err = l.picked(ctx, s, t); err != nil {
			return err
		}
	}
	if err := l.vetSnapshot(r, parent, nextSequence(md.Version(), md.LastSequenceNumber()), p); err != nil {
		return err
	}
	if md.SnapshotByID(r.snapshot.ID) != nil {
		return invalid("snapshot %d exists already", r.snapshot.ID)
	}
	if err := l.vetRef(md, r); err != nil {
		return err
	}
	old := md.Properties()[l.spec.MarkerProperty]
	value, ok := r.properties[0][l.spec.MarkerProperty]
	if !ok {
		return invalid("set-properties may set %s and nothing else", l.spec.MarkerProperty)
	}
	if err := checkMarkerProperty(old, value, l.spec.Markers, l.spec.KeepMarkers, r.snapshot.ID); err != nil {
		return err
	}
	if replaces {
		props := maps.Clone(r.properties[0])
		delete(props, l.spec.MarkerProperty)
		if err := l.vetTableProperties(props, t.Location); err != nil {
			return err
		}
	}
	return l.vetManifests(ctx, s, t.UUID, md, r.snapshot, parent, p)
}

// propNames is the property that says what the columns of files without field ids are.
const propNames = "schema.name-mapping.default"

// setsNames reports whether a request sets, besides the marker, nothing but a name mapping that gives the current schema's columns their own names: what
// makes files readable that are added as they are. One that the table has already stays.
func (l *Lease) setsNames(md table.Metadata, props map[string]string) bool {
	text, ok := props[propNames]
	if !ok || len(props) != 2 || !l.spec.AddsFiles || md.Properties()[propNames] != "" {
		return false
	}
	var got []namedField
	return json.Unmarshal([]byte(text), &got) == nil && ownNames(got, md.CurrentSchema().Fields())
}

type namedField struct {
	ID     int          `json:"field-id"`
	Names  []string     `json:"names"`
	Fields []namedField `json:"fields"`
}

func ownNames(got []namedField, fields []iceberg.NestedField) bool {
	if len(got) != len(fields) {
		return false
	}
	for i, f := range fields {
		var below []iceberg.NestedField
		if t, ok := f.Type.(iceberg.NestedType); ok {
			below = t.Fields()
		}
		if got[i].ID != f.ID || len(got[i].Names) != 1 || got[i].Names[0] != f.Name || !ownNames(got[i].Fields, below) {
			return false
		}
	}
	return true
}

// replaceActions are what a request may do besides that replaces a table's definition.
var replaceActions = map[string]bool{
	"upgrade-format-version": true, "add-schema": true, "set-current-schema": true, "add-spec": true, "set-default-spec": true, "add-sort-order": true,
	"set-default-sort-order": true,
}

func snapshotID(s *table.Snapshot) *int64 {
	if s == nil {
		return nil
	}
	return &s.SnapshotID
}

func sameID(a, b *int64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// vetSnapshot checks the snapshot by itself, for appends and for the first snapshot of a new table.
func (l *Lease) vetSnapshot(r *request, parent *table.Snapshot, sequence int64, p *pick) error {
	s := r.snapshot
	switch {
	case s == nil || r.ref == nil && l.spec.WapID == "":
		return invalid("want one add-snapshot and one set-snapshot-ref")
	case l.spec.WapID != "" && r.ref != nil:
		return invalid("set-snapshot-ref of a write that is staged: no branch gets its snapshot")
	case r.ref != nil && (r.ref.Name != l.branch() || r.ref.Type != "branch" || r.ref.SnapshotID != s.ID):
		return invalid("set-snapshot-ref must set branch %s to the new snapshot", l.branch())
	case s.ID <= 0:
		return invalid("snapshot id %d", s.ID)
	case !sameID(s.Parent, snapshotID(parent)):
		return invalid("the snapshot's parent must be the head of branch %s", l.branch())
	case s.Sequence != sequence:
		return invalid("sequence number %d: want %d", s.Sequence, sequence)
	case !slices.Contains(modeRules[l.spec.Mode].operations, s.Summary["operation"]):
		return invalid("operation %q: want %s", s.Summary["operation"], strings.Join(modeRules[l.spec.Mode].operations, " or "))
	}
	if err := l.vetSummary(s.Summary); err != nil {
		return err
	}
	if p != nil && s.Summary["operation"] != p.operation {
		return invalid("operation %q: that of the picked snapshot is %s", s.Summary["operation"], p.operation)
	}
	for key, want := range map[string]string{"wap.id": l.spec.WapID, "published-wap-id": p.wapID(), "source-snapshot-id": l.spec.Pick} {
		if got := s.Summary[key]; got != want {
			return invalid("summary %s is %q: want %q", key, got, want)
		}
	}
	got := splitMarkers(s.Summary[SummaryMarkers])
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(l.spec.Markers)); !slices.Equal(got, want) {
		return invalid("summary %s is %q: want exactly %s", SummaryMarkers, s.Summary[SummaryMarkers], strings.Join(want, ","))
	}
	return nil
}

// nextSequence is the sequence number of a table's next snapshot; format version 1 has none.
func nextSequence(version int, last int64) int64 {
	if version < 2 {
		return 0
	}
	return last + 1
}

// branch is where the lease's commits go.
func (l *Lease) branch() string { return cmp.Or(l.spec.Branch, mainBranch) }

// vetBranch wants the branch to be there: a commit creates none, and moves no tag.
func (l *Lease) vetBranch(md table.Metadata) error {
	for name, ref := range md.Refs() {
		if name == l.branch() && ref.SnapshotRefType != table.BranchRef {
			return refuse(kindPermanent, "%q is a tag, and only branches are written to", name)
		}
		if name == l.branch() {
			return nil
		}
	}
	if l.branch() != mainBranch {
		return refuse(kindPermanent, "branch %q does not exist any more; create it with ALTER TABLE ... CREATE BRANCH", l.branch())
	}
	return nil
}

// vetRef keeps a write from changing the retention of its branch: it may leave the settings out, or repeat them.
func (l *Lease) vetRef(md table.Metadata, r *request) error {
	if r.ref == nil { // a write that is staged
		return nil
	}
	var cur table.SnapshotRef
	for name, ref := range md.Refs() {
		if name == l.branch() {
			cur = ref
		}
	}
	same := func(asked, now *int64) bool { return asked == nil || (now != nil && *asked == *now) }
	if !same(r.ref.MaxRefAge, cur.MaxRefAgeMs) || !same(r.ref.MaxSnapAge, cur.MaxSnapshotAgeMs) ||
		(r.ref.MinToKeep != nil && (cur.MinSnapshotsToKeep == nil || *r.ref.MinToKeep != *cur.MinSnapshotsToKeep)) {
		return invalid("a write may not change the retention of its branch")
	}
	return nil
}

// vetManifests checks that the snapshot keeps what its parent has but for what the mode removes, and adds only what this lease created. Manifests that are
// kept as they are cost nothing; those that are written anew are read, and so are those in whose place they stand. md is nil for a table that is created.
// What p, if it is not nil, did is what the snapshot does.
func (l *Lease) vetManifests(ctx context.Context, s storage.Store, tableUUID string, md table.Metadata, snap *snapshot, parent *table.Snapshot, p *pick) error {
	rel, err := s.Rel(snap.ManifestList)
	if err != nil || !strings.HasPrefix(rel, "metadata/") {
		return invalid("manifest list %q is not below the table's metadata", snap.ManifestList)
	}
	if !l.owns(snap.ManifestList) {
		return invalid("manifest list %q was not created by this job", snap.ManifestList)
	}
	now, err := l.manifests(ctx, s, tableUUID, snap.ManifestList)
	if err != nil {
		return err
	}
	was := &manifestList{}
	if parent != nil {
		if was, err = l.manifests(ctx, s, tableUUID, parent.ManifestList); err != nil {
			return err
		}
	}
	var gone, came []iceberg.ManifestFile
	for key, old := range was.byPath {
		switch m := now.byPath[key]; {
		case m == nil:
			gone = append(gone, old)
		case !sameManifest(m, old):
			return invalid("the snapshot changes manifest %q of its parent", old.FilePath())
		}
	}
	var files, deleteFiles, rows int64
	oldest := snap.Sequence
	a := &account{lease: l, store: s, md: md, snap: snap, rules: modeRules[l.spec.Mode], old: map[uint64][]held{}, named: l.spec.Replaced, by: "accepted task manifest"}
	if p != nil {
		a.named, a.by = p.removed, "picked manifest"
	}
	taken := p.begin()
	for key, m := range now.byPath {
		if m.ManifestContent() == iceberg.ManifestContentData && live(m) > 0 {
			oldest = min(oldest, m.MinSequenceNum())
		}
		if was.byPath[key] != nil {
			continue
		}
		if err := l.vetOwn(s, snap, m); err != nil {
			return err
		}
		if m.ExistingDataFiles() != 0 || m.DeletedDataFiles() != 0 {
			came = append(came, m)
			continue
		}
		if m.ManifestContent() == iceberg.ManifestContentData {
			files += int64(m.AddedDataFiles())
			rows += m.AddedRows()
			if p != nil {
				if err := taken.take(ctx, a, m); err != nil {
					return err
				}
			}
			continue
		}
		deleteFiles += int64(m.AddedDataFiles())
		if err := l.vetDeletes(ctx, s, m); err != nil {
			return err
		}
	}
	if err := taken.all(); err != nil {
		return err
	}
	if err := a.settle(ctx, gone, came, oldest); err != nil {
		return err
	}
	if err := a.vetRemoved(); err != nil {
		return err
	}
	return l.vetTotals(snap, files, deleteFiles, rows)
}

// vetOwn checks a manifest that the parent does not have.
func (l *Lease) vetOwn(s storage.Store, snap *snapshot, m iceberg.ManifestFile) error {
	rel, err := s.Rel(m.FilePath())
	if err != nil || rel == "" {
		return invalid("manifest %q lies outside of the table", m.FilePath())
	}
	switch {
	case !l.owns(m.FilePath()):
		return invalid("manifest %q was not created by this job", m.FilePath())
	case m.SnapshotID() != snap.ID:
		return invalid("manifest %q belongs to snapshot %d", m.FilePath(), m.SnapshotID())
	case m.SequenceNum() != snap.Sequence:
		return invalid("manifest %q has sequence number %d, the snapshot %d", m.FilePath(), m.SequenceNum(), snap.Sequence)
	case m.MinSequenceNum() > snap.Sequence:
		return invalid("manifest %q has a file of sequence number %d, the snapshot has %d", m.FilePath(), m.MinSequenceNum(), snap.Sequence)
	case m.AddedDataFiles() < 0 || m.AddedRows() < 0 || m.ExistingDataFiles() < 0 || m.ExistingRows() < 0 || m.DeletedDataFiles() < 0 || m.DeletedRows() < 0:
		return invalid("manifest %q has negative counts", m.FilePath())
	}
	return nil
}

// sameManifest: a write repeats its parent's entries unchanged. A row id may be assigned to an entry that had none (v2 became v3), and
// an entry from the table's time as version 1, which has no sequence number, may lack counts that the repeated one has.
func sameManifest(now, old iceberg.ManifestFile) bool {
	if now == nil || now.Length() != old.Length() || now.PartitionSpecID() != old.PartitionSpecID() || now.ManifestContent() != old.ManifestContent() ||
		now.SequenceNum() != old.SequenceNum() || now.MinSequenceNum() != old.MinSequenceNum() {
		return false
	}
	return old.SequenceNum() == 0 || now.SnapshotID() == old.SnapshotID() &&
		now.AddedDataFiles() == old.AddedDataFiles() && now.ExistingDataFiles() == old.ExistingDataFiles() && now.DeletedDataFiles() == old.DeletedDataFiles() &&
		now.AddedRows() == old.AddedRows() && now.ExistingRows() == old.ExistingRows() && now.DeletedRows() == old.DeletedRows()
}

// vetTotals compares what the manifests add with what was accepted, and with what the summary says (S69, C22).
func (l *Lease) vetTotals(snap *snapshot, files, deleteFiles, rows int64) error {
	if t := l.spec.Totals; t != nil && !mutant.On("broker/totals-unvetted") && (t.GetFiles() != files+deleteFiles || t.GetRows() != rows) {
		return invalid("the manifests add %d files with %d rows, accepted were %d with %d", files+deleteFiles, rows, t.GetFiles(), t.GetRows())
	}
	for key, want := range map[string]int64{"added-data-files": files, "added-records": rows, "added-delete-files": deleteFiles} {
		if v, ok := snap.Summary[key]; ok && v != strconv.FormatInt(want, 10) {
			return invalid("summary %s is %q: the manifests add %d", key, v, want)
		}
	}
	return nil
}
