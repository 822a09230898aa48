package schema

import (
	"encoding/json"
	"sort"
	"strings"
)

// Use is something that a column's metadata asks of writers or readers.
type Use struct {
	Column string // with dots
	Key    string // of the metadata
	What   string // in words: "an invariant", "a generation expression"
}

// uses by key of the metadata; a key that ends with a dot, or in which one ends, stands for all that begin with it.
var uses = []struct{ key, what string }{
	{"delta.invariants", "an invariant"},
	{"delta.generationExpression", "a generation expression"},
	{"delta.identity.", "an identity"},
	{"CURRENT_DEFAULT", "a default"},
	{"delta.columnMapping.", "column mapping"},
	{"delta.typeChanges", "a widened type"},
	{"__COLLATIONS", "a collation"},
	{"__CHAR_VARCHAR_TYPE_STRING", "a char or varchar type"},
}

// The words in Use.What, by which callers tell uses apart.
const (
	Invariant     = "an invariant"
	Generated     = "a generation expression"
	Identity      = "an identity"
	Default       = "a default"
	ColumnMapping = "column mapping"
	TypeWidening  = "a widened type"
	Collation     = "a collation"
	CharVarchar   = "a char or varchar type"
)

// Uses finds what the metadata of columns asks of writers, at every depth: in the order of the columns, and each of a column once.
func (s *Schema) Uses() []Use {
	var out []Use
	t := s.Type()
	t.walk(nil, nil, func(path []string, _ *Type, f *Field) {
		if f == nil || len(f.Metadata) <= len("{}") {
			return
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(f.Metadata, &m) != nil {
			return
		}
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		seen := map[string]bool{}
		for _, k := range keys {
			for _, u := range uses {
				if (k == u.key || strings.HasSuffix(u.key, ".") && strings.HasPrefix(k, u.key)) && !seen[u.what] {
					seen[u.what] = true
					out = append(out, Use{Column: PathString(path), Key: k, What: u.what})
				}
			}
		}
	})
	return out
}
