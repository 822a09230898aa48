package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/scheduler/broker"
)

const markerProperty = "signet.landed.test"

var ident = catalog.Ident{"demo", "t"}

// icebergSink is what the Iceberg sink declares.
func icebergSink() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{Name: "iceberg", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_CATALOG, Creates: []string{"metadata/*.avro"}}
}

// bench is a broker behind a real gRPC connection, over a real SQLite catalog whose commits fail as a test says.
type bench struct {
	testing.TB
	cat     *catalogtest.Faulty
	broker  *broker.Broker
	conn    *grpc.ClientConn
	config  broker.Config
	version int // of the format; 0: 2
}

func newBench(t testing.TB) *bench { return newBenchWith(t, broker.Config{}) }

func newBenchWith(t testing.TB, c broker.Config) *bench {
	t.Helper()
	dir := t.TempDir()
	cat, err := sql.Open(t.Context(), sql.Options{Name: "lake", URI: "sqlite://" + filepath.Join(dir, "catalog.db"), Warehouse: "file://" + filepath.Join(dir, "wh")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cat.Close()) })
	require.NoError(t, cat.CreateNamespace(t.Context(), ident.Namespace(), true))
	b := &bench{TB: t, cat: catalogtest.NewFaulty(cat), config: c}
	b.restart()
	return b
}

// restart brings up a new broker: leases, memory and connections of the old one are gone.
func (b *bench) restart() {
	b.Helper()
	if b.config.Epoch == 0 {
		b.config.Epoch = 1
		b.config.BackoffMin, b.config.BackoffMax = time.Millisecond, 5*time.Millisecond
	} else {
		b.config.Epoch++
	}
	b.broker = broker.New(b.config)
	b.conn = serve(b.TB, b.broker)
}

func serve(t testing.TB, b *broker.Broker) *grpc.ClientConn {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	s := grpc.NewServer(rpc.ServerOptions()...)
	b.Register(s)
	go func() { _ = s.Serve(l) }()
	conn, err := grpc.NewClient("unix:"+socket, append(rpc.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, b.Close(ctx))
	})
	return conn
}

func (b *bench) createTable() *catalog.Table {
	b.Helper()
	spec := catalogtest.Spec()
	if b.version > 0 {
		spec.Properties = map[string]string{"format-version": strconv.Itoa(b.version)}
	}
	t, err := b.cat.Create(b.Context(), ident, spec)
	require.NoError(b, err)
	return t
}

func (b *bench) load() *catalog.Table {
	b.Helper()
	t, err := b.cat.Load(context.Background(), ident)
	require.NoError(b, err)
	return t
}

// job is one job with its coordinator and its lease.
type job struct {
	*bench
	gate  *gate
	spec  broker.LeaseSpec
	lease *broker.Lease
	sink  *sink
}

func newMarker() string { return strings.ReplaceAll(uuid.NewString(), "-", "")[:24] }

func (b *bench) job(edit ...func(*broker.LeaseSpec)) *job {
	b.Helper()
	j := &job{bench: b, gate: newGate(b.TB, b.config.Epoch)}
	j.spec = broker.LeaseSpec{
		JobID: "job", Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, Gate: j.gate, Catalog: b.cat, Ident: ident, Sink: icebergSink(),
		MarkerProperty: markerProperty, Markers: []string{newMarker()},
	}
	for _, e := range edit {
		e(&j.spec)
	}
	j.newLease()
	return j
}

func (j *job) newLease() {
	j.Helper()
	l, err := j.broker.Lease(j.spec)
	require.NoError(j, err)
	j.lease = l
	j.sink = &sink{
		ctx: metadata.AppendToOutgoingContext(context.Background(), broker.LeaseKey, l.Token()), catalog: hostv1.NewCatalogClient(j.conn),
		storage: hostv1.NewStorageClient(j.conn), markers: j.spec.Markers,
	}
}

