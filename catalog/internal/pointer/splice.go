package pointer

import (
	"encoding/json"
	"maps"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/internal/rawjson"
)

// splice gives the bytes of metadata that differs from its base by one snapshot and what moves with it. A table's snapshots are most of its metadata,
// and they are copied as they are: so a commit costs little more however many there are, and what this version does not know of stays. false: the
// request changes something else, or the base is unusual, and the whole metadata is to be encoded.
func splice(base *version, meta table.Metadata, req *request.Request) ([]byte, bool) {
	snapshot := appends(req, base.meta, meta)
	if snapshot == nil {
		return nil, false
	}
	members, err := rawjson.Object(base.raw)
	if err != nil {
		return nil, false
	}
	at := map[string]int{}
	for i, m := range members {
		at[m.Key] = i
	}
	changed, err := changes(base.meta, meta, snapshot, func(key string) []byte {
		if i, ok := at[key]; ok {
			return members[i].Value
		}
		return nil
	})
	if err != nil {
		return nil, false
	}
	for _, m := range changed {
		if i, ok := at[m.Key]; ok {
			members[i].Value = m.Value
		} else {
			members = append(members, m)
		}
	}
	size := len(base.raw) + len(changed)*256
	return rawjson.AppendObject(make([]byte, 0, size), members), true
}

// appends returns the one snapshot that the request adds; nil: it does more than add it, and point references and properties to it.
func appends(r *request.Request, base, meta table.Metadata) *table.Snapshot {
	var id *int64
	for _, f := range r.Facts {
		switch f.Action {
		case table.UpdateAddSnapshot:
			if id != nil || f.Snapshot == nil {
				return nil
			}
			id = &f.Snapshot.ID
		case table.UpdateSetSnapshotRef, table.UpdateSetProperties:
		default:
			return nil
		}
	}
	if id == nil || base.Version() < 2 || base.Version() != meta.Version() || base.SnapshotByID(*id) != nil || len(meta.Snapshots()) != len(base.Snapshots())+1 {
		return nil
	}
	return meta.SnapshotByID(*id)
}

// changes are the members that a new snapshot changes.
func changes(base, meta table.Metadata, snapshot *table.Snapshot, was func(string) []byte) ([]rawjson.Member, error) {
	var out []rawjson.Member
	var failed error
	put := func(key string, b []byte, err error) {
		if err != nil && failed == nil {
			failed = err
		}
		out = append(out, rawjson.Member{Key: key, Value: b})
	}
	set := func(key string, v any) {
		b, err := json.Marshal(v)
		put(key, b, err)
	}
	one, err := json.Marshal(snapshot)
	if err != nil {
		return nil, err
	}
	list, err := extend(was("snapshots"), one)
	put("snapshots", list, err)
	set("last-updated-ms", meta.LastUpdatedMillis())
	set("last-sequence-number", meta.LastSequenceNumber())
	if meta.Version() >= 3 {
		set("next-row-id", meta.NextRowID())
	}
	if now := meta.CurrentSnapshot(); now != nil {
		set("current-snapshot-id", now.SnapshotID)
	}
	if len(meta.Properties()) > 0 || was("properties") != nil {
		set("properties", meta.Properties())
	}
	set("refs", maps.Collect(meta.Refs()))
	set("metadata-log", collect(meta.PreviousFiles()))
	log, known := collect(meta.SnapshotLogs()), collect(base.SnapshotLogs())
	switch n := len(known); {
	case len(log) == n+1 && (n == 0 || log[n-1] == known[n-1]):
		entry, err := json.Marshal(log[n])
		if err != nil {
			return nil, err
		}
		list, err := extend(was("snapshot-log"), entry)
		put("snapshot-log", list, err)
	case len(log) > 0 || was("snapshot-log") != nil:
		set("snapshot-log", log)
	}
	return out, failed
}

func extend(array, element []byte) ([]byte, error) {
	if array == nil || string(array) == "null" {
		array = []byte("[]")
	}
	return rawjson.Extend(array, element)
}

func collect[T any](entries func(func(T) bool)) []T {
	out := []T{} // an array, also if it is empty
	for e := range entries {
		out = append(out, e)
	}
	return out
}
