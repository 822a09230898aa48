package sql_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/internal/fault"
)

// The test binary runs itself: fault points are armed by the environment, once for each process.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SQLCAT_TEST_DIR"); dir != "" {
		fmt.Println(child(dir, os.Getenv("SQLCAT_TEST_DO")))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child does one thing and says how it ended: landed, conflict, permanent, not-sent or unknown.
func child(dir, do string) string {
	ctx := context.Background()
	c, err := sql.Open(ctx, sql.Options{Name: "lake", URI: "sqlite://" + dir + "/catalog.db", Warehouse: dir + "/ware house"})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	id := catalog.Ident{"demo", "t"}
	var reqs, ups []byte
	switch do {
	case "create":
		_, err = c.Create(ctx, id, catalogtest.Spec())
	case "staged":
		reqs, ups = catalogtest.Staged("", "", 42)
		_, err = c.Commit(ctx, id, reqs, ups)
	default:
		tbl, lerr := c.Load(ctx, id)
		if lerr != nil {
			return lerr.Error()
		}
		reqs, ups = catalogtest.Append(tbl, 42)
		_, err = c.Commit(ctx, id, reqs, ups)
	}
	switch {
	case err == nil:
		return "landed"
	case errors.Is(err, catalog.ErrConflict):
		return "conflict"
	case errors.Is(err, catalog.ErrPermanent):
		return "permanent"
	case errors.Is(err, catalog.ErrNotSent):
		return "not-sent"
	}
	return "unknown"
}

func runChild(t *testing.T, dir, do, points string) (string, bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SQLCAT_TEST_DIR="+dir, "SQLCAT_TEST_DO="+do, fault.Env+"="+points)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err != nil && strings.Contains(err.Error(), "killed")
}

// TestFaults arms each point with an error: the answer is never more certain than what is known, and then the table tells.
func TestFaults(t *testing.T) {
	const lost = "=1*error(lost)"
	for name, tc := range map[string]struct {
		do, points, want string
		landed           bool
	}{
		"load fails":                        {"commit", "catalog.load.before-query=1*off->1*error(lost)", "not-sent", false},
		"metadata is not written":           {"commit", "catalog.commit.before-metadata" + lost, "not-sent", false},
		"metadata is written only":          {"commit", "catalog.commit.after-metadata" + lost, "not-sent", false},
		"sync fails":                        {"commit", "storage.put.before-sync" + lost, "not-sent", false},
		"request is lost":                   {"commit", "catalog.commit.before-swap" + lost, "unknown", false},
		"reply is lost, reload finds it":    {"commit", "catalog.commit.after-swap" + lost, "landed", true},
		"reply is lost, reload fails too":   {"commit", "catalog.commit.after-swap" + lost + ";catalog.commit.before-reload" + lost, "unknown", true},
		"create's reply is lost":            {"create", "catalog.create.after-insert" + lost, "landed", true},
		"create's request is lost":          {"create", "catalog.create.before-insert" + lost, "unknown", false},
		"staged create's reply is lost":     {"staged", "catalog.create.after-insert" + lost, "landed", true},
		"staged create, reload fails too":   {"staged", "catalog.create.after-insert" + lost + ";catalog.commit.before-reload" + lost, "unknown", true},
		"staged create's request is lost":   {"staged", "catalog.create.before-insert" + lost, "unknown", false},
		"staged create's metadata not made": {"staged", "catalog.commit.after-metadata" + lost, "not-sent", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir, tc.do)
			got, _ := runChild(t, dir, tc.do, tc.points)
			assert.Equal(t, tc.want, got)
			checkAfter(t, dir, tc.do, tc.landed, tc.want == "unknown" && !tc.landed)
		})
	}
}

// TestCrash kills the process at each point. Afterwards the table is whole, with the commit or without, and goes on.
func TestCrash(t *testing.T) {
	for point, landed := range map[string]bool{
		"catalog.commit.before-metadata": false, "storage.put.before-link": false, "catalog.commit.after-metadata": false,
		"catalog.commit.before-swap": false, "catalog.commit.after-swap": true,
		"catalog.create.before-insert": false, "catalog.create.after-insert": true,
	} {
		t.Run(point, func(t *testing.T) {
			dir, do := t.TempDir(), "commit"
			if strings.HasPrefix(point, "catalog.create") {
				do = "staged"
			}
			prepare(t, dir, do)
			_, killed := runChild(t, dir, do, point+"=kill")
			require.True(t, killed)
			checkAfter(t, dir, do, landed, true)
		})
	}
}

func prepare(t *testing.T, dir, do string) {
	t.Helper()
	c := openSQLite(t, dir)
	defer c.Close()
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	if do == "commit" {
		_, err := c.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
		require.NoError(t, err)
	}
}

func checkAfter(t *testing.T, dir, do string, landed, mayLeaveFile bool) {
	t.Helper()
	ctx := t.Context()
	c := openSQLite(t, dir)
	defer c.Close()
	tbl, err := c.Load(ctx, catalog.Ident{"demo", "t"})
	if do != "commit" && !landed {
		require.ErrorIs(t, err, catalog.ErrNotFound)
		tbl, err = c.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	}
	require.NoError(t, err)
	if do != "create" {
		assert.Equal(t, landed, tbl.Metadata.SnapshotByID(42) != nil)
	}
	files, err := filepath.Glob(strings.TrimPrefix(tbl.Location, "file://") + "/metadata/*.metadata.json")
	require.NoError(t, err)
	want := 1
	if landed && do == "commit" {
		want = 2
	}
	if !mayLeaveFile {
		assert.Len(t, files, want)
	}
	reqs, ups := catalogtest.Append(tbl, 43)
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
}
