package glue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
)

// Tables of Glue that are none of Iceberg are not there, are not dropped, and their names are taken.
func TestOtherTablesOfGlue(t *testing.T) {
	s := newScene(t)
	s.srv.Edit("demo", "hive", func(in map[string]any) {
		in["Parameters"] = map[string]any{"classification": "csv"}
		in["StorageDescriptor"] = map[string]any{"Location": strings.TrimSuffix(s.tbl.Location, "t") + "place/"}
	})
	id := catalog.Ident{"demo", "hive"}
	_, err := s.c.Load(t.Context(), id)
	require.ErrorIs(t, err, catalog.ErrNotFound)
	require.ErrorContains(t, err, "no Iceberg table")
	require.ErrorIs(t, s.c.Drop(t.Context(), id), catalog.ErrNotFound)
	require.NotNil(t, s.srv.Table("demo", "hive"))
	_, err = s.c.Create(t.Context(), id, catalogtest.Spec())
	require.ErrorIs(t, err, catalog.ErrExists)
	reqs, ups := catalogtest.Staged("", "", 9)
	_, err = s.c.Commit(t.Context(), id, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrConflict)
	tables, err := s.c.Tables(t.Context(), []string{"demo"})
	require.NoError(t, err)
	assert.Equal(t, []catalog.Ident{{"demo", "t"}}, tables)
	spec := catalogtest.Spec()
	spec.Location = strings.TrimSuffix(s.tbl.Location, "t") + "place/in"
	_, err = s.c.Create(t.Context(), catalog.Ident{"demo", "x"}, spec)
	require.ErrorIs(t, err, catalog.ErrPermanent, "its files are there")
}

// A table of Iceberg that lies around the place of another is found, although that is where Signet would put it.
func TestLocations_TablesAround(t *testing.T) {
	s := newScene(t)
	around := strings.TrimSuffix(s.tbl.Location, "/t")
	st, err := s.c.Store(t.Context(), nil, around)
	require.NoError(t, err)
	_, err = st.PutIfAbsent(t.Context(), around+"/metadata/00000-a.metadata.json", strings.NewReader("{}"))
	require.NoError(t, err)
	reqs, ups := catalogtest.Staged("", around+"/free", 9)
	_, err = s.c.Commit(t.Context(), catalog.Ident{"demo", "free"}, reqs, ups)
	require.NoError(t, err, "files of no table")
	s.srv.Edit("demo", "around", func(in map[string]any) {
		in["Parameters"] = map[string]any{"table_type": "ICEBERG", "metadata_location": around + "/metadata/00000-a.metadata.json"}
	})
	reqs, ups = catalogtest.Staged("", around+"/within", 9)
	_, err = s.c.Commit(t.Context(), catalog.Ident{"demo", "within"}, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "another table's files")
}

// A database's own location is taken where it keeps tables apart, and is refused where it does not.
func TestLocations_OfDatabases(t *testing.T) {
	s := newScene(t)
	warehouse := strings.TrimSuffix(s.tbl.Location, "/demo/t")
	for own, want := range map[string]string{
		warehouse + "/elsewhere/": warehouse + "/elsewhere/x", warehouse: "", warehouse + "/a/b": "", "s3://bucket/x": "", "": warehouse + "/own/x",
	} {
		s.srv.Database("own", map[string]any{"LocationUri": own})
		loc, err := s.c.DefaultLocation(t.Context(), catalog.Ident{"own", "x"})
		if want == "" {
			require.ErrorIs(t, err, catalog.ErrPermanent, own)
			require.ErrorContains(t, err, "database own has the location")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, loc)
	}
}

