package broker

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/tableprops"
)

// createActions are what a request that creates its table may hold, and whether it must.
var createActions = map[string]bool{
	"assign-uuid":            true,
	"upgrade-format-version": true,
	"add-schema":             true,
	"set-current-schema":     true,
	"add-spec":               false,
	"set-default-spec":       false,
	"add-sort-order":         false,
	"set-default-sort-order": false,
	"set-location":           true,
	"set-properties":         true,
	"add-snapshot":           true,
	"set-snapshot-ref":       true,
}

// vetCreate checks a request that creates the table and appends to it in one step.
func (l *Lease) vetCreate(ctx context.Context, r *request) error {
	have := map[string]bool{}
	for _, a := range r.actions {
		if _, ok := createActions[a]; !ok {
			return invalid("update %q is not allowed when a table is created", a)
		}
		have[a] = true
	}
	for a, must := range createActions {
		if must && !have[a] {
			return invalid("the request lacks %q", a)
		}
	}
	location, err := l.defaultLocation(ctx)
	if err != nil {
		return err
	}
	switch _, err := uuid.Parse(r.assignUUID); {
	case !r.assertCreate || r.assertUUID != "" || r.assertRef != "":
		return invalid("want assert-create and no requirement on a table that exists")
	case err != nil:
		return invalid("assign-uuid: %q is no UUID", r.assignUUID)
	case l.spec.TableUUID != "" && !sameUUID(l.spec.TableUUID, r.assignUUID):
		return invalid("assign-uuid: want %s", l.spec.TableUUID)
	case r.version < 1 || r.version > 3:
		return invalid("format version %d: want 1, 2 or 3", r.version)
	case !sameLocation(r.location, location):
		return invalid("location %q: the job may create its table at %q only", r.location, location)
	}
	if err := l.vetSnapshot(r, nil, nextSequence(r.version, 0), nil); err != nil {
		return err
	}
	if r.ref.MaxRefAge != nil || r.ref.MaxSnapAge != nil || r.ref.MinToKeep != nil {
		return invalid("the first commit may not set the retention of main")
	}
	props := map[string]string{}
	for _, p := range r.properties {
		for k, v := range p {
			if _, ok := props[k]; ok {
				return invalid("property %q is set twice", k)
			}
			props[k] = v
		}
	}
	if err := checkMarkerProperty("", props[l.spec.MarkerProperty], l.spec.Markers, nil, r.snapshot.ID); err != nil {
		return err
	}
	delete(props, l.spec.MarkerProperty)
	if err := l.vetTableProperties(props, location); err != nil {
		return err
	}
	s, err := l.openStore(ctx)
	if err != nil {
		return err
	}
	return l.vetManifests(ctx, s, r.assignUUID, nil, r.snapshot, nil, nil)
}

// metadataPathProperty moves the metadata files elsewhere: the host writes them, with its own rights.
const metadataPathProperty = "write.metadata.path"

// dataPathProperties move the data files elsewhere: executors write them, or other engines.
var dataPathProperties = []string{"write.data.path", "write.folder-storage.path", "write.object-storage.path"}

// vetTableProperties refuses what would lead out of the table or claim a commit that never was.
func (l *Lease) vetTableProperties(props map[string]string, location string) error {
	for k, v := range props {
		if tableprops.Reserved(k) {
			return invalid("property %q is reserved", k)
		}
		if k == metadataPathProperty {
			if below, err := storage.Below(location, v); err != nil || len(below) == 0 {
				return invalid("property %s: %q is not below the table's location %q", k, v, location)
			}
		}
		if slices.Contains(dataPathProperties, k) {
			if err := l.vetDataPath(location, v); err != nil {
				return invalid("property %s: %v", k, err)
			}
		}
	}
	return nil
}

func (l *Lease) vetDataPath(location, path string) error {
	if l.spec.DataPath != nil {
		return l.spec.DataPath(location, path)
	}
	_, err := storage.Below(location, path)
	return err
}

func sameLocation(a, b string) bool {
	return objectKey(strings.TrimRight(a, "/")) == objectKey(strings.TrimRight(b, "/"))
}
