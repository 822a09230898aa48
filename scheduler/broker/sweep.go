package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
)

// ErrUnsettled: the outcome of an attempt is open; nothing may be removed.
var ErrUnsettled = coordinator.ErrUnsettled

// Sweep closes the lease and removes what it created, except for what keep wants and what the landed commit refers to. The table is asked
// whether anything landed, whatever memory says. It returns the number of objects removed; those that are left stay in Created.
func (l *Lease) Sweep(ctx context.Context, keep func(uri string) bool) (int, error) {
	l.Close()
	l.puts.Wait() // their bodies end with the lease
	l.mu.Lock()
	open := l.run != nil || l.external != nil
	l.mu.Unlock()
	if open {
		return 0, fmt.Errorf("sweep: %w", ErrUnsettled)
	}
	created := l.Created()
	if len(created) == 0 {
		return 0, nil
	}
	store, err := l.openStore(ctx)
	if r := new(Refusal); errors.As(err, &r) && r.Kind == kindExists && l.spec.Location != "" {
		store, err = l.spec.Catalog.Store(ctx, l.spec.Ident, l.spec.Location) // somebody else's table is there now; what the lease created is its own all the same
	}
	if err != nil {
		return 0, err
	}
	referenced, err := l.referenced(ctx, store, keep != nil)
	if err != nil {
		return 0, err
	}
	if err := fault.Hit("broker.sweep.before"); err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, uri := range created {
		if referenced[objectKey(uri)] || (keep != nil && keep(uri)) {
			continue
		}
		err := store.Remove(ctx, uri)
		switch {
		case err == nil:
			n++
		case !errors.Is(err, storage.ErrNotFound):
			errs = append(errs, err)
			continue
		}
		l.mu.Lock()
		delete(l.created, objectKey(uri))
		l.mu.Unlock()
	}
	return n, errors.Join(errs...)
}

// referenced lists what the table refers to of this job's commit, by objectKey. informed says that the caller decides by itself, too.
func (l *Lease) referenced(ctx context.Context, store storage.Store, informed bool) (map[string]bool, error) {
	out := map[string]bool{}
	if at := l.hasLanded(); at != nil {
		out[objectKey(at.location)] = true
	}
	if l.spec.Gate == nil {
		return out, nil
	}
	if l.spec.Catalog == nil {
		return out, l.referencedObjects(store, informed, out)
	}
	t, err := l.spec.Catalog.Load(ctx, l.spec.Ident)
	if errors.Is(err, catalog.ErrNotFound) {
		if at := l.hasLanded(); at != nil { // dropped since; its files belong to whoever dropped it
			return nil, fmt.Errorf("sweep: table %s, into which the job committed, is gone: left to orphan removal", l.spec.Ident)
		}
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	return l.referencedManifests(ctx, store, t, out)
}

// referencedManifests keeps every list and manifest of the job that any snapshot of the table refers to.
func (l *Lease) referencedManifests(ctx context.Context, store storage.Store, t *catalog.Table, out map[string]bool) (map[string]bool, error) {
	found := findMarkers(t.Metadata, l.spec.MarkerProperty, l.spec.Markers)
	ours := map[int64]bool{}
	for _, id := range found {
		ours[id] = true
	}
	for _, s := range t.Metadata.Snapshots() {
		if !ours[s.SnapshotID] && !l.owns(s.ManifestList) {
			continue
		}
		delete(ours, s.SnapshotID)
		out[objectKey(s.ManifestList)] = true
		list, err := l.manifests(ctx, store, t.UUID, s.ManifestList)
		if err != nil {
			return nil, fmt.Errorf("sweep: %w", err)
		}
		for key := range list.byPath {
			out[key] = true
		}
	}
	if len(ours) > 0 { // expired since: a later snapshot may still carry the manifests
		return nil, fmt.Errorf("sweep: the job's snapshot is gone from %s: left to orphan removal", l.spec.Ident)
	}
	return out, nil
}

// referencedObjects: a storage sink's commit object refers to its parts by names that only the sink reads. They are kept when a commit of
// this lease landed, and what an earlier lease created is kept unless the caller knows better.
func (l *Lease) referencedObjects(store storage.Store, informed bool, out map[string]bool) error {
	landed := l.hasLanded() != nil
	for _, uri := range l.Created() {
		rel, err := store.Rel(uri)
		if err != nil {
			return err
		}
		if landed || matches(l.spec.Sink.GetCommitPoints(), rel) {
			out[objectKey(uri)] = true
		}
	}
	if !informed {
		for _, uri := range l.spec.Adopted {
			out[objectKey(uri)] = true
		}
	}
	return nil
}
