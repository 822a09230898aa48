package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// publishing is a table with staged snapshots.
type publishing struct {
	*harness.Cluster
	t    *testing.T
	name string
}

func newPublishing(t *testing.T, c *harness.Cluster, name, version string) *publishing {
	p := &publishing{c, t, name}
	c.SQL("CREATE TABLE lake.w." + name + " (id BIGINT, g INTEGER) PARTITIONED BY (g) WITH ('write.wap.enabled' = 'true', 'format-version' = '" + version + "'); INSERT INTO lake.w." + name +
		" SELECT i, CAST(i % 2 AS INTEGER) FROM range(10) r(i)")
	return p
}

func (p *publishing) sql(text string, args ...string) [][]string {
	return p.SQL(fmt.Sprintf(text, "lake.w."+p.name), args...)
}

// stage runs a statement under a wap.id, and answers the snapshot that it has made.
func (p *publishing) stage(id, text string) table.Snapshot {
	p.sql(text, "--set", "signet.wap_id="+id)
	md := p.Table("w", p.name).Metadata
	s := md.Snapshots()[len(md.Snapshots())-1]
	require.Equal(p.t, id, s.Summary.Properties["wap.id"])
	return s
}

func (p *publishing) count(where string) string {
	return p.sql("SELECT count(*) FROM %s WHERE " + where)[0][0]
}

func (p *publishing) publish(id string) {
	p.SQL("CALL system.publish_changes('w." + p.name + "', '" + id + "')")
}

func (p *publishing) refuses(call string, words ...string) {
	p.t.Helper()
	before := p.Table("w", p.name).MetadataLocation
	for _, w := range words {
		p.Fail(1, fmt.Sprintf(call, "w."+p.name), w)
	}
	require.Equal(p.t, before, p.Table("w", p.name).MetadataLocation, "nothing is changed")
}

// What was staged while main was elsewhere is put on top of it, once: by a new snapshot with the same files (Iceberg's CherryPickOperation).
func TestCherryPick_OnTopOfAnotherSnapshot(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w")
	for _, version := range []string{"1", "2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			c.Use(t)
			p := newPublishing(t, c, "v"+version, version)
			a := p.stage("a", "INSERT INTO %s VALUES (100, 1), (101, 0)")
			b := p.stage("b", "INSERT INTO %s VALUES (200, 1)")
			p.sql("INSERT INTO %s VALUES (50, 0)")
			before := c.Table("w", p.name)
			require.Equal(t, "11", p.count("true"))

			row := c.SQL("CALL system.publish_changes('w."+p.name+"', 'a')", "--idempotency-key", "publish "+version)[0]
			after := c.Table("w", p.name)
			head := after.Metadata.CurrentSnapshot()
			require.Equal(t, []string{strconv.FormatInt(a.SnapshotID, 10), strconv.FormatInt(head.SnapshotID, 10)}, row)
			require.Equal(t, "13", p.count("true"))
			require.Equal(t, "2", p.count("id IN (100, 101)"))
			require.Equal(t, before.Metadata.CurrentSnapshot().SnapshotID, *head.ParentSnapshotID)
			require.Equal(t, before.Snapshots+1, after.Snapshots)
			sum := head.Summary.Properties
			require.Equal(t, "append", string(head.Summary.Operation))
			require.Equal(t, "a", sum["published-wap-id"])
			require.Equal(t, row[0], sum["source-snapshot-id"])
			require.Empty(t, sum["wap.id"])
			for key, want := range map[string]string{
				"added-data-files": "2", "added-records": "2", "total-records": "13", "total-data-files": "5", "changed-partition-count": "2",
				"added-files-size": a.Summary.Properties["added-files-size"],
			} {
				require.Equal(t, want, sum[key], key)
			}
			if version != "1" {
				require.Equal(t, before.Metadata.LastSequenceNumber()+1, head.SequenceNumber)
			}
			if version == "3" {
				require.Equal(t, before.Metadata.NextRowID(), *head.FirstRowID)
				require.EqualValues(t, 2, *head.AddedRows)
				require.Equal(t, before.Metadata.NextRowID()+2, after.Metadata.NextRowID())
			}
			require.EqualValues(t, 13, after.Records)

			// The same key is the same call; another one is refused, whichever way it names the snapshot.
			again := c.SQL("CALL system.publish_changes('w."+p.name+"', 'a')", "--idempotency-key", "publish "+version)[0]
			require.Equal(t, row, again)
			p.refuses("CALL system.publish_changes('%s', 'a')", "on the main branch already", "has its changes")
			p.refuses("CALL system.cherrypick_snapshot('%s', "+row[0]+")", "on the main branch already")
			p.refuses("CALL system.cherrypick_snapshot('%s', "+row[1]+")", "it is an ancestor of the current one")
			p.refuses("CALL system.cherrypick_snapshot('%s', 5)", "snapshot 5")

			c.SQL(fmt.Sprintf("CALL system.cherrypick_snapshot(table => 'w.%s', snapshot_id => %d)", p.name, b.SnapshotID))
			require.Equal(t, "14", p.count("true"))
			require.Equal(t, "b", c.Table("w", p.name).Metadata.CurrentSnapshot().Summary.Properties["published-wap-id"])
			c.NoOrphans("w", p.name)
		})
	}
}

