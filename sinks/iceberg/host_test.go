package iceberg

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	sqlcat "github.com/apache/iceberg-go/catalog/sql"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	_ "modernc.org/sqlite" // the driver

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/plugins/sdk/sdktest"
)

const (
	testCatalog  = "c"
	testProperty = "signet.landed.test"
)

// testHost serves host.v1 for one table over iceberg-go's SQL catalog and a local directory.
type testHost struct {
	hostv1.UnimplementedCatalogServer
	hostv1.UnimplementedStorageServer
	t     testing.TB
	cat   *sqlcat.Catalog
	db    string
	dir   string
	name  string
	ident icetable.Identifier

	mu       sync.Mutex
	puts     []string
	gets     []string
	requests int
	// before runs before a commit request is applied, and may refuse it; after runs when it has been.
	before func(requirements, updates []byte) error
	after  func() error
	// beforePut may refuse an object.
	beforePut func(uri string) error
}

func newHost(t testing.TB, name string) *testHost {
	t.Helper()
	dir := os.Getenv("SIGNET_TEST_WAREHOUSE") // to be read by other implementations afterwards
	if dir == "" {
		dir = t.TempDir()
	}
	db := filepath.Join(dir, "catalog.db")
	conn, err := sql.Open("sqlite", "file:"+db+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	cat, err := sqlcat.NewCatalog(testCatalog, conn, sqlcat.SQLite, icebergo.Properties{"warehouse": "file://" + dir})
	require.NoError(t, err)
	if err := cat.CreateNamespace(t.Context(), icetable.Identifier{"n"}, nil); err != nil {
		require.ErrorIs(t, err, catalog.ErrNamespaceAlreadyExists)
	}
	return &testHost{t: t, cat: cat, db: db, dir: dir, name: name, ident: icetable.Identifier{"n", name}}
}

func (h *testHost) ref() *sinkv1.TableRef {
	return &sinkv1.TableRef{Catalog: testCatalog, Namespace: []string{"n"}, Name: h.name}
}

func (h *testHost) location() string { return "file://" + filepath.Join(h.dir, "n", h.name) }

// client serves the sink over gRPC with this host.
func (h *testHost) client(s sdk.Sink) sinkv1.SinkClient {
	return sdktest.NewTestConn(h.t, s, func(r grpc.ServiceRegistrar) {
		hostv1.RegisterCatalogServer(r, h)
		hostv1.RegisterStorageServer(r, h)
	})
}

func (h *testHost) path(uri string) string {
	if u, err := url.Parse(uri); err == nil && u.Scheme == "file" {
		return strings.TrimPrefix(uri, "file://")
	}
	return uri
}

func refusal(err error) error {
	if err == nil {
		return nil
	}
	if r := new(sdk.RefusalError); errors.As(err, &r) {
		return r.GRPCStatus().Err()
	}
	return err
}

func (h *testHost) load(ctx context.Context) (*icetable.Table, error) {
	tbl, err := h.cat.LoadTable(ctx, h.ident)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		return nil, nil
	}
	return tbl, err
}

func (h *testHost) table() *icetable.Table {
	h.t.Helper()
	tbl, err := h.cat.LoadTable(h.t.Context(), h.ident)
	require.NoError(h.t, err)
	return tbl
}

