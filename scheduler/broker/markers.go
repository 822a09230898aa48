package broker

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"
)

const (
	// SummaryMarkers is the key of a snapshot's summary under which the markers of its units stand.
	SummaryMarkers = "signet.markers"
	// maxMarkers is how many markers the table property keeps besides those that must stay.
	maxMarkers = 256
)

// validMarker: a marker must not be able to look like two.
func validMarker(m string) bool {
	return m != "" && len(m) <= 64 && strings.Trim(m, "0123456789abcdef") == ""
}

// markerEntry is one "marker:snapshotid" of the property.
type markerEntry struct {
	marker   string
	snapshot int64
}

// splitMarkers splits the property's value; entries that are none keep snapshot 0, so that foreign text survives.
func splitMarkers(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

func parseMarker(s string) (markerEntry, bool) {
	m, id, ok := strings.Cut(s, ":")
	n, err := strconv.ParseInt(id, 10, 64)
	if !ok || err != nil || !validMarker(m) {
		return markerEntry{}, false
	}
	return markerEntry{marker: m, snapshot: n}, true
}

// findMarkers looks for each marker in the table property and in the snapshots' summaries. It returns those found with their snapshot.
func findMarkers(md table.Metadata, property string, markers []string) map[string]int64 {
	found := map[string]int64{}
	for _, s := range splitMarkers(md.Properties()[property]) {
		if e, ok := parseMarker(s); ok && slices.Contains(markers, e.marker) {
			found[e.marker] = e.snapshot
		}
	}
	if len(found) == len(markers) {
		return found
	}
	for _, s := range md.Snapshots() {
		if s.Summary == nil {
			continue
		}
		for _, m := range splitMarkers(s.Summary.Properties[SummaryMarkers]) {
			if _, ok := found[m]; !ok && slices.Contains(markers, m) {
				found[m] = s.SnapshotID
			}
		}
	}
	return found
}

// LandedAt is the snapshot under which the table has the marker; 0: it does not have it.
func LandedAt(md table.Metadata, property, marker string) int64 {
	return findMarkers(md, property, []string{marker})[marker]
}

// checkMarkerProperty compares the new value of the marker property with the old one: own entries added, foreign ones kept in order, and
// evicted only beyond what is to be kept.
func checkMarkerProperty(old, value string, own []string, keep []string, snapshotID int64) error {
	entries := splitMarkers(value)
	missing := slices.Clone(own)
	var foreign []string
	for _, s := range entries {
		e, ok := parseMarker(s)
		if i := slices.Index(missing, e.marker); ok && i >= 0 {
			if e.snapshot != snapshotID {
				return invalid("marker property: %q names another snapshot than %d", s, snapshotID)
			}
			missing = slices.Delete(missing, i, i+1)
			continue
		}
		foreign = append(foreign, s)
	}
	if len(missing) > 0 {
		return invalid("marker property: marker %q is missing", missing[0])
	}
	kept := 0
	dropped := 0
	for _, s := range splitMarkers(old) {
		if kept < len(foreign) && foreign[kept] == s {
			kept++
			continue
		}
		dropped++
		if e, ok := parseMarker(s); ok && slices.Contains(keep, e.marker) {
			return invalid("marker property: marker %q must stay", e.marker)
		}
	}
	if kept < len(foreign) {
		return invalid("marker property: entry %q is neither the job's nor the table's", foreign[kept])
	}
	if dropped > 0 && len(entries) < maxMarkers {
		return invalid("marker property: %d entries evicted while only %d remain", dropped, len(entries))
	}
	return nil
}

// containsMarker reports whether an object of whatever format carries a marker in clear.
func containsMarker(content []byte, marker string) bool {
	return bytes.Contains(content, []byte(marker))
}
