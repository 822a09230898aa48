package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

const farAway = "older_than => TIMESTAMP '2999-01-01'"

// expirable is a cluster with a table of four snapshots, of which a rollback has left two without use.
func expirable(t *testing.T, env ...string) (*harness.Cluster, []string) {
	c := harness.New(t, harness.Options{Executors: 1, SchedulerEnv: env})
	c.SQL("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t AS SELECT 1 AS id; INSERT INTO lake.s.t VALUES (2); INSERT INTO lake.s.t VALUES (3)")
	var ids []string
	for _, r := range c.SQL("SHOW SNAPSHOTS FROM lake.s.t") {
		ids = append(ids, r[1])
	}
	require.Len(t, ids, 3)
	c.SQL("CALL system.rollback_to_snapshot('s.t', " + ids[0] + "); INSERT INTO lake.s.t VALUES (4)")
	return c, ids
}

func TestMaintenance_ExpireSnapshots(t *testing.T) {
	t.Parallel()
	c, ids := expirable(t)
	dry := c.SQL("CALL system.expire_snapshots('s.t', " + farAway + ", dry_run => true)")
	require.Len(t, dry, 3)
	require.Equal(t, 4, c.Table("s", "t").Snapshots, "a dry run removes nothing")
	c.SQL("ALTER TABLE lake.s.t CREATE TAG keep AS OF VERSION " + ids[1])
	c.Fail(1, "CALL system.expire_snapshots('s.t', snapshot_ids => ARRAY["+ids[1]+"])", "keep points to")
	// The third goes; the first is the current one's parent, and the tag keeps the second.
	require.Equal(t, [][]string{{"1", "0", "0", "1", "1", "0", "1"}}, c.SQL("CALL system.expire_snapshots('s.t', snapshot_ids => ARRAY["+ids[2]+"])"))
	require.Equal(t, 3, c.Table("s", "t").Snapshots)
	c.SQL("ALTER TABLE lake.s.t DROP TAG keep")
	require.Equal(t, [][]string{{"1", "0", "0", "1", "2", "0", "2"}}, c.SQL("CALL system.expire_snapshots(table => 's.t', "+farAway+", retain_last => 1)"))
	after := c.Table("s", "t")
	require.Equal(t, 1, after.Snapshots)
	require.Empty(t, after.Orphans)
	require.Len(t, after.Files, 2)
	require.Equal(t, [][]string{{"1"}, {"4"}}, c.SQL("SELECT id FROM lake.s.t ORDER BY id"))
	require.Equal(t, [][]string{{"0", "0", "0", "0", "0", "0", "0"}}, c.SQL("CALL system.expire_snapshots('s.t', "+farAway+")"))
	c.SQL("ALTER TABLE lake.s.t SET TBLPROPERTIES ('gc.enabled' = 'false')")
	c.Fail(1, "CALL system.expire_snapshots('s.t', "+farAway+")", "gc.enabled is false")
	c.Fail(1, "CALL system.remove_orphan_files('s.t')", "gc.enabled is false")
}

// The scheduler dies between the commit of an expiry and the end of its deletions, at each step: nothing is left, and nothing is missing.
func TestMaintenance_ExpiryOverCrashes(t *testing.T) {
	t.Parallel()
	points := []string{"scheduler.expire.after-commit", "upkeep.expire.before-remove", "scheduler.expire.before-done", "broker.alter.before", "broker.alter.after"}
	for _, point := range points {
		for _, passing := range []int{0, 2} {
			if passing > 0 && point != "upkeep.expire.before-remove" {
				continue
			}
			t.Run(point, func(t *testing.T) {
				faults := harness.NewFaults(t)
				env := faults.Env(points...)
				c, _ := expirable(t, env)
				faults.Arm(t, point, passing)
				answer := make(chan error, 1)
				go func() {
					cl, err := client.Dial(c.Address, client.WithRetry(harness.Patience))
					if err != nil {
						answer <- err
						return
					}
					defer cl.Close()
					_, err = cl.Exec(harness.Context(t), "CALL system.expire_snapshots('s.t', "+farAway+")", client.WithIdempotencyKey("expire"))
					answer <- err
				}()
				c.Scheduler.Wait(t)
				require.True(t, c.Scheduler.Killed())
				faults.Disarm(t, point)
				c.StartScheduler(env)
				require.NoError(t, <-answer)
				after := c.Table("s", "t")
				require.Equal(t, 1, after.Snapshots)
				require.Empty(t, after.Orphans)
				require.Len(t, after.Files, 2)
				c.AwaitExecutors(1)
				require.Equal(t, [][]string{{"1"}, {"4"}}, c.SQL("SELECT id FROM lake.s.t ORDER BY id"))
			})
		}
	}
}

// Only old files that no metadata names go, and none of another table, wherever it lies.
func TestMaintenance_RemoveOrphanFiles(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t AS SELECT 1 AS id; CREATE TABLE lake.s.t2 AS SELECT 2 AS id")
	home := filepath.Join(c.Dir, "warehouse", "s", "t")
	old := time.Now().Add(-10 * 24 * time.Hour)
	put := func(path string, at time.Time) string {
		path = filepath.Join(home, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
		return path
	}
	stray := []string{put("data/stray.parquet", old), put("metadata/stray.avro", old)}
	young := put("data/young.parquet", time.Now())
	nested := []string{put("nested/data/a.parquet", old), put("nested/metadata/v1.metadata.json", old)}
	sibling := put("../t2/data/old.parquet", old)
	require.NoError(t, filepath.Walk(home, func(path string, fi os.FileInfo, err error) error { // the table's own files are old, too
		if err == nil && !fi.IsDir() && path != young {
			err = os.Chtimes(path, old, old)
		}
		return err
	}))
	dry := c.SQL("CALL system.remove_orphan_files('s.t', dry_run => true)")
	require.Len(t, dry, 2)
	for _, p := range stray {
		require.FileExists(t, p)
	}
	c.Fail(1, "CALL system.remove_orphan_files('s.t', location => '"+filepath.Dir(home)+"')", "is none of the table's")
	require.Empty(t, c.SQL("CALL system.remove_orphan_files('s.t', location => '"+home+"/nested')"))
	require.Equal(t, dry, c.SQL("CALL system.remove_orphan_files(table => 's.t')"))
	for _, p := range stray {
		require.NoFileExists(t, p)
	}
	for _, p := range append(nested, young, sibling) {
		require.FileExists(t, p)
	}
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.s.t"))
	require.Len(t, c.SQL("CALL system.remove_orphan_files('s.t', older_than => TIMESTAMP '2999-01-01', force => true)"), 1)
	require.NoFileExists(t, young)
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.s.t"))
}
