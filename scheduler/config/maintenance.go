package config

import (
	"fmt"
	"strings"
	"time"
)

// Maintenance says which procedures the scheduler calls by itself for a catalog's tables. All are off by default: they remove data.
type Maintenance struct {
	ExpireSnapshots Schedule `koanf:"expire_snapshots"`
}

// Schedule says when a table is due. Zero values are off.
type Schedule struct {
	Every        time.Duration `koanf:"every"`         // all tables of the catalog, once in each such period
	AfterCommits int           `koanf:"after_commits"` // a table, when this scheduler has made so many snapshots of it since the last time
}

// Bounds of schedules. So many commits are what the jobs that are kept over a restart still tell.
const (
	minEvery        = time.Second
	maxEvery        = 365 * 24 * time.Hour
	maxAfterCommits = 10_000
)

// ReservedPrincipals begin with this: jobs that no client has submitted belong to them.
const ReservedPrincipals = "signet/"

// MaintenancePrincipal owns the jobs of schedules.
const MaintenancePrincipal = ReservedPrincipals + "maintenance"

func (v *validator) maintenance(key string, c *Catalog) {
	s := c.Maintenance.ExpireSnapshots
	if s == (Schedule{}) {
		return
	}
	key += ".maintenance.expire_snapshots"
	if c.Type == CatalogSink || c.Type == CatalogDelta {
		v.say(key, "is not for type "+c.Type+": its tables have no snapshots that expire")
		return
	}
	v.check(s.Every == 0 || s.Every >= minEvery && s.Every <= maxEvery, key+".every", s.Every, fmt.Sprintf("want %s to %s, or 0 for never", minEvery, maxEvery))
	v.check(s.AfterCommits >= 0 && s.AfterCommits <= maxAfterCommits, key+".after_commits", s.AfterCommits, fmt.Sprintf("want 1 to %d, or 0 for never", maxAfterCommits))
}

// Reserved says that a principal is the scheduler's own: nobody else can be it.
func Reserved(principal string) bool { return strings.HasPrefix(principal, ReservedPrincipals) }
