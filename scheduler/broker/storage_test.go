package broker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/scheduler/broker"
)

// logSink is a sink whose commit point is an object.
func logSink() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "log", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE, Creates: []string{"_log/*.json", "parts/*/*.bin"}, CommitPoints: []string{"_log/[0-9]*.json"},
		Hints: []string{"_log/_last"},
	}
}

// storageJob is a job of a storage sink.
func storageJob(t testing.TB, edit ...func(*broker.LeaseSpec)) *job {
	t.Helper()
	b := &bench{TB: t}
	b.restart()
	return b.storageJob("file://"+filepath.Join(t.TempDir(), "table"), edit...)
}

func (b *bench) storageJob(location string, edit ...func(*broker.LeaseSpec)) *job {
	b.Helper()
	s, err := storage.Local.Open(b.Context(), location)
	require.NoError(b, err)
	return b.job(append([]func(*broker.LeaseSpec){func(l *broker.LeaseSpec) {
		l.Catalog, l.Ident, l.Sink, l.Store, l.Location, l.MarkerProperty = nil, nil, logSink(), s, location, ""
	}}, edit...)...)
}

func (j *job) uri(rel string) string { return j.spec.Location + "/" + rel }

// S66 for the plugin: nothing outside of the table can be named, however it is spelt.
func TestStorage_Confinement(t *testing.T) {
	j := storageJob(t)
	require.NoError(t, j.sink.put(j.uri("parts/a/x.bin"), []byte("x")))
	dir := strings.TrimPrefix(j.spec.Location, "file://")
	require.NoError(t, os.WriteFile(dir+"10", []byte("secret"), 0o600))
	require.NoError(t, os.MkdirAll(dir+"-other", 0o755))
	require.NoError(t, os.Symlink(filepath.Dir(dir), filepath.Join(dir, "parts", "up")))
	for _, uri := range []string{
		"", "/", "file:///etc/passwd", "/etc/passwd", "etc/passwd", "s3://bucket/x", "file://host" + dir + "/x", j.spec.Location + "10", j.spec.Location + "-other/x",
		j.uri("../table10"), j.uri("parts/../../table10"), j.uri("./parts/a/x.bin"), j.uri("parts/a/x.bin\x00"), "FILE:/etc/passwd", "http://169.254.169.254/latest",
	} {
		_, err := j.sink.get(uri)
		requireRefusal(t, permanent, err, "outside")
		_, err = j.sink.storage.Head(j.sink.ctx, &hostv1.HeadRequest{Uri: uri})
		requireRefusal(t, permanent, err, "outside")
		_, err = j.list(uri)
		requireRefusal(t, permanent, err, "outside")
		requireRefusal(t, permanent, j.sink.put(uri, []byte("x")), "")
		_, err = j.sink.storage.ReplaceIf(j.sink.ctx, &hostv1.ReplaceIfRequest{Uri: uri, Data: []byte("x")})
		requireRefusal(t, permanent, err, "")
	}
	// A symbolic link leads nowhere.
	_, err := j.sink.get(j.uri("parts/up/table10"))
	require.Error(t, err)
	require.Error(t, j.sink.put(j.uri("parts/up/x.bin"), []byte("x")))
	require.NoFileExists(t, filepath.Join(filepath.Dir(dir), "x.bin"))
	// Nothing is decoded: an escaped dot is a file name.
	_, err = j.sink.get(j.uri("parts/%2e%2e/%2e%2e/table10"))
	requireRefusal(t, notFound, err, "")
}

func TestStorage_CreatesOnlyDeclaredNamesOnce(t *testing.T) {
	j := storageJob(t)
	for _, rel := range []string{
		"x.bin", "parts/x.bin", "parts/a/b/x.bin", "parts/a/x.binx", "parts/a/x.bin/", "_log/", "_log/_last", "metadata/v1.metadata.json", "parts/a/.signet-tmp-x.bin", `parts/a\b/x.bin`,
	} {
		requireRefusal(t, permanent, j.sink.put(j.uri(rel), []byte("x")), "")
	}
	require.NoError(t, j.sink.put(j.uri("parts/a/x.bin"), []byte("one")))
	requireRefusal(t, exists, j.sink.put(j.uri("parts/a/x.bin"), []byte("two")), "exists")
	got, err := j.sink.get(j.uri("parts/a/x.bin"))
	require.NoError(t, err)
	require.Equal(t, "one", string(got))
	require.Equal(t, []string{j.uri("parts/a/x.bin")}, j.lease.Created())
}

func TestStorage_CommitPointsTakeTheSeal(t *testing.T) {
	j := storageJob(t)
	marker := j.spec.Markers[0]
	requireRefusal(t, permanent, j.sink.put(j.uri("_log/1.json"), []byte(marker)), "takes the seal")
	_, err := j.sink.putPoint(j.uri("_log/x.json"), []byte(marker), &hostv1.CommitPoint{Version: "1", Markers: j.spec.Markers})
	requireRefusal(t, permanent, err, "none of the commit points")
	require.Zero(t, j.gate.m.Seals())
}

