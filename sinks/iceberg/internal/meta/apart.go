package meta

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/signet-io/signet/internal/rawjson"
)

// unread are members that grow with a table's history, and that nobody looks at. The snapshots and their log are read when somebody asks for them.
var unread = map[string]bool{"metadata-log": true, "statistics": true, "partition-statistics": true}

// unmarshalApart decodes the document without its long members, which are most of it. false: the document is unusual, and is to be decoded whole.
func (j *jsonMetadata) unmarshalApart(raw []byte) bool {
	members, err := rawjson.Object(raw)
	if err != nil {
		return false
	}
	var snapshots []byte
	short := make([]rawjson.Member, 0, len(members))
	for _, m := range members {
		switch {
		case m.Key == "snapshots":
			snapshots = m.Value
		case m.Key == "snapshot-log":
			j.SnapshotLog = m.Value
		case unread[m.Key]:
		case !exact(m.Key): // the decoder would take it for one that it knows
			return false
		default:
			short = append(short, m)
		}
	}
	if json.Unmarshal(rawjson.AppendObject(nil, short), j) != nil {
		return false
	}
	if snapshots == nil || string(snapshots) == "null" {
		return true
	}
	elements, err := rawjson.Array(snapshots)
	if err != nil {
		return false
	}
	j.Snapshots = make([]json.RawMessage, len(elements))
	for i, e := range elements {
		j.Snapshots[i] = e
	}
	return true
}

// known are the members that jsonMetadata reads, as they are written.
var known = func() map[string]bool {
	out := map[string]bool{}
	for i := range reflect.TypeFor[jsonMetadata]().NumField() {
		out[reflect.TypeFor[jsonMetadata]().Field(i).Tag.Get("json")] = true
	}
	return out
}()

// exact tells whether a name is written as it has to be, if it is a known one: a decoder takes no notice of the case.
func exact(key string) bool {
	if known[key] {
		return true
	}
	for k := range known {
		if strings.EqualFold(k, key) {
			return false
		}
	}
	return true
}
