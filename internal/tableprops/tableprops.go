// Package tableprops names the table properties that begin with signet. All but a few are Signet's own record in the table, which nobody else may write.
package tableprops

import (
	"slices"
	"strings"
)

// Prefix of all of them.
const Prefix = "signet."

// The properties that the owner of a table sets.
const (
	AcceptAnySchema = "signet.accept-any-schema"            // INSERT BY NAME may add columns and widen types
	Splice          = "signet.splice.enabled"               // false: row groups of Parquet files are never copied as they are
	ExpireSnapshots = "signet.maintenance.expire-snapshots" // false: no schedule expires the table's snapshots
)

// Settable are they.
var Settable = []string{AcceptAnySchema, Splice, ExpireSnapshots}

// Reserved says whether only Signet itself may set a property. Names that differ from one of its own in case are nobody's.
func Reserved(key string) bool {
	return !slices.Contains(Settable, key) && strings.HasPrefix(strings.ToLower(key), Prefix)
}
