package checkup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	catalogsql "github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/scheduler/checkup"
)

func target(t *testing.T, dir string) checkup.Target {
	return checkup.Target{Name: "lake", Warehouse: "file://" + dir, Open: func(ctx context.Context) (catalog.Catalog, error) {
		return catalogsql.Open(ctx, catalogsql.Options{Name: "lake", CatalogName: "lake", URI: "sqlite://" + filepath.Join(t.TempDir(), "c.db"), Warehouse: "file://" + dir})
	}}
}

func steps(t *testing.T, target checkup.Target) (ok bool, text string) {
	var b strings.Builder
	ok = checkup.Run(t.Context(), target, func(s checkup.Step) {
		assert.Equal(t, "lake", s.Catalog)
		b.WriteString(string(s.State) + " " + s.Name + "\n")
		if s.State == checkup.Failed {
			assert.NotEmpty(t, s.Detail)
			assert.NotEmpty(t, s.Fix)
		}
	})
	return ok, b.String()
}

func TestRun_TriesEverythingAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ok, text := steps(t, target(t, dir))
	assert.True(t, ok)
	assert.Equal(t, "ok open\nok list namespaces\nok open storage\nok write\nok write only what is not there\nok read\nok list\nok remove\nok permissions\n", text)
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestRun_TheFirstFailureEndsWhatDependsOnIt(t *testing.T) {
	x := target(t, t.TempDir())
	x.Open = func(context.Context) (catalog.Catalog, error) { return nil, errors.New("nobody is there") }
	ok, text := steps(t, x)
	assert.False(t, ok)
	assert.Equal(t, "failed open\nok permissions\n", text)

	x = target(t, t.TempDir())
	x.Warehouse = "main"
	ok, text = steps(t, x)
	assert.True(t, ok)
	assert.Equal(t, "ok open\nok list namespaces\nskipped storage\nok permissions\n", text)

	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	x = target(t, t.TempDir())
	x.Warehouse = "file://" + file
	ok, text = steps(t, x)
	assert.False(t, ok)
	assert.Contains(t, text, "failed write\n")
}
