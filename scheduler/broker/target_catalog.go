package broker

import (
	"context"
	"errors"
	"strconv"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/mutant"
)

// catalogTarget is a table in a catalog.
type catalogTarget struct {
	catalog  catalog.Catalog
	ident    catalog.Ident
	property string // marker property
}

func (t *catalogTarget) send(ctx context.Context, a *coordinator.Attempt) (string, error) {
	out, err := t.catalog.Commit(ctx, t.ident, a.Requirements, a.Updates)
	if err != nil {
		return "", err
	}
	if out == nil { // it said that it landed; where is a detail
		return "", nil
	}
	return out.MetadataLocation, nil
}

func (t *catalogTarget) look(ctx context.Context, a *coordinator.Attempt) (coordinator.Outcome, error) {
	now, err := t.catalog.Load(ctx, t.ident)
	if errors.Is(err, catalog.ErrNotFound) {
		if a.Creates { // not yet: it may still land
			return outcome(coordinator.OutcomeUnknown, "the table does not exist"), nil
		}
		return outcome(coordinator.OutcomeDead, "the table is gone"), nil
	}
	if err != nil {
		return coordinator.Outcome{}, err
	}
	return t.judge(now, a), nil
}

// judge is the rule of the design: what a table says about one request.
func (t *catalogTarget) judge(now *catalog.Table, a *coordinator.Attempt) coordinator.Outcome {
	md := now.Metadata
	switch {
	case !sameUUID(now.UUID, a.TableUUID):
		return outcome(coordinator.OutcomeDead, "the table has UUID %s, the request was for %s", now.UUID, a.TableUUID)
	case md.SnapshotByID(a.SnapshotID) != nil:
		return coordinator.Outcome{Kind: coordinator.OutcomeLanded, Version: a.Version, Location: now.MetadataLocation}
	}
	if o, ok := foundUnits(findMarkers(md, t.property, a.Markers), a); ok {
		o.Location = now.MetadataLocation
		return o
	}
	if a.Creates { // it has our UUID, so our request made it: the snapshot was expired since, and its markers evicted
		return coordinator.Outcome{Kind: coordinator.OutcomeLanded, Version: a.Version, Location: now.MetadataLocation}
	}
	if a.SequenceNumber == 0 { // format version 1: the request names the metadata that it follows, which never comes back
		if now.MetadataLocation != a.Follows {
			return outcome(coordinator.OutcomeDead, "the table's metadata is %s, the request could only follow %s, and nothing of it is there", now.MetadataLocation, a.Follows)
		}
		return outcome(coordinator.OutcomeUnknown, "not in the table, and it may still come")
	}
	if md.LastSequenceNumber() >= a.SequenceNumber { // no catalog takes an older sequence number, wherever main points
		return outcome(coordinator.OutcomeDead, "the table is at sequence number %d, the request had %d, and nothing of it is there", md.LastSequenceNumber(), a.SequenceNumber)
	}
	return outcome(coordinator.OutcomeUnknown, "not in the table, and it may still come")
}

// foundUnits is what the markers in the table say about an attempt: it landed, or all of its units did, or nothing. Where only some units are found,
// an earlier run has landed them: the attempt is still out, and what becomes of it decides.
func foundUnits(found map[string]int64, a *coordinator.Attempt) (coordinator.Outcome, bool) {
	switch {
	case len(found) == 0:
		return coordinator.Outcome{}, false
	case len(a.Markers) == 1:
		return coordinator.Outcome{Kind: coordinator.OutcomeFound, Version: anyOf(found)}, true
	}
	versions := map[string]string{}
	for m, id := range found {
		if id == a.SnapshotID { // all units or none: its snapshot was expired since
			return coordinator.Outcome{Kind: coordinator.OutcomeLanded, Version: a.Version}, true
		}
		versions[m] = strconv.FormatInt(id, 10)
	}
	if len(found) < len(a.Markers) && !mutant.On("broker/one-unit-is-all") {
		return coordinator.Outcome{}, false
	}
	return coordinator.Outcome{Kind: coordinator.OutcomeFound, Version: anyOf(found), Versions: versions}, true
}

// anyOf is the snapshot of one of them: always of the same one.
func anyOf(found map[string]int64) string {
	var id int64
	for _, s := range found {
		id = max(id, s)
	}
	return strconv.FormatInt(id, 10)
}
