// Package summary knows the properties of a snapshot's summary that a job adds to what its format counts: who committed it, by which statement, and
// what the user wants to find there again. It is pure. No property that a format or another engine gives a meaning to is ever a user's.
package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Properties that tell whose a snapshot is. One that carries several jobs lists their values, each once, with commas between.
const (
	User      = "signet.user"       // principal
	QueryHash = "signet.query-hash" // Hash of the statement
)

// Identity are the properties that tell whose a snapshot is.
var Identity = []string{User, QueryHash}

// sinks write these, and the host vets them by itself.
var ofCommits = []string{"signet.markers", "signet.job-ids"}

// Bounds of a user's properties. They stay in the table's metadata, which every commit reads and writes, until their snapshot expires.
const (
	maxKey   = 128     // bytes
	maxValue = 4 << 10 // bytes
	MaxCount = 32      // properties of one statement
)

// reserved are names, or beginnings of them (with "." or "-" at the end), that are not a user's to set: what the format counts and totals, what
// tells engines apart, what makes a commit recognisable, and what other engines recover by.
var reserved = []string{
	"operation", "signet.", "engine-", "iceberg-version", "app-", "spark.app.", "flink.", "kafka.connect.", "trino_query_id",
	"added-", "deleted-", "removed-", "total-", "changed-partition-count", "partitions.", "partition-summaries-included",
	"manifests-", "entries-processed", "replace-partitions", "wap.", "published-wap-id", "source-snapshot-id", "snapshot-", "sequence-number", "first-row-id",
}

// Reserved tells whether a property is not a user's to set. No name differs from a reserved one by case alone.
func Reserved(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(reserved, func(r string) bool {
		return key == r || (strings.HasSuffix(r, "-") || strings.HasSuffix(r, ".")) && strings.HasPrefix(key, r)
	})
}

// Check refuses a property that a user may not set, or that is too large.
func Check(key, value string) error {
	switch {
	case key == "":
		return fmt.Errorf("the snapshot property has no name")
	case len(key) > maxKey || !printable(key) || strings.ContainsFunc(key, unicode.IsSpace):
		return fmt.Errorf("a snapshot property's name has at most %d bytes, and neither spaces nor control characters", maxKey)
	case len(value) > maxValue || !printable(value):
		return fmt.Errorf("a snapshot property's value has at most %d bytes, and no control characters", maxValue)
	case Reserved(key):
		return fmt.Errorf("the snapshot property %q is reserved: it is computed, or tells engines and commits apart; take another name", key)
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Vet refuses a snapshot's summary that does not say what it has to of the units that the snapshot carries, or says more than that and what a
// format counts.
func Vet(have map[string]string, units []map[string]string) error {
	for _, key := range Identity {
		if want := Join(units, key); have[key] != want {
			return fmt.Errorf("summary %s is %q: want %q", key, have[key], want)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		switch {
		case slices.Contains(Identity, key), slices.Contains(ofCommits, key):
		case strings.HasPrefix(key, "signet."):
			return fmt.Errorf("summary %q is not allowed", key)
		case Reserved(key): // the format's own
		case !slices.ContainsFunc(units, func(u map[string]string) bool { v, ok := u[key]; return ok && v == have[key] }):
			return fmt.Errorf("summary %q is %q, which no job has set", key, have[key])
		}
	}
	for _, u := range units {
		for _, key := range slices.Sorted(maps.Keys(u)) {
			if _, ok := have[key]; !ok && u[key] != "" {
				return fmt.Errorf("summary %q, which a job has set, is missing", key)
			}
		}
	}
	return nil
}

// Join lists the units' values of a property, each once, in their order.
func Join(units []map[string]string, key string) string {
	var out []string
	for _, u := range units {
		if v := u[key]; v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return strings.Join(out, ",")
}
