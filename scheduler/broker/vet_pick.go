package broker

import (
	"context"
	"errors"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/internal/mutant"
)

// pick is what a snapshot that is picked did, as its own manifests say: what a commit that picks it has to do, and nothing else.
type pick struct {
	operation, wap string
	added          map[uint64]int // files by their sum, and how often
	files          int
	removed        map[string]struct{} // data files, by path
}

func (p *pick) wapID() string {
	if p == nil {
		return ""
	}
	return p.wap
}

// parallelStats is how many data files are looked for at a time.
const parallelStats = 16

// picked reads the snapshot that the lease picks, and refuses one that main has already. Every data file that it added, and that is in reach, has to be
// there still: what is removed behind a table's back would come back as rows that nobody can read.
func (l *Lease) picked(ctx context.Context, s storage.Store, t *catalog.Table) (*pick, error) {
	md := t.Metadata
	id, err := strconv.ParseInt(l.spec.Pick, 10, 64)
	if err != nil {
		return nil, refuse(kindPermanent, "the lease picks snapshot %q", l.spec.Pick)
	}
	snap := md.SnapshotByID(id)
	switch {
	case snap == nil:
		return nil, refuse(kindPermanent, "table %s has no snapshot %d any more", l.spec.Ident, id)
	case snap.Summary == nil:
		return nil, refuse(kindPermanent, "snapshot %d does not say what it did", id)
	}
	if err := l.notPublished(md, snap); err != nil {
		return nil, err
	}
	if l.pick != nil {
		return l.pick, nil
	}
	p := &pick{operation: string(snap.Summary.Operation), wap: snap.Summary.Properties["wap.id"], added: map[uint64]int{}, removed: map[string]struct{}{}}
	list, err := l.manifests(ctx, s, t.UUID, snap.ManifestList)
	if err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelStats)
	defer func() { _ = g.Wait() }() // where another error came first: nothing may look on after this returns
	for _, m := range list.entries {
		if m.SnapshotID() != id && m.SnapshotID() != 0 { // some lists of version 1 do not say
			continue
		}
		entries, err := (&account{lease: l, store: s}).read(ctx, m)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.SnapshotID != id || e.Content != icemanifest.Data {
				continue
			}
			switch e.Status {
			case icemanifest.Deleted:
				p.removed[e.Path] = struct{}{}
			case icemanifest.Added:
				sum, err := e.FileSum()
				if err != nil {
					return nil, invalid("manifest %q: %v", m.FilePath(), err)
				}
				p.added[sum]++
				p.files++
				g.Go(func() error { return isThere(gctx, s, id, e) })
			}
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	l.pick = p // one commit at a time
	return p, nil
}

func isThere(ctx context.Context, s storage.Store, snapshot int64, e *icemanifest.Entry) error {
	if _, err := s.Rel(e.Path); err != nil { // somewhere else, where this store does not look
		return nil //nolint:nilerr // see above
	}
	switch info, err := s.Stat(ctx, e.Path); {
	case errors.Is(err, storage.ErrNotFound):
		return refuse(kindPermanent, "data file %q of snapshot %d is gone: run the statement that staged it again", e.Path, snapshot)
	case err != nil:
		return err
	case info.Size != e.Size:
		return refuse(kindPermanent, "data file %q of snapshot %d has %d bytes, its manifest says %d: run the statement that staged it again", e.Path, snapshot, info.Size, e.Size)
	}
	return nil
}

// notPublished refuses a snapshot that is on main, by itself or by one that has published it.
func (l *Lease) notPublished(md table.Metadata, snap *table.Snapshot) error {
	wap, id := snap.Summary.Properties["wap.id"], strconv.FormatInt(snap.SnapshotID, 10)
	seen := map[int64]bool{}
	for a := md.SnapshotByName(l.branch()); a != nil && !seen[a.SnapshotID]; {
		seen[a.SnapshotID] = true
		var said iceberg.Properties
		if a.Summary != nil {
			said = a.Summary.Properties
		}
		if a.SnapshotID == snap.SnapshotID || said["source-snapshot-id"] == id || wap != "" && (said["wap.id"] == wap || said["published-wap-id"] == wap) {
			return refuse(kindPermanent, "snapshot %d (wap.id %q) is on the branch %s already, by snapshot %d", snap.SnapshotID, wap, l.branch(), a.SnapshotID)
		}
		if a.ParentSnapshotID == nil {
			return nil
		}
		a = md.SnapshotByID(*a.ParentSnapshotID)
	}
	return nil
}

// taking counts off what a commit adds against what the snapshot that it picks did.
type taking struct {
	*pick
	left map[uint64]int
	n    int
}

// begin begins to count; nil, which counts nothing, where no snapshot is picked.
func (p *pick) begin() *taking {
	if p == nil {
		return nil
	}
	t := &taking{pick: p, left: make(map[uint64]int, len(p.added)), n: p.files}
	for sum, n := range p.added {
		t.left[sum] = n
	}
	return t
}

// take takes the files of a manifest that adds some.
func (t *taking) take(ctx context.Context, a *account, m iceberg.ManifestFile) error {
	entries, err := a.read(ctx, m)
	if err != nil {
		return err
	}
	next := m.FirstRowID()
	if a.md.Version() >= 3 && (next == nil || a.snap.FirstRowID == nil || *next < *a.snap.FirstRowID) {
		return invalid("manifest %q: its rows are not numbered from the table's next row id on", m.FilePath())
	}
	var rows int64
	for _, e := range entries {
		sum, err := e.FileSum()
		switch {
		case err != nil:
			return invalid("manifest %q: %v", m.FilePath(), err)
		case e.Status != icemanifest.Added || e.SnapshotID != a.snap.ID || e.Sequence != a.snap.Sequence || e.FileSequence != a.snap.Sequence:
			return invalid("manifest %q: file %q is not added by the snapshot, with its sequence number", m.FilePath(), e.Path)
		case t.left[sum] == 0 && !mutant.On("broker/picked-unvetted"):
			return invalid("manifest %q adds file %q, which the picked snapshot did not add, or not so", m.FilePath(), e.Path)
		case a.md.Version() >= 3 && (e.FirstRowID == nil || *e.FirstRowID != *next+rows):
			return invalid("manifest %q: the rows of file %q have other ids than new rows have", m.FilePath(), e.Path)
		}
		t.left[sum]--
		t.n--
		rows += e.Records
	}
	if int32(len(entries)) != m.AddedDataFiles() || rows != m.AddedRows() { //nolint:gosec // a manifest in memory
		return invalid("manifest %q holds %d files with %d rows, the manifest list says %d with %d", m.FilePath(), len(entries), rows, m.AddedDataFiles(), m.AddedRows())
	}
	return nil
}

// all wants every file to be taken.
func (t *taking) all() error {
	if t == nil || t.n == 0 || mutant.On("broker/picked-unvetted") {
		return nil
	}
	return invalid("%d files of the picked snapshot are not added", t.n)
}