func TestStorage_LeaseIsTheOnlyKey(t *testing.T) {
	j := storageJob(t)
	require.NoError(t, j.sink.put(j.uri("parts/a/x.bin"), []byte("x")))
	good := j.lease.Token()
	require.Len(t, good, 32)
	contexts := map[string]context.Context{
		"none":      t.Context(),
		"unknown":   metadata.AppendToOutgoingContext(t.Context(), broker.LeaseKey, strings.Repeat("0", 32)),
		"cut":       metadata.AppendToOutgoingContext(t.Context(), broker.LeaseKey, good[:31]),
		"two":       metadata.AppendToOutgoingContext(t.Context(), broker.LeaseKey, good, broker.LeaseKey, good),
		"other key": metadata.AppendToOutgoingContext(t.Context(), "lease", good),
	}
	j.lease.Close()
	contexts["closed"] = j.sink.ctx
	for name, ctx := range contexts {
		calls := j.everyCall(ctx)
		require.Len(t, calls, 16)
		for call, err := range calls {
			requireRefusal(t, fenced, err, "no such lease")
			require.Equal(t, codes.Unauthenticated, status.Code(err), "%s with lease %s", call, name)
		}
	}
}

// everyCall makes each call of host.v1 once.
func (j *job) everyCall(ctx context.Context) map[string]error {
	s := &sink{ctx: ctx, catalog: j.sink.catalog, storage: j.sink.storage}
	out := map[string]error{}
	_, out["LoadTable"] = s.load()
	_, out["CommitTable"] = s.send(ctx, []byte("[]"), []byte("[]"))
	_, out["CreateTable"] = s.catalog.CreateTable(ctx, &hostv1.CreateTableRequest{})
	_, out["DropTable"] = s.catalog.DropTable(ctx, &hostv1.DropTableRequest{})
	_, out["Get"] = s.get(j.uri("parts/a/x.bin"))
	_, out["Head"] = s.storage.Head(ctx, &hostv1.HeadRequest{Uri: j.uri("parts/a/x.bin")})
	_, out["List"] = (&job{bench: j.bench, sink: s}).list(j.spec.Location)
	out["PutIfAbsent"] = s.put(j.uri("parts/a/y.bin"), []byte("y"))
	_, out["commit point"] = s.putPoint(j.uri("_log/1.json"), []byte("y"), &hostv1.CommitPoint{})
	_, out["ReplaceIf"] = s.storage.ReplaceIf(ctx, &hostv1.ReplaceIfRequest{Uri: j.uri("_log/_last")})
	_, out["Take"] = hostv1.NewSealClient(j.conn).Take(ctx, &hostv1.TakeRequest{})
	_, out["Report"] = hostv1.NewSealClient(j.conn).Report(ctx, &hostv1.ReportRequest{})
	_, out["GetSecret"] = hostv1.NewSecretsClient(j.conn).GetSecret(ctx, &hostv1.GetSecretRequest{})
	_, out["Dial"] = dial(ctx, hostv1.NewDialClient(j.conn), "name", nil)
	_, out["Log"] = hostv1.NewLogClient(j.conn).Write(ctx, &hostv1.WriteRequest{})
	_, out["Progress"] = hostv1.NewProgressClient(j.conn).Update(ctx, &hostv1.UpdateRequest{})
	return out
}

