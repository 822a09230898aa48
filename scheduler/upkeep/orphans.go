package upkeep

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog/storage"
)

// Search says where orphans are looked for, and which.
type Search struct {
	Stores   storage.Opener // opens the table's places, and whatever its metadata names
	Location string         // of the table
	// Within is a place at or below one of the table's. Empty: its location alone, because the other places may be those of other tables, too.
	Within  string
	Allowed func(place string) bool
	Before  time.Time // only files that were last written before it
	// Properties are those of the table when the search begins.
	Properties map[string]string
	// Foreign are the locations of other tables. Nothing in them is touched.
	Foreign []string
	// Jobs are the ids of jobs that run. Files in directories of their names, and files that carry one in their names, stay.
	Jobs []string
	// Load gives the table as it is once the files have been listed, so that what was committed meanwhile is named by it.
	Load func(ctx context.Context) (md table.Metadata, metadataLocation string, err error)
	// DryRun finds and removes nothing.
	DryRun bool
}

// Orphans removes files that no metadata of the table names, and lists them, in order.
func Orphans(ctx context.Context, q Search) ([]string, error) {
	at, err := openPlaces(ctx, q.Stores, q.Location, q.Properties, q.Allowed)
	if err != nil {
		return nil, err
	}
	found, err := q.list(ctx, at)
	if err != nil {
		return nil, err
	}
	md, location, err := q.Load(ctx)
	if err != nil {
		return nil, err
	}
	named, err := everything(ctx, q.Stores, md, location)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range found {
		if !named[Key(f.uri)] && !hint(f.rel) {
			out = append(out, f.uri)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if q.DryRun {
		return out, nil
	}
	if gone, err := at.remove(ctx, out, func() error { return nil }); err != nil {
		slices.Sort(gone)
		return gone, err
	}
	return out, nil
}

// hint: a file that leads readers without a catalog to the newest metadata.
func hint(rel string) bool { return rel == "metadata/version-hint.text" }

type candidate struct{ uri, rel string }

// list gives the files at the table's places that may be orphans by their age and place alone.
func (q *Search) list(ctx context.Context, at places) ([]candidate, error) {
	var out []candidate
	foreign := slices.Clone(q.Foreign)
	listed := map[string]bool{}
	for i, store := range at {
		if q.Within == "" && i > 0 || listed[Key(store.Location())] {
			continue
		}
		if _, err := store.Rel(q.Within); q.Within != "" && err != nil {
			continue
		}
		listed[Key(store.Location())] = true
		err := store.List(ctx, store.Location(), func(i storage.Info) error {
			rel, err := store.Rel(i.URI)
			if err != nil {
				return err
			}
			if home := tableAt(store.Location(), rel); home != "" && Key(home) != Key(q.Location) {
				foreign = append(foreign, home)
			}
			if q.Within != "" {
				if _, err := storage.Below(q.Within, i.URI); err != nil {
					return nil //nolint:nilerr // it lies elsewhere
				}
			}
			if i.ModTime.Before(q.Before) && !q.ofJob(rel) {
				out = append(out, candidate{i.URI, rel})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if q.Within != "" && len(listed) == 0 {
		return nil, fmt.Errorf("location %s is none of the table's: it lies at %s", q.Within, q.Location)
	}
	foreign = slices.DeleteFunc(foreign, func(l string) bool { // a table above this one has no say in it
		_, err := storage.Below(l, q.Location)
		return err == nil
	})
	foreign = slices.Compact(foreign)
	return slices.DeleteFunc(out, func(c candidate) bool {
		return slices.ContainsFunc(foreign, func(l string) bool {
			_, err := storage.Below(l, c.uri)
			return err == nil
		})
	}), nil
}

// tableAt is the location of the table whose metadata file this is, or "".
func tableAt(base, rel string) string {
	if !strings.HasSuffix(rel, ".metadata.json") && !strings.Contains(path.Base(rel), ".metadata.json") {
		return ""
	}
	dir := path.Dir(rel)
	switch {
	case dir == "metadata":
		return base
	case path.Base(dir) == "metadata":
		return storage.Join(base, path.Dir(dir))
	}
	return ""
}

// ofJob reports whether a file belongs to a job that runs, by its path.
func (q *Search) ofJob(rel string) bool {
	for _, id := range q.Jobs {
		if id != "" && strings.Contains(rel, id) {
			return true
		}
	}
	return false
}

// everything is what a table's metadata names, deleted files of its manifests included.
func everything(ctx context.Context, stores storage.Opener, md table.Metadata, location string) (map[string]bool, error) {
	r, err := reach(ctx, stores, md)
	if err != nil {
		return nil, err
	}
	out := r.lists
	out[Key(location)] = true
	for e := range md.PreviousFiles() {
		out[Key(e.MetadataFile)] = true
	}
	for _, uri := range StatisticsOf(md) {
		out[Key(uri)] = true
	}
	for key, m := range r.manifests {
		out[key] = true
		if err := files(ctx, stores, m, false, func(uri string, _ Kind) { out[Key(uri)] = true }); err != nil {
			return nil, err
		}
	}
	return out, nil
}