// gate is a broker.Gate over a real machine whose journal is a byte slice.
type gate struct {
	t       testing.TB
	mu      sync.Mutex
	m       *coordinator.Machine
	journal []byte
	settled []coordinator.OutcomeKind
	changed chan struct{} // closed and replaced at every change
	fail    error         // what Settle answers instead of recording
}

func newGate(t testing.TB, epoch uint64) *gate {
	g := &gate{t: t, m: coordinator.New("job", epoch), changed: make(chan struct{})}
	g.step(coordinator.Begin{Tasks: 0})
	g.step(coordinator.Start{})
	return g
}

func (g *gate) step(ev coordinator.Event) error {
	next := *g.m
	eff, err := next.Step(ev)
	if err != nil {
		return err
	}
	if eff.Record != nil {
		g.journal, err = json.Marshal(eff.Record)
		require.NoError(g.t, err)
	}
	g.m = &next
	close(g.changed)
	g.changed = make(chan struct{})
	return nil
}

func (g *gate) Step(ev coordinator.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.step(ev)
}

func (g *gate) Seal(_ context.Context, a coordinator.Attempt) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.step(coordinator.Seal{Attempt: a}); err != nil {
		return 0, err
	}
	return g.m.Open().Seq, nil
}

func (g *gate) Settle(_ context.Context, seq int, o coordinator.Outcome) error {
	ev, err := o.Event(seq)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail != nil {
		return g.fail
	}
	g.settled = append(g.settled, o.Kind)
	return g.step(ev)
}

func (g *gate) failWith(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = err
}

func (g *gate) state() coordinator.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.m.State()
}

func (g *gate) outcomes() []coordinator.OutcomeKind {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]coordinator.OutcomeKind(nil), g.settled...)
}

// await waits until the machine is in the state.
func (g *gate) await(s coordinator.State) {
	g.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		g.mu.Lock()
		now, changed := g.m.State(), g.changed
		g.mu.Unlock()
		if now == s {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			g.t.Fatalf("state is %s, waited for %s", now, s)
		}
	}
}

// crash restores the machine from its journal under a new epoch, as a restarted scheduler does.
func (g *gate) crash(epoch uint64) *coordinator.Attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	var r coordinator.Record
	require.NoError(g.t, json.Unmarshal(g.journal, &r))
	m, eff, err := coordinator.Restore(r, epoch)
	require.NoError(g.t, err)
	g.m = m
	g.settled = nil
	if m.State() == coordinator.Ready {
		require.NoError(g.t, g.step(coordinator.Start{}))
	}
	for _, a := range eff.Actions {
		if a.Kind == coordinator.ActResolve {
			return a.Attempt
		}
	}
	return nil
}

// sink is a small Iceberg sink: one manifest, one list, one commit, by the rules.
type sink struct {
	ctx     context.Context // carries the lease
	catalog hostv1.CatalogClient
	storage hostv1.StorageClient
	markers []string
}

// loaded is a table as LoadTable gave it.
type loaded struct {
	location string
	raw      []byte
	md       table.Metadata
	missing  bool
	home     string // default location
}

func (s *sink) load() (*loaded, error) {
	st, err := s.catalog.LoadTable(s.ctx, &hostv1.LoadTableRequest{})
	if err != nil {
		return nil, err
	}
	out := &loaded{}
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if m.GetMissing() {
			return &loaded{missing: true, home: m.GetDefaultLocation()}, nil
		}
		if m.GetLocation() != "" {
			out.location = m.GetLocation()
		}
		out.raw = append(out.raw, m.GetMetadata()...)
	}
	out.md, err = table.ParseMetadataBytes(out.raw)
	return out, err
}

func (s *sink) get(uri string) ([]byte, error) {
	st, err := s.storage.Get(s.ctx, &hostv1.GetRequest{Uri: uri})
	if err != nil {
		return nil, err
	}
	var out []byte
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m.GetData()...)
	}
}

func (s *sink) put(uri string, body []byte) error {
	_, err := s.putPoint(uri, body, nil)
	return err
}

