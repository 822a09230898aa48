package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLike(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"demo", "demo", true},
		{"demo", "demo2", false},
		{"demo", "Demo", false},
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "a.b", true},
		{"raw_*", "raw_", true},
		{"raw_*", "raw_a.b", true},
		{"raw_*", "xraw_a", false},
		{"*_raw", "a_raw", true},
		{"*_raw", "a_raw_", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "acb", false},
		{"a*bc*c", "abc", false},
		{"a*b*b*c", "abc", false},
		{"**", "x", true},
		{"?", "a", false},
		{"[a]", "a", false},
		{"a.b", "axb", false},
	} {
		assert.Equal(t, tc.want, like(tc.pattern, tc.s), "%q like %q", tc.s, tc.pattern)
	}
}

func TestCatalog_Allows(t *testing.T) {
	open, closed := Catalog{}, Catalog{Permissions: []Permission{}}
	some := Catalog{Permissions: []Permission{
		{Principals: []string{"etl", "team-*"}, Allow: []string{AllowRead, AllowInsert}, Schemas: []string{"demo", "raw_*"}},
		{Principals: []string{"ops"}, Allow: []string{AllowAll}},
	}}
	for _, a := range Actions() {
		assert.True(t, open.Allows("anybody", "s", a))
		assert.False(t, closed.Allows("anybody", "s", a))
		assert.True(t, closed.Allows(MaintenancePrincipal, "s", a), "schedules are the operator's own word")
		assert.True(t, some.Allows("ops", "any", a))
		assert.Equal(t, a == AllowRead || a == AllowInsert, some.Allows("team-7", "raw_x", a), a)
		assert.False(t, some.Allows("team-7", "raw", a))
		assert.False(t, some.Allows("etl2", "demo", a))
	}
	assert.True(t, some.AllowsAnything("etl"))
	assert.False(t, some.AllowsAnything("bob"))
	assert.False(t, closed.AllowsAnything("etl"))
	assert.True(t, open.AllowsAnything("bob"))
}

func TestValidate_Permissions(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                                "",
		"[{principals: [a], allow: [all]}]": "",
		"[{principals: ['*'], allow: [read, insert], schemas: ['a*']}]": "",
		"[{allow: [read]}]":                               "permissions[0].principals: want at least one",
		"[{principals: [], allow: [read]}]":               "permissions[0].principals: want at least one",
		"[{principals: [''], allow: [read]}]":             "permissions[0].principals[0]",
		"[{principals: [a]}]":                             "permissions[0].allow: missing",
		"[{principals: [a], allow: [write]}]":             `permissions[0].allow[0]: "write"`,
		"[{principals: [a], allow: [inser]}]":             "did you mean insert?",
		"[{principals: [a], allow: [read], schemas: []}]": "permissions[0].schemas: want at least one",
		"[{principals: [a], allow: [read], schema: [x]}]": "did you mean schemas?",
		"{principals: [a], allow: [read]}":                "want a list",
	} {
		_, err := Load(write(t, "catalogs: {lake: {type: sql, uri: 'sqlite:///c.db', warehouse: 'file:///w', permissions: "+text+"}}\n"), nil, nil)
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want, text)
		}
	}
}

func TestRestrictedPaths(t *testing.T) {
	c := Embedded(t.TempDir())
	c.Catalogs = map[string]Catalog{
		"a": {Warehouse: "file:///a", DataPaths: []string{"file:///a2", "s3://b/c"}, Permissions: []Permission{}},
		"b": {Warehouse: "file:///b"},
		"c": {Root: "file:///c", Permissions: []Permission{{Principals: []string{"x"}, Allow: []string{AllowRead}}}},
	}
	assert.Equal(t, []string{"/a", "/a2", "/c"}, c.RestrictedPaths())
}
