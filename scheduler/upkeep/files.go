package upkeep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/internal/uri"
)

// Kind is what a file is to its table.
type Kind int

// The kinds of files, in the order in which they are removed: what names others goes after what it names, so that work that was interrupted is found again.
const (
	Data Kind = iota
	PositionDeletes
	EqualityDeletes
	Statistics
	Manifest
	List
	kinds
)

// maxObject bounds a list or manifest that is read, in bytes.
const maxObject = 1 << 30

// Key makes the spellings of one file equal: file:/a, file:///a and /a.
func Key(file string) string { return uri.Key(file) }

// read reads a list or a manifest, wherever it lies. A missing one is storage.ErrNotFound.
func read(ctx context.Context, stores storage.Opener, uri string) ([]byte, error) {
	dir := uri
	for i := len(uri) - 1; i > 0; i-- {
		if uri[i] == '/' {
			dir = uri[:i]
			break
		}
	}
	store, err := stores.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	o, err := store.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if o.Size() > maxObject {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", uri, o.Size(), int64(maxObject))
	}
	buf := make([]byte, o.Size())
	n, err := o.ReadAt(buf, 0)
	if errors.Is(err, io.EOF) && int64(n) == o.Size() {
		err = nil
	}
	return buf[:n], err
}

// guarded turns a panic of a reader, which a damaged file may cause, into an error.
func guarded(uri string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is unreadable: %v", uri, p)
		}
	}()
	if err = f(); err != nil {
		err = fmt.Errorf("%s: %w", uri, err)
	}
	return err
}

// manifests reads a manifest list.
func manifests(ctx context.Context, stores storage.Opener, uri string) (out []iceberg.ManifestFile, err error) {
	err = guarded(uri, func() error {
		raw, err := read(ctx, stores, uri)
		if err != nil {
			return err
		}
		out, err = iceberg.ReadManifestList(bytes.NewReader(raw))
		return err
	})
	return out, err
}

// files visits the files that a manifest names: live ones, or also those that it says are deleted. What the manifest is, the list says: headers of other
// writers lack keys.
func files(ctx context.Context, stores storage.Opener, m iceberg.ManifestFile, live bool, visit func(uri string, kind Kind)) error {
	return guarded(m.FilePath(), func() error {
		raw, err := read(ctx, stores, m.FilePath())
		if err != nil {
			return err
		}
		held, err := icemanifest.Read(raw, icemanifest.Record{
			Content: int32(m.ManifestContent()), SequenceNumber: m.SequenceNum(), SnapshotID: m.SnapshotID(), FirstRowID: m.FirstRowID(),
		})
		if err != nil {
			return err
		}
		for _, e := range held.Entries {
			if e.Live() || !live {
				visit(e.Path, kindOf(e.Content))
			}
		}
		return nil
	})
}

func kindOf(content int64) Kind {
	switch content {
	case icemanifest.PositionDeletes:
		return PositionDeletes
	case icemanifest.EqualityDeletes:
		return EqualityDeletes
	}
	return Data
}

// reachable are the lists and manifests that a table's snapshots need.
type reachable struct {
	lists     map[string]bool
	manifests map[string]iceberg.ManifestFile
}

func reach(ctx context.Context, stores storage.Opener, md table.Metadata) (*reachable, error) {
	r := &reachable{lists: map[string]bool{}, manifests: map[string]iceberg.ManifestFile{}}
	for _, s := range md.Snapshots() {
		if s.ManifestList == "" {
			return nil, fmt.Errorf("snapshot %d has no manifest list, as very old tables write them; another engine has to clean up", s.SnapshotID)
		}
		r.lists[Key(s.ManifestList)] = true
		ms, err := manifests(ctx, stores, s.ManifestList)
		if err != nil {
			return nil, fmt.Errorf("snapshot %d: %w", s.SnapshotID, err)
		}
		for _, m := range ms {
			r.manifests[Key(m.FilePath())] = m
		}
	}
	return r, nil
}

// StatisticsOf are the statistics files that the metadata names.
func StatisticsOf(md table.Metadata) []string {
	var out []string
	for s := range md.Statistics() {
		out = append(out, s.StatisticsPath)
	}
	for s := range md.PartitionStatistics() {
		out = append(out, s.StatisticsPath)
	}
	return out
}

// places are the locations at which a table has files.
type places []storage.Store

// openPlaces opens a table's location, and those that its properties name besides, of which allowed decides.
func openPlaces(ctx context.Context, stores storage.Opener, location string, properties map[string]string, allowed func(place string) bool) (places, error) {
	all := []string{location}
	for _, key := range []string{"write.data.path", "write.folder-storage.path", "write.object-storage.path", "write.metadata.path"} {
		if p := properties[key]; p != "" && allowed(p) {
			all = append(all, p)
		}
	}
	var out places
	for _, l := range all {
		s, err := stores.Open(ctx, l)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// store is the place that a file lies in, or nil.
func (p places) store(uri string) storage.Store {
	for _, s := range p {
		if rel, err := s.Rel(uri); err == nil && rel != "" {
			return s
		}
	}
	return nil
}