// Appends that come meanwhile are no conflict: what is published goes on top of them.
func TestCherryPick_BesideAppends(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w")
	p := newPublishing(t, c, "t", "2")
	const n = 4
	for i := range n {
		p.stage(fmt.Sprintf("w%d", i), fmt.Sprintf("INSERT INTO %%s VALUES (%d, 7)", 1000+i))
	}
	p.sql("INSERT INTO %s VALUES (50, 0)")
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { p.publish(fmt.Sprintf("w%d", i)) })
		wg.Go(func() { p.sql(fmt.Sprintf("INSERT INTO %%s VALUES (%d, 8)", 2000+i)) })
	}
	wg.Wait()
	require.Equal(t, strconv.Itoa(n), p.count("g = 7"))
	require.Equal(t, strconv.Itoa(n), p.count("g = 8"))
	require.Equal(t, strconv.Itoa(11+2*n), p.count("true"))

	// Of those who publish one snapshot at the same time one does.
	staged := p.stage("same", "INSERT INTO %s VALUES (3000, 9)")
	p.sql("INSERT INTO %s VALUES (51, 0)")
	results := make([]harness.Result, n)
	for i := range n {
		wg.Go(func() {
			call := "CALL system.publish_changes('w.t', 'same')"
			if i%2 == 1 {
				call = fmt.Sprintf("CALL system.cherrypick_snapshot('w.t', %d)", staged.SnapshotID)
			}
			results[i] = c.Run("sql", "--quiet", call)
		})
	}
	wg.Wait()
	landed := 0
	for _, r := range results {
		if r.Code == 0 {
			landed++
			continue
		}
		require.Contains(t, r.Err, "already")
	}
	require.Equal(t, 1, landed)
	require.Equal(t, "1", p.count("g = 9"))
	c.NoOrphans("w", p.name)
}