// Lists come in pages.
func TestPages(t *testing.T) {
	s := newScene(t)
	s.srv.Pages(2)
	var tables []catalog.Ident
	var namespaces [][]string
	for _, n := range []string{"a", "b", "c", "d"} {
		_, err := s.c.Create(t.Context(), catalog.Ident{"demo", n}, catalogtest.Spec())
		require.NoError(t, err)
		s.srv.Database(n, map[string]any{})
		tables, namespaces = append(tables, catalog.Ident{"demo", n}), append(namespaces, []string{n})
	}
	got, err := s.c.Tables(t.Context(), []string{"demo"})
	require.NoError(t, err)
	assert.Equal(t, append(tables, s.tbl.Ident), got)
	all, err := s.c.Namespaces(t.Context())
	require.NoError(t, err)
	assert.Equal(t, append(namespaces, []string{"demo"}), all)
}

// Names that Glue would change are refused, and say what to write.
func TestNames(t *testing.T) {
	s := newScene(t)
	for _, id := range []catalog.Ident{{"demo", "T"}, {"Demo", "t"}, {"demo", "a\tb"}, {"a", "b", "t"}} {
		_, err := s.c.Load(t.Context(), id)
		require.ErrorIs(t, err, catalog.ErrPermanent, id)
		require.ErrorIs(t, s.c.Drop(t.Context(), id), catalog.ErrPermanent, id)
	}
	_, err := s.c.Load(t.Context(), catalog.Ident{"demo", "T"})
	require.ErrorContains(t, err, `write "t"`)
}

// Types, documentation and columns of earlier schemas, as Glue shows them.
func TestColumns(t *testing.T) {
	s := newScene(t)
	spec := catalog.CreateSpec{Schema: json.RawMessage(`{"type":"struct","schema-id":0,"fields":[
		{"id":1,"name":"a","required":true,"type":"int","doc":"two\nlines"},
		{"id":2,"name":"b","required":false,"type":"decimal(9,2)"},
		{"id":3,"name":"c","required":false,"type":{"type":"struct","fields":[{"id":4,"name":"x","required":false,"type":"timestamptz"},
			{"id":5,"name":"y","required":false,"type":{"type":"list","element-id":6,"element-required":false,"element":"uuid"}}]}},
		{"id":7,"name":"d","required":false,"type":{"type":"map","key-id":8,"key":"string","value-id":9,"value-required":false,"value":"fixed[3]"}},
		{"id":10,"name":"e","required":false,"type":"time","doc":"` + strings.Repeat("ü", 300) + `"}]}`), Properties: map[string]string{"comment": "of the table"}}
	tbl, err := s.c.Create(t.Context(), catalog.Ident{"demo", "types"}, spec)
	require.NoError(t, err)
	reqs := []byte(`[{"type":"assert-table-uuid","uuid":"` + tbl.UUID + `"}]`)
	_, err = s.c.Commit(t.Context(), tbl.Ident, reqs, []byte(`[{"action":"add-schema","last-column-id":11,"schema":{"type":"struct","schema-id":1,"fields":[
		{"id":11,"name":"f","required":false,"type":"date"},{"id":1,"name":"a","required":true,"type":"long"}]}},{"action":"set-current-schema","schema-id":-1}]`))
	require.NoError(t, err)
	in := s.srv.Table("demo", "types")
	assert.Equal(t, "of the table", in["Description"])
	type column struct{ name, kind, comment, current string }
	var got []column
	for _, c := range in["StorageDescriptor"].(map[string]any)["Columns"].([]any) {
		m := c.(map[string]any)
		comment, _ := m["Comment"].(string)
		got = append(got, column{m["Name"].(string), m["Type"].(string), comment, m["Parameters"].(map[string]any)["iceberg.field.current"].(string)})
	}
	assert.Equal(t, []column{
		{"f", "date", "", "true"},
		{"a", "bigint", "two lines", "true"},
		{"b", "decimal(9,2)", "", "false"},
		{"c", "struct<x:timestamp,y:array<string>>", "", "false"},
		{"d", "map<string,binary>", "", "false"},
		{"e", "string", strings.Repeat("ü", 255), "false"},
	}, got)
}