func (s *sink) putPoint(uri string, body []byte, cp *hostv1.CommitPoint) (*hostv1.PutIfAbsentResponse, error) {
	st, err := s.storage.PutIfAbsent(s.ctx)
	if err != nil {
		return nil, err
	}
	if err := st.Send(&hostv1.PutIfAbsentRequest{Uri: uri, Data: body, CommitPoint: cp}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return st.CloseAndRecv()
}

// built is a commit ready to be sent; tests spoil its parts.
type built struct {
	id         int64
	md         table.Metadata
	parent     *int64
	seq        int64
	list       string
	manifests  []iceberg.ManifestFile
	reqs, upds []map[string]any
}

// stage writes one manifest with one file of ten rows.
func (s *sink) stage(version int, location string, spec iceberg.PartitionSpec, schema *iceberg.Schema, id int64) (iceberg.ManifestFile, error) {
	name := uuid.NewString()
	df, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, location+"/data/"+name+".parquet", iceberg.ParquetFile, nil, nil, nil, 10, 100)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	entry := iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &id, nil, nil, df.Build())
	mf, err := iceberg.WriteManifest(location+"/metadata/"+name+"-m0.avro", &buf, version, spec, schema, id, []iceberg.ManifestEntry{entry})
	if err != nil {
		return nil, err
	}
	return mf, s.put(mf.FilePath(), buf.Bytes())
}

// build makes an append on top of what was loaded.
func (s *sink) build(l *loaded) (*built, error) {
	b := &built{id: rand.Int64N(1<<62) + 1, md: l.md, seq: l.md.LastSequenceNumber() + 1}
	if l.md.Version() == 1 {
		b.seq = 0
	}
	mf, err := s.stage(l.md.Version(), l.md.Location(), l.md.PartitionSpec(), l.md.CurrentSchema(), b.id)
	if err != nil {
		return nil, err
	}
	b.manifests = []iceberg.ManifestFile{mf}
	return b, b.finish(s.markers, s.get, s.put)
}

