// Package request reads one request to commit, as every kind of catalog has to: what it demands, and what of it a table shows.
//
// Invariants:
//   - The updates are never changed: what is sent is what was given.
//   - Landed, Holds, Fresh and Follows decide by the table's metadata alone, never by what a server said about the request.
package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog"
)

// Request is one parsed commit.
type Request struct {
	Facts []Fact // of the updates, in their order

	requirements table.Requirements
	location     string // of the only metadata that it may follow; empty: it may be put on top of others that its requirements hold for
	updates      json.RawMessage
}

// Fact is what a catalog must know of an update; iceberg-go does not export the types.
type Fact struct {
	Action   string            `json:"action"`
	UUID     string            `json:"uuid"`
	Version  int               `json:"format-version"`
	Location string            `json:"location"`
	Set      map[string]string `json:"updates"` // of set-properties
	Snapshot *struct {
		ID           int64  `json:"snapshot-id"`
		Sequence     int64  `json:"sequence-number"`
		Timestamp    int64  `json:"timestamp-ms"`
		ManifestList string `json:"manifest-list"`
		FirstRow     *int64 `json:"first-row-id"`
	} `json:"snapshot"`
}

// Parse reads a request. What cannot be read is ErrPermanent.
func Parse(requirements, updates []byte) (*Request, error) {
	r := &Request{updates: updates}
	if len(requirements) > 0 {
		rest, err := r.takeLocation(requirements)
		if err == nil {
			err = json.Unmarshal(rest, &r.requirements)
		}
		if err != nil {
			return nil, fmt.Errorf("requirements: %w: %w", catalog.ErrPermanent, err)
		}
	}
	if _, err := r.Updates(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(updates, &r.Facts); err != nil {
		return nil, fmt.Errorf("updates: %w: %w", catalog.ErrPermanent, err)
	}
	return r, nil
}

// takeLocation takes the requirement out that Iceberg's REST protocol does not have.
func (r *Request) takeLocation(requirements []byte) ([]byte, error) {
	if !bytes.Contains(requirements, []byte(catalog.AssertMetadataLocation)) {
		return requirements, nil
	}
	var all, rest []json.RawMessage
	if err := json.Unmarshal(requirements, &all); err != nil {
		return nil, err
	}
	for _, raw := range all {
		var one struct {
			Type     string `json:"type"`
			Location string `json:"metadata-location"`
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, err
		}
		if one.Type != catalog.AssertMetadataLocation {
			rest = append(rest, raw)
			continue
		}
		if one.Location == "" || r.location != "" && r.location != one.Location {
			return nil, fmt.Errorf("%s: %q", one.Type, one.Location)
		}
		r.location = one.Location
	}
	return json.Marshal(rest)
}

// Follows checks that the table's metadata is that which the request wants to follow.
func (r *Request) Follows(location string) error {
	if r.location == "" || r.location == location {
		return nil
	}
	return fmt.Errorf("%w: %s: the table's metadata is %s, and no longer %s", catalog.ErrConflict, catalog.AssertMetadataLocation, location, r.location)
}

// Updates returns the updates anew: applying them hands their parts to the metadata, which must not be shared by two attempts.
func (r *Request) Updates() (table.Updates, error) {
	var u table.Updates
	if err := json.Unmarshal(r.updates, &u); err != nil {
		return nil, fmt.Errorf("updates: %w: %w", catalog.ErrPermanent, err)
	}
	return u, nil
}

// Creates says whether the request demands that there is no table yet.
func (r *Request) Creates() bool {
	for _, req := range r.requirements {
		if req.GetType() == "assert-create" {
			return true
		}
	}
	return false
}

// Anchored says whether the request, if it adds a snapshot, demands another one to be there that it goes on top of.
func (r *Request) Anchored() bool {
	if r.Snapshots() == 0 || r.Creates() {
		return true
	}
	for _, req := range r.requirements {
		var doc struct {
			Snapshot *int64 `json:"snapshot-id"`
		}
		b, err := json.Marshal(req)
		if req.GetType() == "assert-ref-snapshot-id" && err == nil && json.Unmarshal(b, &doc) == nil && doc.Snapshot != nil {
			return true
		}
	}
	return false
}

// Holds checks the requirements; nil metadata means that there is no table.
func (r *Request) Holds(meta table.Metadata) error {
	for _, req := range r.requirements {
		if err := req.Validate(meta); err != nil {
			return fmt.Errorf("%w: %s: %w", catalog.ErrConflict, req.GetType(), err)
		}
	}
	return nil
}

// Landed says whether the table already shows this request: all its snapshots, or, where it has none, the UUID that a create
// assigned. A snapshot of the same id that is another one is an error, whichever way it came about.
func (r *Request) Landed(meta table.Metadata) (bool, error) {
	snapshots, uuid := 0, ""
	for _, f := range r.Facts {
		if f.Action == table.UpdateAssignUUID {
			uuid = f.UUID
		}
		if f.Action != table.UpdateAddSnapshot || f.Snapshot == nil {
			continue
		}
		snapshots++
		have := meta.SnapshotByID(f.Snapshot.ID)
		if have == nil {
			return false, nil
		}
		if have.ManifestList != f.Snapshot.ManifestList {
			return false, fmt.Errorf("snapshot id %d is another snapshot's (%s): %w", f.Snapshot.ID, have.ManifestList, catalog.ErrPermanent)
		}
	}
	return snapshots > 0 || r.Creates() && uuid == meta.TableUUID().String(), nil
}

// clockSlack is how much older than the table a snapshot may say it is; iceberg-go and Java refuse more.
const clockSlack = time.Minute

// Fresh finds snapshots that were built for an older table, although no requirement says so (another branch moved on, for
// example). To build them again helps, so this is a conflict.
func (r *Request) Fresh(meta table.Metadata) error {
	for _, f := range r.Facts {
		s := f.Snapshot
		if f.Action != table.UpdateAddSnapshot || s == nil {
			continue
		}
		switch {
		case meta.Version() >= 2 && s.Sequence <= meta.LastSequenceNumber():
			return fmt.Errorf("%w: sequence number %d is used, the table's last is %d", catalog.ErrConflict, s.Sequence, meta.LastSequenceNumber())
		case meta.Version() >= 3 && s.FirstRow != nil && *s.FirstRow < meta.NextRowID():
			return fmt.Errorf("%w: first row id %d is used, the table's next is %d", catalog.ErrConflict, *s.FirstRow, meta.NextRowID())
		case s.Timestamp < meta.LastUpdatedMillis()-clockSlack.Milliseconds():
			return fmt.Errorf("%w: snapshot time %d is over a minute before the table's last change %d", catalog.ErrConflict, s.Timestamp, meta.LastUpdatedMillis())
		}
	}
	return nil
}

// Shown says whether the table shows all that the request asks for, although it does not hold the request itself to be there: applied to the table, it
// would change nothing. It is for requests without a snapshot, which cannot be told from others of the same content; all others it leaves to Landed.
func (r *Request) Shown(meta table.Metadata) (bool, error) {
	if r.Snapshots() > 0 || r.Creates() {
		return false, nil
	}
	updates, err := r.Updates()
	if err != nil {
		return false, err
	}
	next, err := table.UpdateTableMetadata(meta, updates, "")
	if err != nil {
		return false, err
	}
	was, err := contents(meta)
	if err != nil {
		return false, err
	}
	if now, err := contents(next); err != nil || !reflect.DeepEqual(was, now) {
		return false, err
	}
	return true, errors.New("the table shows what the request asks for")
}

// contents are metadata without what every commit changes.
func contents(meta table.Metadata) (map[string]any, error) {
	b, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out map[string]any
	err = d.Decode(&out)
	delete(out, "last-updated-ms")
	delete(out, "metadata-log")
	return out, err
}

// FollowsOne says whether the request may only follow one metadata file (AssertMetadataLocation).
func (r *Request) FollowsOne() bool { return r.location != "" }

// Snapshots are those that the request adds.
func (r *Request) Snapshots() int {
	n := 0
	for _, f := range r.Facts {
		if f.Action == table.UpdateAddSnapshot && f.Snapshot != nil {
			n++
		}
	}
	return n
}

// UUID is the one that the request assigns; empty: none.
func (r *Request) UUID() string {
	id := ""
	for _, f := range r.Facts {
		if f.Action == table.UpdateAssignUUID {
			id = f.UUID
		}
	}
	return id
}

// MovesTo returns the location that the updates set, "" if none.
func (r *Request) MovesTo() string {
	loc := ""
	for _, f := range r.Facts {
		if f.Action == table.UpdateSetLocation {
			loc = f.Location
		}
	}
	return loc
}
