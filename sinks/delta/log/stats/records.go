package stats

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Records is the number of rows that the statistics of a file give, deleted ones included.
func Records(text string) (int64, bool) {
	// Most writers have it first, and a commit may have a hundred thousand files.
	if rest, ok := strings.CutPrefix(text, `{"numRecords":`); ok {
		if i := strings.IndexAny(rest, ",}"); i > 0 {
			if n, err := strconv.ParseInt(rest[:i], 10, 64); err == nil && n >= 0 {
				return n, true
			}
		}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &m) != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(m["numRecords"]), 10, 64)
	return n, err == nil && n >= 0
}