// finish puts what has been staged on top of the parent's manifests and makes the request.
func (b *built) finish(markers []string, get func(string) ([]byte, error), put func(string, []byte) error) error {
	if p := b.md.SnapshotByName("main"); p != nil {
		b.parent = &p.SnapshotID
		raw, err := get(p.ManifestList)
		if err != nil {
			return err
		}
		old, err := iceberg.ReadManifestList(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		b.manifests = append(b.manifests, old...)
	}
	var err error
	if b.list, err = b.putList(b.md.Location(), put); err != nil {
		return err
	}
	b.reqs = []map[string]any{
		{"type": "assert-table-uuid", "uuid": b.md.TableUUID().String()},
		{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": b.parent},
	}
	value := b.md.Properties()[markerProperty]
	for _, m := range markers {
		value = strings.TrimPrefix(value+","+m+":"+strconv.FormatInt(b.id, 10), ",")
	}
	b.upds = append(b.snapshotUpdates(markers, b.md.CurrentSchema().ID), map[string]any{"action": "set-properties", "updates": map[string]string{markerProperty: value}})
	return nil
}

func (b *built) snapshotUpdates(markers []string, schemaID int) []map[string]any {
	snap := map[string]any{
		"snapshot-id": b.id, "sequence-number": b.seq, "timestamp-ms": time.Now().UnixMilli(), "manifest-list": b.list, "schema-id": schemaID,
		"summary": map[string]string{"operation": "append", "added-records": "10", "added-data-files": "1", "signet.markers": strings.Join(markers, ",")},
	}
	if b.parent != nil {
		snap["parent-snapshot-id"] = *b.parent
	}
	return []map[string]any{
		{"action": "add-snapshot", "snapshot": snap},
		{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": b.id},
	}
}

func (b *built) putList(location string, put func(string, []byte) error) (string, error) {
	var buf bytes.Buffer
	var w *iceberg.ManifestListWriter
	var err error
	if b.md != nil && b.md.Version() == 1 {
		w, err = iceberg.NewManifestListWriterV1(&buf, b.id, b.parent)
	} else {
		w, err = iceberg.NewManifestListWriterV2(&buf, b.id, b.seq, b.parent)
	}
	if err != nil {
		return "", err
	}
	if err := errors.Join(w.AddManifests(b.manifests), w.Close()); err != nil {
		return "", err
	}
	uri := fmt.Sprintf("%s/metadata/snap-%d-%s.avro", location, b.id, uuid.NewString())
	return uri, put(uri, buf.Bytes())
}

func (b *built) encode() (reqs, upds []byte, err error) {
	if reqs, err = json.Marshal(b.reqs); err != nil {
		return nil, nil, err
	}
	upds, err = json.Marshal(b.upds)
	return reqs, upds, err
}

func (s *sink) send(ctx context.Context, reqs, upds []byte) (*hostv1.CommitTableResponse, error) {
	st, err := s.catalog.CommitTable(ctx)
	if err != nil {
		return nil, err
	}
	if err := st.Send(&hostv1.CommitTableRequest{Requirements: reqs, Updates: upds}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return st.CloseAndRecv()
}

func (s *sink) sendBuilt(b *built) (*hostv1.CommitTableResponse, error) {
	reqs, upds, err := b.encode()
	if err != nil {
		return nil, err
	}
	return s.send(s.ctx, reqs, upds)
}

// append is one try: load, build, send.
func (s *sink) append() (*hostv1.CommitTableResponse, error) {
	l, err := s.load()
	if err != nil {
		return nil, err
	}
	b, err := s.build(l)
	if err != nil {
		return nil, err
	}
	return s.sendBuilt(b)
}

// appendUntil repeats after conflicts, as a sink's commit loop does.
func (s *sink) appendUntil(tries int) (*hostv1.CommitTableResponse, error) {
	for n := 1; ; n++ {
		r, err := s.append()
		if k := kindOf(err); (k != conflict && k != retryable) || n == tries {
			return r, err
		}
	}
}

const (
	conflict  = hostv1.RefusalKind_REFUSAL_KIND_CONFLICT
	unknown   = hostv1.RefusalKind_REFUSAL_KIND_UNKNOWN
	permanent = hostv1.RefusalKind_REFUSAL_KIND_PERMANENT
	already   = hostv1.RefusalKind_REFUSAL_KIND_ALREADY
	fenced    = hostv1.RefusalKind_REFUSAL_KIND_FENCED
	retryable = hostv1.RefusalKind_REFUSAL_KIND_RETRYABLE
	notFound  = hostv1.RefusalKind_REFUSAL_KIND_NOT_FOUND
	exists    = hostv1.RefusalKind_REFUSAL_KIND_EXISTS
)

func refusal(err error) *hostv1.Refusal {
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*hostv1.Refusal); ok {
			return r
		}
	}
	return nil
}

func kindOf(err error) hostv1.RefusalKind { return refusal(err).GetKind() }

func requireRefusal(t testing.TB, kind hostv1.RefusalKind, err error, text string) *hostv1.Refusal {
	t.Helper()
	require.Error(t, err)
	r := refusal(err)
	require.NotNil(t, r, "no typed refusal in %v", err)
	require.Equal(t, kind, r.GetKind(), err)
	require.Contains(t, r.GetMessage(), text)
	return r
}

// counts says how often each marker stands in the snapshots of the table.
func (b *bench) counts() map[string]int {
	b.Helper()
	out := map[string]int{}
	for _, s := range b.load().Metadata.Snapshots() {
		for m := range strings.SplitSeq(s.Summary.Properties["signet.markers"], ",") {
			out[m]++
		}
	}
	return out
}

// manifestsOfHead lists the manifests of the table's head.
func (s *sink) manifestsOfHead() ([]iceberg.ManifestFile, error) {
	l, err := s.load()
	if err != nil {
		return nil, err
	}
	raw, err := s.get(l.md.SnapshotByName("main").ManifestList)
	if err != nil {
		return nil, err
	}
	return iceberg.ReadManifestList(bytes.NewReader(raw))
}