func (j *job) list(prefix string) ([]string, error) {
	st, err := j.sink.storage.List(j.sink.ctx, &hostv1.ListRequest{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	var out []string
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for _, o := range m.GetObjects() {
			out = append(out, strings.TrimPrefix(o.GetUri(), j.spec.Location+"/"))
		}
	}
}

func TestStorage_ReadOnlyLeaseCreatesNothing(t *testing.T) {
	j := storageJob(t, func(s *broker.LeaseSpec) { s.ReadOnly = true })
	requireRefusal(t, permanent, j.sink.put(j.uri("parts/a/x.bin"), []byte("x")), "read-only")
	_, err := j.sink.storage.ReplaceIf(j.sink.ctx, &hostv1.ReplaceIfRequest{Uri: j.uri("_log/_last")})
	requireRefusal(t, permanent, err, "read-only")
}

func TestStorage_Hints(t *testing.T) {
	j := storageJob(t)
	replace := func(rel, etag, data string) (string, error) {
		r, err := j.sink.storage.ReplaceIf(j.sink.ctx, &hostv1.ReplaceIfRequest{Uri: j.uri(rel), Etag: etag, Data: []byte(data)})
		return r.GetEtag(), err
	}
	first, err := replace("_log/_last", "", "1")
	require.NoError(t, err)
	_, err = replace("_log/_last", "", "2")
	requireRefusal(t, conflict, err, "")
	_, err = replace("_log/_last", first, "22")
	require.NoError(t, err)
	_, err = replace("_log/_last", first, "333")
	requireRefusal(t, conflict, err, "")
	for _, rel := range []string{"_log/1.json", "_log/_last2", "parts/a/x.bin"} {
		_, err = replace(rel, "", "x")
		requireRefusal(t, permanent, err, "none of the hints")
	}
	_, err = replace("_log/_last", first, strings.Repeat("x", 1<<20+1))
	requireRefusal(t, permanent, err, "limit")
}

func TestStorage_RangesAndLargeObjects(t *testing.T) {
	j := storageJob(t)
	body := bytes.Repeat([]byte("0123456789"), 300_000) // three chunks
	st, err := j.sink.storage.PutIfAbsent(j.sink.ctx)
	require.NoError(t, err)
	for i := 0; i < len(body); i += 1 << 20 {
		m := &hostv1.PutIfAbsentRequest{Data: body[i:min(i+1<<20, len(body))]}
		if i == 0 {
			m.Uri = j.uri("parts/a/x.bin")
		}
		require.NoError(t, st.Send(m))
	}
	r, err := st.CloseAndRecv()
	require.NoError(t, err)
	require.EqualValues(t, len(body), r.GetSize())
	got, err := j.sink.get(j.uri("parts/a/x.bin"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
	for _, tc := range []struct{ off, n, want int64 }{{0, 5, 5}, {2999995, 100, 5}, {3000000, 0, 0}, {10, 1<<63 - 1, 2999990}} {
		part, err := j.part(tc.off, tc.n)
		require.NoError(t, err)
		require.EqualValues(t, tc.want, len(part))
		require.True(t, bytes.Equal(body[tc.off:tc.off+tc.want], part))
	}
	for _, tc := range [][2]int64{{-1, 0}, {0, -1}, {3000001, 0}} {
		_, err := j.part(tc[0], tc[1])
		requireRefusal(t, permanent, err, "range")
	}
	h, err := j.sink.storage.Head(j.sink.ctx, &hostv1.HeadRequest{Uri: j.uri("parts/a/x.bin")})
	require.NoError(t, err)
	require.EqualValues(t, len(body), h.GetSize())
	names, err := j.list(j.spec.Location)
	require.NoError(t, err)
	require.Equal(t, []string{"parts/a/x.bin"}, names)
}

func (j *job) part(off, n int64) ([]byte, error) {
	st, err := j.sink.storage.Get(j.sink.ctx, &hostv1.GetRequest{Uri: j.uri("parts/a/x.bin"), Offset: off, Length: n})
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

// A stream that breaks off, that names a second object, or whose lease closes leaves nothing.
func TestStorage_BrokenStreamLeavesNothing(t *testing.T) {
	j := storageJob(t)
	uri := j.uri("parts/a/x.bin")
	ctx, cancel := context.WithCancel(j.sink.ctx)
	st, err := j.sink.storage.PutIfAbsent(ctx)
	require.NoError(t, err)
	require.NoError(t, st.Send(&hostv1.PutIfAbsentRequest{Uri: uri, Data: []byte("half")}))
	cancel()
	_, err = st.CloseAndRecv()
	require.Error(t, err)

	st, err = j.sink.storage.PutIfAbsent(j.sink.ctx)
	require.NoError(t, err)
	require.NoError(t, st.Send(&hostv1.PutIfAbsentRequest{Uri: uri, Data: []byte("half")}))
	require.NoError(t, st.Send(&hostv1.PutIfAbsentRequest{Uri: j.uri("parts/b/y.bin"), Data: []byte("other")}))
	_, err = st.CloseAndRecv()
	requireRefusal(t, permanent, err, "only the first message")

	st, err = j.sink.storage.PutIfAbsent(j.sink.ctx)
	require.NoError(t, err)
	_, err = st.CloseAndRecv()
	requireRefusal(t, permanent, err, "first message")

	st, err = j.sink.storage.PutIfAbsent(j.sink.ctx)
	require.NoError(t, err)
	require.NoError(t, st.Send(&hostv1.PutIfAbsentRequest{Uri: uri, Data: []byte("half")}))
	require.NoError(t, j.sink.put(j.uri("parts/sync/x.bin"), nil)) // orders the two streams loosely; either way nothing may appear
	j.lease.Close()
	_, err = st.CloseAndRecv()
	requireRefusal(t, fenced, err, "")

	j.newLease()
	names, err := j.list(j.spec.Location)
	require.NoError(t, err)
	require.Equal(t, []string{"parts/sync/x.bin"}, names)
}