func (h *testHost) LoadTable(r *hostv1.LoadTableRequest, st grpc.ServerStreamingServer[hostv1.LoadTableResponse]) error {
	tbl, err := h.load(st.Context())
	switch {
	case err != nil:
		return err
	case tbl == nil:
		return st.Send(&hostv1.LoadTableResponse{Missing: true, DefaultLocation: h.location()})
	case tbl.MetadataLocation() == r.GetKnownLocation():
		return st.Send(&hostv1.LoadTableResponse{Location: r.GetKnownLocation(), Unchanged: true})
	}
	raw, err := os.ReadFile(h.path(tbl.MetadataLocation()))
	if err != nil {
		return err
	}
	for first := true; first || len(raw) > 0; first = false {
		n := min(len(raw), 1<<20)
		if err := st.Send(&hostv1.LoadTableResponse{Location: tbl.MetadataLocation(), Metadata: raw[:n]}); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

func (h *testHost) CommitTable(st grpc.ClientStreamingServer[hostv1.CommitTableRequest, hostv1.CommitTableResponse]) error {
	var requirements, updates []byte
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		requirements, updates = append(requirements, m.GetRequirements()...), append(updates, m.GetUpdates()...)
	}
	h.mu.Lock()
	h.requests++
	before, after := h.before, h.after
	h.mu.Unlock()
	if before != nil {
		if err := before(requirements, updates); err != nil {
			return refusal(err)
		}
	}
	resp, err := h.apply(st.Context(), requirements, updates)
	if err != nil {
		return refusal(err)
	}
	if after != nil {
		if err := after(); err != nil {
			return refusal(err)
		}
	}
	return st.SendAndClose(resp)
}

// apply sends a request to the catalog and classifies the answer as a real host does: by looking.
func (h *testHost) apply(ctx context.Context, requirements, updates []byte) (*hostv1.CommitTableResponse, error) {
	var reqs icetable.Requirements
	var upds icetable.Updates
	if err := errors.Join(json.Unmarshal(requirements, &reqs), json.Unmarshal(updates, &upds)); err != nil {
		return nil, sdk.Refuse(sdk.Permanent, "%v", err)
	}
	var snapshot struct {
		Snapshot struct {
			ID int64 `json:"snapshot-id"`
		} `json:"snapshot"`
	}
	for _, u := range upds {
		if u.Action() == "add-snapshot" {
			raw, err := json.Marshal(u)
			require.NoError(h.t, err)
			require.NoError(h.t, json.Unmarshal(raw, &snapshot))
		}
	}
	version := versionOf(snapshot.Snapshot.ID)
	var err error
	var location string
	if tbl, lerr := h.load(ctx); lerr == nil && tbl == nil {
		location, err = h.create(ctx, reqs, upds)
	} else {
		_, location, err = h.cat.CommitTable(ctx, h.ident, reqs, upds)
	}
	if err == nil {
		return &hostv1.CommitTableResponse{Location: location, Version: version}, nil
	}
	tbl, lerr := h.load(ctx)
	if lerr != nil {
		return nil, sdk.Refuse(sdk.Unknown, "%v, %v", err, lerr)
	}
	var md icetable.Metadata
	if tbl != nil {
		md = tbl.Metadata()
		if md.SnapshotByID(snapshot.Snapshot.ID) != nil {
			return &hostv1.CommitTableResponse{Location: tbl.MetadataLocation(), Version: version}, nil
		}
	}
	for _, r := range reqs {
		if verr := r.Validate(md); verr != nil {
			return nil, sdk.Refuse(sdk.Conflict, "%v", verr)
		}
	}
	if errors.Is(err, icetable.ErrCommitFailed) || strings.Contains(err.Error(), "locked") { // SQLite says that it did nothing
		return nil, sdk.Refuse(sdk.Conflict, "%v", err)
	}
	return nil, sdk.Refuse(sdk.Permanent, "%v", err)
}

// create makes a table of updates alone.
func (h *testHost) create(ctx context.Context, reqs icetable.Requirements, upds icetable.Updates) (string, error) {
	for _, r := range reqs {
		if err := r.Validate(nil); err != nil {
			return "", err
		}
	}
	version := 2
	for _, u := range upds {
		var v struct {
			FormatVersion int `json:"format-version"`
		}
		raw, err := json.Marshal(u)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(raw, &v); err != nil {
			return "", err
		}
		version = max(version, v.FormatVersion)
	}
	b, err := icetable.NewMetadataBuilder(version)
	if err != nil {
		return "", err
	}
	for _, u := range upds {
		if err := u.Apply(b); err != nil {
			return "", err
		}
	}
	md, err := b.Build()
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(md)
	if err != nil {
		return "", err
	}
	location := metadataPath(md.Location(), "00000-%s.metadata.json", uuid.NewString())
	if err := h.write(location, raw); err != nil {
		return "", err
	}
	conn, err := sql.Open("sqlite", "file:"+h.db+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, err = conn.ExecContext(ctx, `INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type) VALUES (?, 'n', ?, ?, 'TABLE')`,
		testCatalog, h.name, location)
	return location, err
}

func (h *testHost) CreateTable(ctx context.Context, r *hostv1.CreateTableRequest) (*hostv1.CreateTableResponse, error) {
	schema, spec, order := &icebergo.Schema{}, &icebergo.PartitionSpec{}, icetable.SortOrder{}
	if err := errors.Join(json.Unmarshal(r.GetSchema(), schema), json.Unmarshal(r.GetPartitionSpec(), spec), json.Unmarshal(r.GetSortOrder(), &order)); err != nil {
		return nil, refusal(sdk.Refuse(sdk.Permanent, "%v", err))
	}
	location := r.GetLocation()
	if location == "" {
		location = h.location()
	}
	tbl, err := h.cat.CreateTable(ctx, h.ident, schema, catalog.WithLocation(location), catalog.WithPartitionSpec(spec), catalog.WithSortOrder(order), catalog.WithProperties(r.GetProperties()))
	if errors.Is(err, catalog.ErrTableAlreadyExists) {
		return nil, refusal(sdk.Refuse(sdk.Exists, "%v", err))
	}
	if err != nil {
		return nil, refusal(sdk.Refuse(sdk.Permanent, "%v", err))
	}
	raw, err := os.ReadFile(h.path(tbl.MetadataLocation()))
	return &hostv1.CreateTableResponse{Location: tbl.MetadataLocation(), Metadata: raw}, err
}

func (h *testHost) DropTable(ctx context.Context, _ *hostv1.DropTableRequest) (*hostv1.DropTableResponse, error) {
	err := h.cat.DropTable(ctx, h.ident)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		err = sdk.Refuse(sdk.NotFound, "no such table")
	}
	return &hostv1.DropTableResponse{}, refusal(err)
}

func (h *testHost) Get(r *hostv1.GetRequest, st grpc.ServerStreamingServer[hostv1.GetResponse]) error {
	h.mu.Lock()
	h.gets = append(h.gets, r.GetUri())
	h.mu.Unlock()
	raw, err := os.ReadFile(h.path(r.GetUri()))
	if os.IsNotExist(err) {
		return refusal(sdk.Refuse(sdk.NotFound, "%s", r.GetUri()))
	}
	if err != nil {
		return err
	}
	size := int64(len(raw))
	for first := true; first || len(raw) > 0; first = false {
		n := min(len(raw), 1<<20)
		if err := st.Send(&hostv1.GetResponse{Data: raw[:n], Size: size}); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

func (h *testHost) PutIfAbsent(st grpc.ClientStreamingServer[hostv1.PutIfAbsentRequest, hostv1.PutIfAbsentResponse]) error {
	var uri string
	var body []byte
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if uri == "" {
			uri = m.GetUri()
		}
		body = append(body, m.GetData()...)
	}
	if h.beforePut != nil {
		if err := h.beforePut(uri); err != nil {
			return refusal(err)
		}
	}
	if err := h.write(uri, body); err != nil {
		return refusal(err)
	}
	h.mu.Lock()
	h.puts = append(h.puts, uri)
	h.mu.Unlock()
	return st.SendAndClose(&hostv1.PutIfAbsentResponse{Size: int64(len(body))})
}

func (h *testHost) write(uri string, body []byte) error {
	path := h.path(uri)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return sdk.Refuse(sdk.Exists, "%s", uri)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	return errors.Join(err, f.Close())
}

// created lists what the sink created, by base name.
func (h *testHost) created() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, p := range h.puts {
		out = append(out, filepath.Base(p))
	}
	return out
}

// rawHost is a Host without gRPC that serves metadata.json as it lies there, whether or not iceberg-go could read it.
type rawHost struct {
	Host
	t testing.TB
	h *testHost
}

func (r *rawHost) LoadTable(context.Context, string) (string, []byte, bool, string, error) {
	conn, err := sql.Open("sqlite", "file:"+r.h.db)
	require.NoError(r.t, err)
	defer conn.Close()
	var location string
	require.NoError(r.t, conn.QueryRow(`SELECT metadata_location FROM iceberg_tables WHERE table_name = ?`, r.h.name).Scan(&location))
	raw, err := os.ReadFile(r.h.path(location))
	return location, raw, false, "", err
}

func (r *rawHost) Get(_ context.Context, uri string) ([]byte, error) {
	return os.ReadFile(r.h.path(uri))
}
