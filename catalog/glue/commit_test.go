package glue_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/glue"
	"github.com/signet-io/signet/catalog/glue/gluetest"
	"github.com/signet-io/signet/catalog/storage"
)

// scene is a table, seen by one scheduler through a proxy, and by another without it.
type scene struct {
	*testing.T
	srv   *gluetest.Server
	proxy *catalogtest.Proxy
	c     catalog.Catalog
	other catalog.Catalog
	tbl   *catalog.Table
}

func newScene(t *testing.T) *scene {
	s := &scene{T: t, srv: gluetest.Start(t)}
	s.proxy = catalogtest.NewProxy(t, s.srv.URL)
	warehouse := t.TempDir()
	s.c, s.other = open(t, s.proxy.URL, warehouse, nil), open(t, s.srv.URL, warehouse, nil)
	require.NoError(t, s.c.CreateNamespace(t.Context(), []string{"demo"}, false))
	var err error
	s.tbl, err = s.c.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	return s
}

func (s *scene) files() int {
	st, err := s.other.Store(s.Context(), s.tbl.Ident, s.tbl.Location)
	require.NoError(s, err)
	n := 0
	require.NoError(s, st.List(s.Context(), s.tbl.Location+"/metadata", func(storage.Info) error { n++; return nil }))
	return n
}

func (s *scene) snapshots() int {
	now, err := s.other.Load(s.Context(), s.tbl.Ident)
	require.NoError(s, err)
	return len(now.Metadata.Snapshots())
}

func requireUnknown(t testing.TB, err error) {
	t.Helper()
	require.Error(t, err)
	for _, definite := range []error{catalog.ErrConflict, catalog.ErrPermanent, catalog.ErrNotFound, catalog.ErrExists, catalog.ErrNotSent} {
		require.NotErrorIs(t, err, definite)
	}
}

// What UpdateTable answers, whether it took effect, and what is said of the commit. The table has moved on for nobody else.
func TestCommit_Outcomes(t *testing.T) {
	for _, tc := range []struct {
		fault   catalogtest.HTTPFault
		want    error // nil: unknown
		landed  bool  // is said
		orphans int
	}{
		{catalogtest.HTTPFault{}, nil, false, 1},
		{catalogtest.HTTPFault{Applied: true}, nil, true, 0},
		{catalogtest.HTTPFault{Applied: true, Half: true}, nil, true, 0},
		{catalogtest.HTTPFault{Code: "ThrottlingException"}, nil, false, 1},
		{catalogtest.HTTPFault{Code: "ConcurrentModificationException"}, nil, false, 1},
		{catalogtest.HTTPFault{Applied: true, Code: "ConcurrentModificationException"}, nil, true, 0}, // something in between sent it twice
		{catalogtest.HTTPFault{Code: "EntityNotFoundException"}, nil, false, 1},
		{catalogtest.HTTPFault{Code: "InternalServiceException", Status: 500}, nil, false, 1},
		{catalogtest.HTTPFault{Applied: true, Code: "OperationTimeoutException"}, nil, true, 0},
		{catalogtest.HTTPFault{Status: 200, Plain: true}, nil, false, 1},
		{catalogtest.HTTPFault{Status: 200}, nil, false, 1}, // JSON, and no answer of Glue
		{catalogtest.HTTPFault{Code: "AccessDeniedException"}, catalog.ErrPermanent, false, 0},
		{catalogtest.HTTPFault{Code: "InvalidInputException"}, catalog.ErrPermanent, false, 0},
	} {
		t.Run(tc.fault.String(), func(t *testing.T) {
			s := newScene(t)
			reqs, ups := catalogtest.Append(s.tbl, catalogtest.SnapshotID())
			s.proxy.Arm(map[int]catalogtest.HTTPFault{1: tc.fault}) // 0 is the look before it
			_, err := s.c.Commit(t.Context(), s.tbl.Ident, reqs, ups)
			seen, _ := s.proxy.Seen()
			sent := 0
			for _, r := range seen {
				if r.Header.Get("X-Amz-Target") == "AWSGlue.UpdateTable" {
					sent++
				}
			}
			assert.Equal(t, 1, sent, "one send is one send")
			s.proxy.Arm(nil)
			switch {
			case tc.landed:
				require.NoError(t, err)
			case tc.want == nil:
				requireUnknown(t, err)
			default:
				require.ErrorIs(t, err, tc.want)
			}
			before := 1 + tc.orphans
			if tc.landed {
				before++
			}
			assert.Equal(t, before, s.files())
			_, err = s.c.Commit(t.Context(), s.tbl.Ident, reqs, ups)
			require.NoError(t, err, "the identical request settles it")
			assert.Equal(t, 1, s.snapshots())
		})
	}
}