// An overwrite of the partitions that it writes is put on another snapshot as long as nobody else has changed those.
func TestCherryPick_OverwriteOfPartitions(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w")
	overwrite := "INSERT OVERWRITE PARTITIONS INTO %s SELECT 500 AS id, CAST(1 AS INTEGER) AS g"
	for _, version := range []string{"2", "3"} {
		t.Run("v"+version, func(t *testing.T) {
			c.Use(t)
			p := newPublishing(t, c, "over"+version, version)
			p.sql("ALTER TABLE %s SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
			s := p.stage("o", overwrite)
			p.sql("INSERT INTO %s VALUES (50, 0)")
			p.sql("DELETE FROM %s WHERE id IN (1, 2)") // a row of a file that goes, and one of another
			p.publish("o")
			require.Equal(t, "1", p.count("g = 1"))
			require.Equal(t, "5", p.count("g = 0"))
			head := c.Table("w", p.name).Metadata.CurrentSnapshot()
			require.Equal(t, "overwrite", string(head.Summary.Operation))
			require.Equal(t, strconv.FormatInt(s.SnapshotID, 10), head.Summary.Properties["source-snapshot-id"])
			require.Equal(t, "1", head.Summary.Properties["deleted-data-files"])
			c.NoOrphans("w", p.name)
		})
	}
	c.Use(t)
	p := newPublishing(t, c, "conflicts", "2")
	p.stage("o", overwrite)
	p.stage("q", "INSERT OVERWRITE PARTITIONS INTO %s SELECT 600 AS id, CAST(9 AS INTEGER) AS g")
	p.sql("INSERT INTO %s VALUES (50, 1)")
	p.refuses("CALL system.publish_changes('%s', 'o')", "added data file", "run the statement of snapshot")
	p.publish("q")
	require.Equal(t, "1", p.count("g = 9"))
	p.stage("r", overwrite)
	p.sql("DELETE FROM %s WHERE g = 1")
	p.refuses("CALL system.publish_changes('%s', 'r')", "is not in the table any more")

	for id, statement := range map[string]string{
		"d": "DELETE FROM %s WHERE id < 5", "u": "UPDATE %s SET id = -id WHERE g = 0", "f": "INSERT OVERWRITE %s SELECT 7 AS id, CAST(0 AS INTEGER) AS g", "x": "TRUNCATE TABLE %s",
	} {
		p.stage(id, statement)
	}
	p.sql("INSERT INTO %s VALUES (51, 5)")
	for _, id := range []string{"d", "u", "f", "x"} {
		p.refuses("CALL system.publish_changes('%s', '"+id+"')", "run its statement again")
	}
}

// Columns, partitions and files may be others by the time that a snapshot is published.
func TestCherryPick_MeanwhileTheTableChanges(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w")
	p := newPublishing(t, c, "t", "2")
	p.stage("a", "INSERT INTO %s VALUES (100, 1), (101, 3)")
	p.sql("ALTER TABLE %s ADD COLUMN extra VARCHAR, RENAME COLUMN id TO key, ALTER COLUMN g TYPE BIGINT")
	p.sql("ALTER TABLE %s REPLACE PARTITION FIELD g WITH bucket(4, key)")
	p.sql("INSERT INTO %s VALUES (50, 0, 'x')")
	p.publish("a")
	require.Equal(t, "2", p.count("key >= 100 AND extra IS NULL"))
	require.Equal(t, "1", p.count("key = 101 AND g = 3"))
	require.Equal(t, "13", p.count("true"))

	// A column that the files lack and the table demands.
	v3 := newPublishing(t, c, "demands", "3")
	v3.stage("a", "INSERT INTO %s VALUES (100, 1)")
	v3.sql("ALTER TABLE %s ADD COLUMN n INTEGER NOT NULL DEFAULT 5")
	v3.sql("INSERT INTO %s (id, g, n) VALUES (50, 0, 1)")
	v3.publish("a")
	require.Equal(t, "1", v3.count("id = 100 AND n = 5"))

	// A version that came between.
	for _, v := range [][2]string{{"1", "2"}, {"1", "3"}, {"2", "3"}} {
		up := newPublishing(t, c, "up"+v[0]+v[1], v[0])
		up.stage("a", "INSERT INTO %s VALUES (100, 1), (102, 1)")
		up.sql("INSERT INTO %s VALUES (50, 0)")
		up.sql("ALTER TABLE %s SET TBLPROPERTIES ('format-version' = '" + v[1] + "')")
		up.publish("a")
		require.Equal(t, "2", up.count("id >= 100"))
		require.Equal(t, "13", up.count("true"))
		up.sql("DELETE FROM %s WHERE id = 100")
		require.Equal(t, "12", up.count("true"))
	}

	// The staged snapshot has expired, or its files were removed behind the table's back.
	gone := newPublishing(t, c, "gone", "2")
	s := gone.stage("a", "INSERT INTO %s VALUES (100, 1)")
	gone.stage("b", "INSERT INTO %s VALUES (101, 1)")
	gone.sql("INSERT INTO %s VALUES (50, 0)")
	c.SQL(fmt.Sprintf("CALL system.expire_snapshots(table => 'w.gone', snapshot_ids => ARRAY[%d])", s.SnapshotID))
	gone.refuses("CALL system.publish_changes('%s', 'a')", `no snapshot with the wap.id "a"`)
	gone.publish("b")
	require.Equal(t, "12", gone.count("true"))

	// Rows that were published, and removed, and whose snapshots have expired, do not come back.
	back := newPublishing(t, c, "back", "2")
	s = back.stage("a", "INSERT INTO %s VALUES (100, 1)")
	back.sql("INSERT INTO %s VALUES (50, 0)")
	back.publish("a")
	published := c.Table("w", "back").Metadata.CurrentSnapshot().SnapshotID
	back.sql("DELETE FROM %s WHERE g = 1")
	c.SQL(fmt.Sprintf("CALL system.expire_snapshots(table => 'w.back', snapshot_ids => ARRAY[%d])", published))
	back.refuses(fmt.Sprintf("CALL system.cherrypick_snapshot('%%s', %d)", s.SnapshotID), "its rows are not brought back")

	// And those that are there are not there twice.
	twice := newPublishing(t, c, "twice", "2")
	s = twice.stage("a", "INSERT INTO %s VALUES (100, 1)")
	twice.sql("INSERT INTO %s VALUES (50, 0)")
	twice.publish("a")
	published = c.Table("w", "twice").Metadata.CurrentSnapshot().SnapshotID
	twice.sql("INSERT INTO %s VALUES (51, 0)")
	c.SQL(fmt.Sprintf("CALL system.expire_snapshots(table => 'w.twice', snapshot_ids => ARRAY[%d])", published))
	twice.refuses(fmt.Sprintf("CALL system.cherrypick_snapshot('%%s', %d)", s.SnapshotID), "already: its rows would be there twice")
	c.NoOrphans("w", "twice")
}

// The journal is lost, and with it that the call was made: its key finds the snapshot in the table. A key of another statement does not pass for one (S64).
func TestCherryPick_FoundByItsKey_S64(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w")
	p := newPublishing(t, c, "t", "2")
	p.stage("a", "INSERT INTO %s VALUES (100, 1)")
	p.stage("b", "INSERT INTO %s VALUES (101, 1)")
	p.sql("INSERT INTO %s VALUES (50, 0)", "--idempotency-key", "insert")
	call := func(id, key string) harness.Result {
		return c.Run("sql", "--quiet", "--output", "csv", "--idempotency-key", key, "CALL system.publish_changes('w.t', '"+id+"')")
	}
	first := call("a", "publish")
	require.Zero(t, first.Code, first.Err)
	c.Scheduler.Terminate(t)
	require.NoError(t, os.Remove(journalOf(c)))
	c.StartScheduler()
	c.AwaitExecutors(1)
	before := c.Table("w", "t")
	again := call("a", "publish")
	require.Zero(t, again.Code, again.Err)
	require.Equal(t, first.Out, again.Out)
	other := call("b", "insert")
	require.Equal(t, 1, other.Code)
	require.Contains(t, other.Err, "by another statement")
	require.Equal(t, before.MetadataLocation, c.Table("w", "t").MetadataLocation)
	fresh := call("b", "publish b")
	require.Zero(t, fresh.Code, fresh.Err)
	require.Equal(t, "13", p.count("true"))
}

// A published snapshot and its source share files: each keeps them when the other expires, and they go with the last (apache/iceberg#744).
func TestCherryPick_ExpiryOfOneKeepsTheFilesOfTheOther(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.w")
	expire := func(name string, snapshot int64) {
		c.SQL(fmt.Sprintf("CALL system.expire_snapshots(table => 'w.%s', snapshot_ids => ARRAY[%d])", name, snapshot))
	}
	p := newPublishing(t, c, "source", "2")
	staged := p.stage("a", "INSERT INTO %s VALUES (100, 4)")
	p.sql("INSERT INTO %s VALUES (50, 0)")
	p.publish("a")
	expire(p.name, staged.SnapshotID)
	require.Equal(t, "100", p.sql("SELECT sum(id) FROM %s WHERE g = 4")[0][0])

	p = newPublishing(t, c, "published", "2")
	staged = p.stage("a", "INSERT INTO %s VALUES (100, 4)")
	p.sql("INSERT INTO %s VALUES (50, 0)")
	p.publish("a")
	published := c.Table("w", p.name).Metadata.CurrentSnapshot().SnapshotID
	p.sql("DELETE FROM %s WHERE g = 4")
	expire(p.name, published)
	at := strconv.FormatInt(staged.SnapshotID, 10)
	require.Equal(t, "100", p.sql("SELECT sum(id) FROM %s FOR VERSION AS OF " + at + " WHERE g = 4")[0][0])
	files := len(filesBelow(t, c.Dir+"/warehouse"))
	expire(p.name, staged.SnapshotID)
	require.Less(t, len(filesBelow(t, c.Dir+"/warehouse")), files)
	require.Equal(t, "11", p.count("true"))
	c.NoOrphans("w", p.name)
}
