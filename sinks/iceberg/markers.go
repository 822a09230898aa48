package iceberg

import (
	"slices"
	"strconv"
	"strings"
)

// maxMarkers is how many items the marker property keeps besides those that must not go.
const maxMarkers = 256

// summaryMarkers is the summary key under which a snapshot names the markers it carries.
const summaryMarkers = "signet.markers"

// The marker property is a comma-separated list of marker:snapshotid, oldest first. Items that are none of ours are kept as they are, in their place.

func splitMarkers(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func markerOf(item string) string {
	marker, _, _ := strings.Cut(item, ":")
	return marker
}

// addMarkers gives the property's new text: the new markers at the end, and of the others the newest, besides those in keep.
func addMarkers(text string, markers []string, snapshotID int64, keep []string) string {
	items := slices.DeleteFunc(splitMarkers(text), func(item string) bool { return slices.Contains(markers, markerOf(item)) })
	for _, m := range markers {
		items = append(items, m+":"+strconv.FormatInt(snapshotID, 10))
	}
	kept := func(item string) bool { return slices.Contains(keep, markerOf(item)) }
	surplus := -maxMarkers
	for _, item := range items {
		if !kept(item) {
			surplus++
		}
	}
	items = slices.DeleteFunc(items, func(item string) bool {
		if surplus <= 0 || kept(item) {
			return false
		}
		surplus--
		return true
	})
	return strings.Join(items, ",")
}

// findMarker looks for a marker in the marker property, and in the summaries of all snapshots that the table still shows: the property outlives snapshots,
// and some catalogs show only the current one.
func (t *table) findMarker(property, marker string) (snapshot int64, found bool, err error) {
	for _, item := range splitMarkers(t.Properties[property]) {
		if m, id, ok := strings.Cut(item, ":"); ok && m == marker {
			if snapshot, err = strconv.ParseInt(id, 10, 64); err == nil {
				return snapshot, true, nil
			}
		}
	}
	s, err := t.FindMarked(summaryMarkers, marker)
	if err != nil || s == nil {
		return 0, false, err
	}
	return s.ID, true, nil
}

// versionOf is a snapshot id as the host's answers carry it.
func versionOf(snapshot int64) string { return strconv.FormatInt(snapshot, 10) }
