package broker

import (
	"context"
	"errors"
	"strconv"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/coordinator"
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
	if found := findMarkers(md, t.property, a.Markers); len(found) > 0 {
		return coordinator.Outcome{Kind: coordinator.OutcomeFound, Version: newest(found), Location: now.MetadataLocation}
	}
	if a.Creates { // it has our UUID, so our request made it: the snapshot was expired since, and its markers evicted
		return coordinator.Outcome{Kind: coordinator.OutcomeLanded, Version: a.Version, Location: now.MetadataLocation}
	}
	if md.LastSequenceNumber() >= a.SequenceNumber { // no catalog takes an older sequence number, wherever main points
		return outcome(coordinator.OutcomeDead, "the table is at sequence number %d, the request had %d, and nothing of it is there", md.LastSequenceNumber(), a.SequenceNumber)
	}
	return outcome(coordinator.OutcomeUnknown, "not in the table, and it may still come")
}

func newest(found map[string]int64) string {
	var id int64
	for _, s := range found {
		id = max(id, s)
	}
	return strconv.FormatInt(id, 10)
}
