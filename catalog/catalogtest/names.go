package catalogtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

func testNamespaces(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	none, err := c.Namespaces(ctx)
	require.NoError(t, err)
	require.Empty(t, none)
	want := [][]string{{"b"}, {"a", "x"}, {"a"}, {"a.x"}}
	if q.FlatDots {
		want = [][]string{{"b"}, {"a"}, {"a", "x"}}
		if !q.DotsAlias {
			require.ErrorIs(t, c.CreateNamespace(ctx, []string{"a.x"}, false), catalog.ErrPermanent)
		}
	}
	if q.OneLevel {
		want = [][]string{{"b"}, {"a"}, {"a.x"}}
		for _, refused := range [][]string{{"a", "x"}, {"A"}} {
			require.ErrorIs(t, c.CreateNamespace(ctx, refused, false), catalog.ErrPermanent)
		}
	}
	for _, ns := range want {
		require.NoError(t, c.CreateNamespace(ctx, ns, false))
		require.ErrorIs(t, c.CreateNamespace(ctx, ns, false), catalog.ErrExists)
		require.NoError(t, c.CreateNamespace(ctx, ns, true))
	}
	require.ErrorIs(t, c.CreateNamespace(ctx, nil, true), catalog.ErrPermanent)
	got, err := c.Namespaces(ctx)
	require.NoError(t, err)
	slices.SortFunc(want, slices.Compare)
	assert.Equal(t, want, got)

	in := []string{"a", "x"}
	if q.OneLevel {
		in = []string{"a.x"}
	}
	idents := []catalog.Ident{append(slices.Clone(in), "2"), append(slices.Clone(in), "1")}
	if !q.FlatDots && !q.OneLevel {
		idents = append(idents, catalog.Ident{"a.x", "3"})
	}
	for _, id := range idents {
		_, err := c.Create(ctx, id, Spec())
		require.NoError(t, err)
	}
	tables, err := c.Tables(ctx, in)
	require.NoError(t, err)
	assert.Equal(t, []catalog.Ident{idents[1], idents[0]}, tables)
	tables, err = c.Tables(ctx, []string{"a"})
	require.NoError(t, err)
	assert.Empty(t, tables)
}

// oddNames are kept apart by a careful catalog only. (X5 has the same characters in file names.)
var oddNames = []string{
	"t", "T", "a b", "a%20b", "a+b", "ä", "日本", "a.b", "a/b", "a/../b", "..", ".", "~2e", "'", `"`, `""`, "a\\b", "#", "?", "*", "%", "t-00000000",
	"\n", "metadata", "data", "[1]", "{b,c}", "k=v", ";--", "\u202e", "😎", strings.Repeat("ü", 40),
}

// onlyPlain keeps the names that a catalog of PlainNames takes. Of the others it makes a table that is found again, or none.
func onlyPlain(t *testing.T, c catalog.Catalog, names []string) []string {
	t.Helper()
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, true))
	var plain []string
	for _, n := range names {
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" {
			plain = append(plain, n)
			continue
		}
		id := catalog.Ident{"demo", n}
		made, err := c.Create(t.Context(), id, Spec())
		now, loaded := c.Load(t.Context(), id)
		if err != nil {
			require.Error(t, loaded, "%q", n)
			continue
		}
		require.NoError(t, loaded, "%q", n)
		require.Equal(t, made.UUID, now.UUID)
		require.NoError(t, c.Drop(t.Context(), id))
	}
	tables, err := c.Tables(t.Context(), []string{"demo"})
	require.NoError(t, err)
	require.Empty(t, tables)
	return plain
}

func testOddNames(t *testing.T, c catalog.Catalog, q Quirks) {
	ctx := t.Context()
	seen := map[string]string{}
	var idents []catalog.Ident
	names := slices.Clone(oddNames)
	if q.StepNames {
		for _, step := range []string{".", ".."} {
			for _, id := range []catalog.Ident{{"demo", step}, {step, "t"}} {
				_, err := c.Create(ctx, id, Spec())
				require.ErrorIs(t, err, catalog.ErrPermanent, "%q", id)
				require.ErrorIs(t, c.Drop(ctx, id), catalog.ErrPermanent, "%q", id)
			}
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == "." || n == ".." })
	}
	if q.NoSlashes {
		names = slices.DeleteFunc(names, func(n string) bool { return strings.ContainsAny(n, "/\\%\n") })
	}
	if q.FlatDots {
		names = slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, ".") })
	}
	if q.LowerCase {
		for _, n := range []string{"T", "\n"} {
			_, err := c.Create(ctx, catalog.Ident{"demo", n}, Spec())
			require.ErrorIs(t, err, catalog.ErrPermanent, "%q", n)
			names = slices.DeleteFunc(names, func(have string) bool { return have == n })
		}
	}
	if q.PlainNames {
		names = onlyPlain(t, c, names)
	}
	for i, n := range names {
		ns := names[(i+7)%len(names)]
		if idents = append(idents, catalog.Ident{"demo", n}); q.OneLevel {
			idents = append(idents, catalog.Ident{n, ns})
			continue
		}
		idents = append(idents, catalog.Ident{n, ns, n})
	}
	for _, id := range idents {
		for n := range id.Namespace() {
			if last := n == len(id)-2; last || q.ParentsFirst {
				require.NoError(t, c.CreateNamespace(ctx, id[:n+1], true), "%q", id)
			}
		}
		tbl, err := c.Create(ctx, id, Spec())
		require.NoError(t, err, "%q", id)
		if other, dup := seen[tbl.Location]; dup {
			t.Fatalf("%q and %s share %s", id, other, tbl.Location)
		}
		seen[tbl.Location] = id.String()
		if !q.OwnPlaces {
			assert.Regexp(t, `^(file:///|s3://|gs://|abfss://).*/[A-Za-z0-9_~.-]+/[A-Za-z0-9_~-]+$`, tbl.Location, "every engine reads this path the same way")
		}
	}
	// No location lies in another, and every table is still itself.
	for a := range seen {
		for b := range seen {
			if _, err := storage.Below(a, b); err == nil && a != b {
				t.Errorf("%s lies in %s", b, a)
			}
		}
	}
	for _, id := range idents {
		tbl, err := c.Load(ctx, id)
		require.NoError(t, err, "%q", id)
		assert.Equal(t, id.String(), seen[tbl.Location])
	}
	namespaces, err := c.Namespaces(ctx)
	require.NoError(t, err)
	for _, id := range idents {
		assert.True(t, slices.ContainsFunc(namespaces, func(ns []string) bool { return slices.Equal(ns, id.Namespace()) }), "%q", id)
		require.NoError(t, c.Drop(ctx, id))
	}
}
