package upkeep_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/scheduler/upkeep"
)

// X25: orphan removal over many objects of a bucket, in pages that may be empty, finds every one and nothing else, whatever requests fail meanwhile.
func TestOrphans_InABucket(t *testing.T) {
	s := objectstest.Start(t)
	stores, err := storage.NewOpener(storage.Root{Props: s.Props(), Source: objects.Static(s.Props())})
	require.NoError(t, err)
	c, err := sql.Open(t.Context(), sql.Options{Name: "lake", URI: "sqlite://" + filepath.Join(t.TempDir(), "c.db"), Warehouse: "s3://lake/wh", Stores: stores})
	require.NoError(t, err)
	defer c.Close()
	ctx := t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	var tables [2]*catalog.Table
	for i := range tables {
		tables[i], err = c.Create(ctx, catalog.Ident{"demo", fmt.Sprint("t", i)}, catalogtest.Spec())
		require.NoError(t, err)
	}
	client := s.Client(t)
	put := func(key string) string {
		_, err := client.Put(ctx, key, objects.Bytes(nil), objects.PutOptions{})
		require.NoError(t, err)
		return client.URI(key)
	}
	const n = 2_550
	var want []string
	for i := range n {
		want = append(want, put(fmt.Sprintf("wh/demo/t0/data/%04d.parquet", i)))
	}
	want = append(want, put("wh/demo/t0/metadata/stray.avro"))
	slices.Sort(want)
	kept := []string{put("wh/demo/t1/data/0.parquet"), put("wh/demo/t0x/data/0.parquet"), put("wh/demo/t0/data/job-that-runs/0.parquet"), put("wh/demo/t0/metadata/version-hint.text")}

	s.Pages(1000, true)
	q := upkeep.Search{
		Stores: stores, Location: "s3a://lake/wh/demo/t0", Allowed: func(string) bool { return true }, Before: time.Now().Add(time.Hour), Properties: tables[0].Metadata.Properties(),
		Foreign: []string{tables[1].Location}, Jobs: []string{"job-that-runs"}, DryRun: true,
		Load: func(ctx context.Context) (table.Metadata, string, error) {
			t, err := c.Load(ctx, tables[0].Ident)
			if err != nil {
				return nil, "", err
			}
			return t.Metadata, t.MetadataLocation, nil
		},
	}
	found := func() []string {
		got, err := upkeep.Orphans(ctx, q)
		require.NoError(t, err)
		for i := range got {
			got[i] = "s3" + got[i][len("s3a"):]
		}
		return got
	}
	require.Equal(t, want, found())
	q.DryRun = false
	s.Fail(
		objectstest.Fault{Method: http.MethodDelete, Skip: 100, Apply: true}, objectstest.Fault{Method: http.MethodDelete, Skip: 200, Status: 500}, objectstest.Fault{Method: http.MethodGet, Skip: 2, Status: 503, Code: "SlowDown"},
	)
	require.Equal(t, want, found())
	require.Empty(t, found())
	for _, uri := range kept {
		_, err := client.Head(ctx, uri[len("s3://lake/"):])
		require.NoError(t, err, uri)
	}
	_, err = c.Load(ctx, tables[0].Ident)
	require.NoError(t, err)

	for range 3 {
		put(fmt.Sprintf("wh/demo/t0/data/late-%d", len(want)))
	}
	s.Fail(objectstest.Fault{Method: http.MethodDelete, Status: 403, Code: "AccessDenied"})
	_, err = upkeep.Orphans(ctx, q)
	require.ErrorIs(t, err, objects.ErrDenied)
}
