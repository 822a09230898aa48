package scheduler

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/scheduler/config"
)

// places is a scheduler with a Delta catalog, with a root and one further place.
func places(t *testing.T) (s *Server, e *catalogEntry, dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "more"), 0o700))
	cfg := config.Embedded(t.TempDir())
	cfg.Catalogs = map[string]config.Catalog{"d": {
		Type: config.CatalogDelta, Sink: config.CatalogDelta, Root: "file://" + dir + "/root", Properties: map[string]string{"s3.region": "eu-west-1"}, DataPaths: []string{"file://" + dir + "/more", "s3://bucket/tables"},
	}}
	s = &Server{cfg: cfg, log: slog.New(slog.DiscardHandler), catalogs: map[string]*catalogEntry{}}
	var err error
	s.sources, err = newSources(cfg, s.log)
	require.NoError(t, err)
	require.NoError(t, s.openCatalogs(t.Context()))
	return s, s.catalogs["d"], dir
}

func TestPlaced(t *testing.T) {
	s, e, dir := places(t)
	for place, want := range map[string]catalog.Ident{
		dir + "/root/s/t":                   {"s", "t"},
		"file://" + dir + "/root/s/t/":      {"s", "t"},
		"file:" + dir + "/root//a.b/my~20t": {"a", "b", "my t"},
		dir + "/root/s/my table":            {"file://" + dir + "/root/s/my table"}, // another engine's name
		dir + "/more/x/y/z":                 {"file://" + dir + "/more/x/y/z"},
		"s3a://bucket/tables/t":             {"s3://bucket/tables/t"},
	} {
		ident, err := s.placed(e, place)
		require.NoError(t, err, place)
		require.Equal(t, want, ident, place)
		again, err := s.placed(e, e.location(ident))
		require.NoError(t, err, place)
		require.Equal(t, want, again, "what is kept of a table means the same later")
	}
	for _, place := range []string{
		dir + "/root", dir + "/root/s", dir + "/root/s/t/deeper", dir + "/rooted/s/t", dir + "/moreover/t", dir + "/more/../root2/s/t", "/", "relative/t", "s3://bucket/tablespace/t",
		"s3://other/tables/t", "s3://bucket/tables/../t", "s3://user:pw@bucket/tables/t", "gs://bucket/tables/t", dir + "/more/t/_delta_log", dir + "/root/_hidden/t", dir + "/more/.dropped-x",
		s.cfg.DataDir + "/delta/s/t",
	} {
		_, err := s.placed(e, place)
		require.Error(t, err, place)
		require.NotContains(t, err.Error(), "pw")
	}
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "more", "link")))
	_, err := s.placed(e, dir+"/more/link/t")
	require.Error(t, err, "a link leads out")
}

// A table in no schema is for those who may do it in every schema.
func TestPlaced_Permissions(t *testing.T) {
	s, e, dir := places(t)
	c := s.cfg.Catalogs["d"]
	c.Permissions = []config.Permission{
		{Principals: []string{"all"}, Allow: []string{config.AllowRead}},
		{Principals: []string{"one"}, Allow: []string{config.AllowRead}, Schemas: []string{"s"}},
	}
	s.cfg.Catalogs["d"] = c
	for place, may := range map[string][]string{
		dir + "/root/s/t":        {"all", "one"},
		dir + "/root/s/my table": {"all", "one"},
		dir + "/root/o/t":        {"all"},
		dir + "/more/s/t":        {"all"},
	} {
		var got []string
		for _, who := range []string{"all", "one", "none"} {
			j := &job{owner: who, ctx: t.Context()}
			tbl, err := s.resolveTable([]string{"D", place}, j, toRead)
			if err == nil {
				got = append(got, who)
				require.Equal(t, e, tbl.entry)
				require.NoError(t, s.stillPermitted(who, j.rec.Does))
			}
		}
		require.Equal(t, may, got, place)
	}
}