// A crawler, or a person, changes something else of the table between a commit's look and its update: the commit goes on top of it.
func TestCommit_OthersChangeTheTableOfGlue(t *testing.T) {
	s := newScene(t)
	s.srv.Edit("demo", "t", func(in map[string]any) {
		in["Parameters"].(map[string]any)["classification"] = "parquet"
		in["Owner"], in["Description"] = "somebody", "what they wrote"
		in["StorageDescriptor"].(map[string]any)["Columns"].([]any)[0].(map[string]any)["Comment"] = "the key"
	})
	reqs, ups := catalogtest.Append(s.tbl, catalogtest.SnapshotID())
	now, err := s.c.Commit(t.Context(), s.tbl.Ident, reqs, ups)
	require.NoError(t, err)
	in := s.srv.Table("demo", "t")
	params := in["Parameters"].(map[string]any)
	assert.Equal(t, map[string]any{
		"classification": "parquet", "table_type": "ICEBERG", "metadata_location": now.MetadataLocation, "previous_metadata_location": s.tbl.MetadataLocation,
	}, params)
	assert.Equal(t, "somebody", in["Owner"])
	assert.Equal(t, "what they wrote", in["Description"])
	assert.Equal(t, "EXTERNAL_TABLE", in["TableType"])
	sd := in["StorageDescriptor"].(map[string]any)
	assert.Equal(t, s.tbl.Location, sd["Location"])
	assert.Equal(t, []any{
		map[string]any{"Name": "id", "Type": "bigint", "Comment": "the key", "Parameters": map[string]any{"iceberg.field.id": "1", "iceberg.field.optional": "false", "iceberg.field.current": "true"}},
		map[string]any{"Name": "name", "Type": "string", "Parameters": map[string]any{"iceberg.field.id": "2", "iceberg.field.optional": "true", "iceberg.field.current": "true"}},
	}, sd["Columns"])
	assert.Zero(t, s.srv.Archived(), "glue.skip-archive is on")
}

// Schedulers and other engines append to one table at once: each row of Glue's versions is one commit, and none is lost.
func TestCommit_ManyProcesses(t *testing.T) {
	srv, warehouse := gluetest.Start(t), t.TempDir()
	first := open(t, srv.URL, warehouse, nil)
	require.NoError(t, first.CreateNamespace(t.Context(), []string{"demo"}, false))
	tbl, err := first.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	const writers, each = 6, 4
	var wg sync.WaitGroup
	for range writers {
		c := open(t, srv.URL, warehouse, nil)
		wg.Go(func() {
			for range each {
				id := catalogtest.SnapshotID()
				for {
					now, err := c.Load(t.Context(), tbl.Ident)
					if !assert.NoError(t, err) {
						return
					}
					reqs, ups := catalogtest.Append(now, id)
					if now.Metadata.SnapshotByID(id) != nil {
						break
					}
					if _, err := c.Commit(t.Context(), tbl.Ident, reqs, ups); err == nil {
						break
					} else if !assert.ErrorIs(t, err, catalog.ErrConflict) {
						return
					}
				}
			}
		})
	}
	wg.Wait()
	now, err := first.Load(t.Context(), tbl.Ident)
	require.NoError(t, err)
	assert.Len(t, now.Metadata.Snapshots(), writers*each)
}

// Without a version of the row nothing would keep another's commit, so nothing is sent.
func TestCommit_NoVersionID(t *testing.T) {
	s := newScene(t)
	s.srv.WithoutVersions()
	reqs, ups := catalogtest.Append(s.tbl, catalogtest.SnapshotID())
	_, err := s.c.Commit(t.Context(), s.tbl.Ident, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "VersionId")
	assert.Equal(t, 1, s.files())
}

// A service that cannot be reached was not asked for anything.
func TestCommit_NotSent(t *testing.T) {
	s := newScene(t)
	url := "http://127.0.0.1:1" // where nobody listens
	c := open(t, url, t.TempDir(), nil)
	reqs, ups := catalogtest.Append(s.tbl, catalogtest.SnapshotID())
	_, err := c.Commit(t.Context(), s.tbl.Ident, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrNotSent)
	reqs, ups = catalogtest.Staged(uuid.NewString(), "", 4)
	_, err = c.Commit(t.Context(), catalog.Ident{"demo", "new"}, reqs, ups)
	require.ErrorIs(t, err, catalog.ErrNotSent)
	require.ErrorIs(t, c.CreateNamespace(t.Context(), []string{"x"}, true), catalog.ErrNotSent)
}

// Keys reach no text.
func TestSecretsStayHidden(t *testing.T) {
	s := newScene(t)
	s.proxy.Arm(map[int]catalogtest.HTTPFault{0: {Code: "UnrecognizedClientException"}})
	_, err := s.c.Load(t.Context(), s.tbl.Ident)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, s.c), "canary-secret")
}

func TestOpen_Refuses(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	for want, o := range map[string]glue.Options{
		"it has no name":              {},
		"warehouse":                   {Name: "lake"},
		"glue.region is missing":      {Name: "lake", Warehouse: "/wh"},
		"want true or false":          {Name: "lake", Warehouse: "/wh", Properties: map[string]string{"glue.skip-archive": "perhaps"}},
		"want a number from 1":        {Name: "lake", Warehouse: "/wh", Properties: map[string]string{"glue.max-retries": "0"}},
		"go together":                 {Name: "lake", Warehouse: "/wh", Secrets: map[string]string{"glue.access-key-id": "a"}},
		"needs glue.access-key-id":    {Name: "lake", Warehouse: "/wh", Secrets: map[string]string{"glue.session-token": "a"}},
		"configuration of AWS's clie": {Name: "lake", Warehouse: "/wh", Properties: map[string]string{"glue.profile-name": "nobody", "glue.region": "eu-west-1"}},
	} {
		_, err := glue.Open(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}
