package config

import (
	"fmt"
	"slices"
	"strings"
)

// Permission says what some principals may do in some schemas of a catalog. A catalog that has any permits nothing else.
type Permission struct {
	// Principals by their names; * stands for any characters.
	Principals []string `koanf:"principals"`
	// Allow lists what they may do: read, insert, alter, create, drop, maintain, or all.
	Allow []string `koanf:"allow"`
	// Schemas by their names, nested ones as a.b; * stands for any characters, dots too. Without it: all.
	Schemas []string `koanf:"schemas"`
}

// Actions that permissions allow.
const (
	AllowRead     = "read"     // SELECT, DESCRIBE, SHOW; and that a schema or table is listed at all
	AllowInsert   = "insert"   // INSERT, OVERWRITE, TRUNCATE, ADD FILES; with read: UPDATE, DELETE, MERGE
	AllowAlter    = "alter"    // ALTER TABLE, branches, tags, and what sets a branch to another snapshot
	AllowCreate   = "create"   // CREATE SCHEMA, CREATE TABLE
	AllowDrop     = "drop"     // DROP TABLE; with create: CREATE OR REPLACE
	AllowMaintain = "maintain" // CALL of what rewrites or removes files
	AllowAll      = "all"
)

// Actions are all of them, in the order in which they are told.
func Actions() []string {
	return []string{AllowRead, AllowInsert, AllowAlter, AllowCreate, AllowDrop, AllowMaintain}
}

// Allows tells whether this entry lets a principal do something in a schema.
func (p *Permission) Allows(principal, schema, action string) bool {
	return (slices.Contains(p.Allow, action) || slices.Contains(p.Allow, AllowAll)) && matchesAny(p.Principals, principal) &&
		(p.Schemas == nil || matchesAny(p.Schemas, schema))
}

// Restricted says that a catalog permits only what it lists.
func (c *Catalog) Restricted() bool { return c.Permissions != nil }

// Allows tells whether a principal may do something in a schema of the catalog. The scheduler's own jobs may.
func (c *Catalog) Allows(principal, schema, action string) bool {
	if !c.Restricted() || principal == MaintenancePrincipal {
		return true
	}
	return slices.ContainsFunc(c.Permissions, func(p Permission) bool { return p.Allows(principal, schema, action) })
}

// AllowsAnything tells whether a principal has any permission in the catalog.
func (c *Catalog) AllowsAnything(principal string) bool {
	return !c.Restricted() || principal == MaintenancePrincipal || slices.ContainsFunc(c.Permissions, func(p Permission) bool { return matchesAny(p.Principals, principal) })
}

// Grants says in words what permissions let a principal do, and where: one line for each entry that names it.
func (c *Catalog) Grants(principal string) []string {
	var out []string
	for _, p := range c.Permissions {
		if matchesAny(p.Principals, principal) {
			where := "every schema"
			if p.Schemas != nil {
				where = strings.Join(p.Schemas, ", ")
			}
			out = append(out, strings.Join(p.Allow, ", ")+" in "+where)
		}
	}
	return out
}

// Principals are those that are known by name: of tokens, certificates, and of the catalog's permissions where an entry is no pattern.
func (c *Config) Principals(catalog string) []string {
	var out []string
	for _, t := range c.Auth.Tokens {
		out = append(out, t.Principal)
	}
	for _, e := range c.Auth.Certificates {
		out = append(out, e.Principal)
	}
	for _, o := range c.Auth.OIDC {
		out = append(out, o.Operators...)
	}
	for _, p := range c.Catalogs[catalog].Permissions {
		for _, name := range p.Principals {
			if !strings.Contains(name, "*") {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Knows says whether a caller can be the principal.
func (c *Config) Knows(principal string) bool {
	return slices.ContainsFunc(c.Auth.OIDC, func(o OIDC) bool { return strings.HasPrefix(principal, o.Prefix()) }) ||
		slices.ContainsFunc(c.Auth.Tokens, func(t Token) bool { return t.Principal == principal }) ||
		slices.ContainsFunc(c.Auth.Certificates, func(e Certificate) bool { return e.Principal == principal })
}

func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return like(p, s) })
}

// like matches a name with a pattern in which * stands for any characters, none too, and everything else for itself.
func like(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return true
}

func (v *validator) permissions(key string, c *Catalog) {
	for i, p := range c.Permissions {
		at := fmt.Sprintf("%s.permissions[%d]", key, i)
		v.names(at+".principals", p.Principals, false)
		v.names(at+".schemas", p.Schemas, p.Schemas == nil)
		if len(p.Allow) == 0 {
			v.say(at+".allow", "missing; there are "+strings.Join(Actions(), ", ")+" and "+AllowAll)
		}
		for n, a := range p.Allow {
			v.oneOf(fmt.Sprintf("%s.allow[%d]", at, n), a, append(Actions(), AllowAll)...)
		}
	}
}

func (v *validator) names(key string, list []string, mayMiss bool) {
	if len(list) == 0 && !mayMiss {
		v.say(key, "want at least one name or pattern, like \"team-*\"; \"*\" is all")
	}
	for i, n := range list {
		v.check(n != "" && len(n) <= 256, fmt.Sprintf("%s[%d]", key, i), n, "want a name or a pattern of at most 256 bytes")
	}
}

// RestrictedPaths are the local directories of catalogs with permissions: whoever could read files there, would read tables past them.
func (c *Config) RestrictedPaths() []string {
	var out []string
	for _, place := range c.restricted() {
		if path, ok := strings.CutPrefix(place, "file://"); ok {
			out = append(out, path)
		}
	}
	return out
}

// RestrictedPlaces are the same in object stores.
func (c *Config) RestrictedPlaces() []string {
	return slices.DeleteFunc(c.restricted(), func(p string) bool { return !strings.HasPrefix(p, "s3://") })
}

func (c *Config) restricted() []string {
	var out []string
	for _, name := range sortedKeys(c.Catalogs) {
		if cat := c.Catalogs[name]; cat.Restricted() {
			out = append(append(out, cat.Warehouse, cat.Root), cat.DataPaths...)
		}
	}
	return out
}
