package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/fault"
)

// Expired is a snapshot that was, or is about to be, removed from a table's metadata.
type Expired struct {
	ID   int64  `json:"id"`
	List string `json:"list"`
}

// Work says what to look at after an expiry.
type Work struct {
	Stores     storage.Opener // opens the table's places, and whatever its metadata names
	Now        table.Metadata // the table as it is after the expiry
	Location   string
	Allowed    func(place string) bool // of the table's other places; see openPlaces
	Snapshots  []Expired               // those that the table still has are left alone
	Statistics []string                // files that the metadata named before
}

// Result counts what was removed.
type Result struct {
	Removed [kinds]int64
	Outside int64 // files outside the table's locations, which stay
}

// ExpiredFiles removes the files that only the expired snapshots needed. After an interruption it may be called again with the same work.
func ExpiredFiles(ctx context.Context, w Work) (*Result, error) {
	victims, err := w.victims(ctx)
	if err != nil {
		return nil, err
	}
	at, err := openPlaces(ctx, w.Stores, w.Location, w.Now.Properties(), w.Allowed)
	if err != nil {
		return nil, err
	}
	res := &Result{}
	for kind := range victims {
		var files []string
		for _, key := range slices.Sorted(maps.Keys(victims[kind])) {
			if file := victims[kind][key]; at.store(file) != nil {
				files = append(files, file)
			} else {
				res.Outside++
			}
		}
		gone, err := at.remove(ctx, files, func() error { return fault.Hit("upkeep.expire.before-remove") })
		res.Removed[kind] = int64(len(gone))
		if err != nil {
			return res, err
		}
	}
	return res, nil
}

// victims are the files to remove, by kind and key.
func (w *Work) victims(ctx context.Context) ([kinds]map[string]string, error) {
	var out [kinds]map[string]string
	for i := range out {
		out[i] = map[string]string{}
	}
	live, err := reach(ctx, w.Stores, w.Now)
	if err != nil {
		return out, err
	}
	gone := map[string]iceberg.ManifestFile{}
	for _, s := range w.Snapshots {
		if w.Now.SnapshotByID(s.ID) != nil || s.List == "" || live.lists[Key(s.List)] {
			continue
		}
		ms, err := manifests(ctx, w.Stores, s.List)
		if errors.Is(err, storage.ErrNotFound) { // this was done before
			continue
		}
		if err != nil {
			return out, fmt.Errorf("expired snapshot %d: %w", s.ID, err)
		}
		out[List][Key(s.List)] = s.List
		for _, m := range ms {
			if key := Key(m.FilePath()); live.manifests[key] == nil {
				gone[key], out[Manifest][key] = m, m.FilePath()
			}
		}
	}
	for key, m := range gone {
		err := files(ctx, w.Stores, m, true, func(uri string, kind Kind) { out[kind][Key(uri)] = uri })
		if errors.Is(err, storage.ErrNotFound) { // its files went before it did
			delete(out[Manifest], key)
			continue
		}
		if err != nil {
			return out, err
		}
	}
	named := map[string]bool{}
	for _, uri := range StatisticsOf(w.Now) {
		named[Key(uri)] = true
	}
	for _, uri := range w.Statistics {
		if !named[Key(uri)] {
			out[Statistics][Key(uri)] = uri
		}
	}
	return out, spare(ctx, w.Stores, live, &out)
}

// spare takes files out that a manifest of a snapshot which stays still names.
func spare(ctx context.Context, stores storage.Opener, live *reachable, victims *[kinds]map[string]string) error {
	if len(victims[Data])+len(victims[PositionDeletes])+len(victims[EqualityDeletes]) == 0 {
		return nil
	}
	for _, m := range live.manifests {
		err := files(ctx, stores, m, true, func(uri string, _ Kind) {
			for _, kind := range []Kind{Data, PositionDeletes, EqualityDeletes} {
				delete(victims[kind], Key(uri))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
