package schema

import (
	"encoding/json"

	"github.com/signet-io/signet/internal/rawjson"
)

// setMember sets one member of an object, or takes it away if value is nil. All else stays, byte for byte and in its order.
func setMember(object json.RawMessage, key string, value json.RawMessage) (json.RawMessage, error) {
	if len(object) == 0 {
		object = json.RawMessage("{}")
	}
	list, err := rawjson.Object(object)
	if err != nil {
		return nil, err
	}
	out := list[:0]
	set := value == nil
	for _, m := range list {
		if m.Key == key {
			if set {
				continue
			}
			m.Value, set = value, true
		}
		out = append(out, m)
	}
	if !set {
		out = append(out, rawjson.Member{Key: key, Value: value})
	}
	if len(out) == 0 {
		return nil, nil
	}
	return rawjson.AppendObject(nil, out), nil
}
