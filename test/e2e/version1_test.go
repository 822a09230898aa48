package e2e_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	iceberg "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// Tables of format version 1 are appended to, and stay of version 1; what removes rows is refused until they are upgraded.
func TestVersion1(t *testing.T) {
	t.Parallel()
	c, raw := newAddCluster(t)
	tableOfAnother(t, c, "t", "", iceberg.Properties{"format-version": "1"})
	require.Equal(t, 1, c.Table("x", "t").Metadata.Version())
	c.SQL("INSERT INTO lake.x.t VALUES (1), (2)")
	c.SQL("INSERT INTO lake.x.t SELECT i FROM range(10, 1010) r(i)")
	tab := c.Table("x", "t")
	require.Equal(t, 1, tab.Metadata.Version())
	require.Equal(t, 2, tab.Snapshots)
	require.EqualValues(t, 1002, tab.Records)
	require.Equal(t, []string{"1002", "499503"}, c.SQL("SELECT count(*), sum(id) - 9000 - 1000 FROM lake.x.t")[0])
	for _, text := range []string{
		"DELETE FROM lake.x.t WHERE id = 1", "UPDATE lake.x.t SET id = 1", "INSERT OVERWRITE lake.x.t VALUES (1)", "TRUNCATE TABLE lake.x.t", "CALL lake.system.rewrite_data_files('x.t')",
	} {
		c.Fail(1, text, "format version 1", "upgrade it")
	}
	require.Equal(t, tab.MetadataLocation, c.Table("x", "t").MetadataLocation)

	// Many at once: each lands, each once.
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for k := range 3 {
				r := c.Run("sql", "-q", fmt.Sprintf("INSERT INTO lake.x.t VALUES (%d)", -1-n*3-k))
				if r.Code != 0 {
					t.Errorf("%s", r.Err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, idsOf(t, c.Table("x", "t")), 1026)
	require.Equal(t, 26, c.Table("x", "t").Snapshots)

	c.SQL("CREATE TABLE lake.x.c PARTITIONED BY (bucket(4, id)) WITH ('format-version' = '1') AS SELECT i AS id FROM range(100) r(i)")
	require.Equal(t, 1, c.Table("x", "c").Metadata.Version())
	require.Equal(t, "100", c.Value("SELECT count(*) FROM lake.x.c"))
	exported(t, filepath.Join(raw, "a.parquet"), 0, compress.Codecs.Zstd)
	c.SQL("CREATE TABLE lake.x.a (id BIGINT, name VARCHAR, day DATE) WITH ('format-version' = '1')")
	c.SQL("ALTER TABLE lake.x.a ADD FILES FROM '" + raw + "/a.parquet'")
	c.Fail(1, "ALTER TABLE lake.x.a ADD FILES FROM '"+raw+"/a.parquet'", "already")
	require.Equal(t, "40000", c.Value("SELECT count(*) FROM lake.x.a"))

	c.SQL("ALTER TABLE lake.x.t SET TBLPROPERTIES ('format-version' = '2'); DELETE FROM lake.x.t WHERE id < 10; INSERT INTO lake.x.t VALUES (-5)")
	require.Equal(t, 2, c.Table("x", "t").Metadata.Version())
	require.Equal(t, "1001", c.Value("SELECT count(*) FROM lake.x.t"))
	c.NoOrphans("x", "t")
}
