package e2e_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	iceberg "github.com/apache/iceberg-go"
	icebergsql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// change has another engine, iceberg-go, change lake.h.t through the same catalog.
func (h *held) change(do func(*table.Transaction) error) {
	h.t.Helper()
	h.changeTable("t", do)
}

func (h *held) changeTable(name string, do func(*table.Transaction) error) {
	h.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.Dir, "catalog.db")+"?_pragma=busy_timeout(10000)")
	require.NoError(h.t, err)
	defer db.Close()
	cat, err := icebergsql.NewCatalog("lake", db, icebergsql.SQLite, iceberg.Properties{"warehouse": "file://" + h.Dir + "/warehouse"})
	require.NoError(h.t, err)
	tbl, err := cat.LoadTable(harness.Context(h.t), table.Identifier{"h", name})
	require.NoError(h.t, err)
	tx := tbl.NewTransaction()
	require.NoError(h.t, do(tx))
	_, err = tx.Commit(harness.Context(h.t))
	require.NoError(h.t, err)
}

func appendIDs(t *testing.T, ids ...int64) func(*table.Transaction) error {
	return func(tx *table.Transaction) error {
		schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		b.Field(0).(*array.Int64Builder).AppendValues(ids, nil)
		rec := b.NewRecordBatch()
		defer rec.Release()
		data := array.NewTableFromRecords(schema, []arrow.RecordBatch{rec})
		defer data.Release()
		return tx.AppendTable(harness.Context(t), data, 1024, nil)
	}
}

// What happens to a table between the planning of a write and its commit (C19, C28 to C32, S23): what can be kept is kept, the rest is refused.
func TestMeanwhile_TheTableChanges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change  func(h *held)
		refused string                      // part of the reason, where the job must fail
		check   func(t *testing.T, h *held) // after success
	}{
		"another engine appends": {
			change: func(h *held) { h.change(appendIDs(h.t, 50, 51)) },
			check: func(t *testing.T, h *held) {
				require.Len(t, idsOf(t, h.Table("h", "t")), 7)
				require.Equal(t, 2, h.Table("h", "t").Snapshots)
			},
		},
		"an optional column is added and one renamed": {
			change: func(h *held) {
				h.change(func(tx *table.Transaction) error {
					return tx.UpdateSchema(true, false).AddColumn([]string{"note"}, iceberg.StringType{}, "", false, nil).RenameColumn([]string{"id"}, "key").Commit()
				})
			},
			check: func(t *testing.T, h *held) {
				require.Equal(t, []string{"5", "15", "0"}, h.SQL("SELECT count(*), sum(key), count(note) FROM lake.h.t")[0])
			},
		},
		"the partition spec changes": {
			change: func(h *held) {
				h.change(func(tx *table.Transaction) error {
					return tx.UpdateSpec(true).AddField("id", iceberg.BucketTransform{NumBuckets: 4}, "b").Commit()
				})
			},
			check: func(t *testing.T, h *held) {
				require.Len(t, idsOf(t, h.Table("h", "t")), 5)
				require.Equal(t, "5", h.Value("SELECT count(*) FROM lake.h.t"))
			},
		},
		"a required column is added": {
			change: func(h *held) {
				h.change(func(tx *table.Transaction) error {
					return tx.UpdateSchema(true, true).AddColumn([]string{"must"}, iceberg.StringType{}, "", true, nil).Commit()
				})
			},
			refused: "must",
		},
		"the table is dropped": {change: func(h *held) { h.SQL("DROP TABLE lake.h.t") }, refused: "lake.h.t"},
		"the table is dropped and made again": {
			change:  func(h *held) { h.SQL("DROP TABLE lake.h.t; CREATE TABLE lake.h.t (id BIGINT)") },
			refused: "UUID",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t, "scheduler.root.before-commit=1*pause(${gate})")
			id := h.submit("")
			h.awaitPhase(id, "root")
			harness.Eventually(t, "its rows are written", func() bool { return len(h.Table("h", "t").DataOrphans()) == 1 })
			tc.change(h)
			h.open()
			job := h.end(id)
			if tc.refused == "" {
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job.GetState(), job.GetError())
				tc.check(t, h)
				require.Len(t, h.Table("h", "t").Markers, 1)
				h.NoOrphans("h", "t")
				return
			}
			require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, job.GetState())
			require.Contains(t, job.GetError().GetMessage(), "Error running the job's scheduler root")
			require.Contains(t, job.GetError().GetMessage(), tc.refused)
			if tab := h.Table("h", "t"); tab.Exists {
				require.Zero(t, tab.Snapshots)
				require.Empty(t, tab.Markers)
			}
			var left []string
			swept := harness.Soon(harness.Patience, func() bool {
				found, err := filepath.Glob(filepath.Join(h.Dir, "warehouse/h/*/data/*/*/*/*/*.parquet"))
				require.NoError(t, err)
				left = found
				return len(left) == 0
			})
			require.True(t, swept, "left over: %s", strings.Join(left, "\n"))
		})
	}
}

// Many make the same table at once: one does, the others are told that it exists, and their files are removed.
func TestMeanwhile_ManyCreateOneTable(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 2})
	s := &crashStage{Cluster: c}
	c.SQL("CREATE SCHEMA lake.h")
	const jobs = 6
	errs := make(chan error)
	for i := range jobs {
		go func() {
			errs <- s.execute(t, "", "CREATE TABLE lake.h.t AS SELECT i AS id FROM range("+strings.Repeat("1", i+1)+") r(i)")
		}()
	}
	won := 0
	for range jobs {
		if err := <-errs; err == nil {
			won++
		} else {
			require.Regexp(t, "exists already|created by someone else", err.Error())
		}
	}
	require.Equal(t, 1, won)
	tab := c.Table("h", "t")
	require.Equal(t, 1, tab.Snapshots)
	require.Len(t, tab.Markers, 1)
	require.Len(t, idsOf(t, tab), int(tab.Records))
	(&held{Cluster: c, t: t}).requireSwept()
}

// What the sink iceberg cannot do yet is refused, not done in another way (C22).
func TestMeanwhile_OtherWritesAreRefused(t *testing.T) {
	t.Parallel()
	c := newKeyed(t)
	c.SQL("INSERT INTO lake.i.t VALUES (1)")
	before := c.Table("i", "t").MetadataLocation
	for _, q := range []string{
		"INSERT OR REPLACE INTO lake.i.t SELECT 2 AS id",
		"INSERT INTO lake.i.t SELECT 2 AS id ON CONFLICT DO NOTHING", "INSERT INTO lake.i.t DEFAULT VALUES",
		"MERGE INTO lake.i.t USING lake.i.t s ON true WHEN MATCHED THEN DELETE RETURNING 1", "ALTER TABLE lake.i.t ADD CONSTRAINT x CHECK (true)",
		"CREATE TABLE lake.i.u (i BIGINT) WITH ('signet.landed.default' = 'x:1')",
	} {
		c.Fail(1, q)
	}
	require.Equal(t, before, c.Table("i", "t").MetadataLocation)
	require.False(t, c.Table("i", "u").Exists)
}
