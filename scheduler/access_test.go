package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/journal"
)

// signingStore is an object store as the scheduler sees it.
type signingStore struct {
	storage.Store
	signed  []string
	removed chan string
	until   time.Time
	err     error
	size    int64 // of every file
}

func (s *signingStore) Sign(_ context.Context, uri string, what objects.Signing) (objects.Signed, error) {
	s.signed = append(s.signed, what.Method+" "+uri)
	return objects.Signed{Method: what.Method, URL: "https://store/?X-Amz-Signature=canary-signature", Header: what.Header, Until: s.until}, s.err
}

func (s *signingStore) Stat(context.Context, string) (storage.Info, error) {
	return storage.Info{Size: s.size}, s.err
}

func (s *signingStore) RemoveAll(_ context.Context, prefix string) (int, error) {
	s.removed <- prefix
	return 0, nil
}

const lakeData = "s3://lake/wh/s/t/data"

// remoteReport is a write of one task into an object store, which reads one of its files and that one's deletes.
func remoteReport(t *testing.T) (*report, *signingStore, *executorv1.AttemptRef) {
	t.Helper()
	r := newReport(t)
	store := &signingStore{size: 10, removed: make(chan string, 100)}
	entry := &catalogEntry{name: "lake", stores: storage.OpenerFunc(func(_ context.Context, location string) (storage.Store, error) {
		if !isRemote(location) {
			return nil, fmt.Errorf("%s: %w", location, storage.ErrUnsupported)
		}
		return store, nil
	})}
	r.w.s.catalogs["lake"], r.w.target, r.w.store = entry, &target{entry: entry, ident: catalog.Ident{"s", "t"}}, store
	r.w.spec.DataLocation = lakeData
	a := r.w.s.attempt(r.attempt)
	a.job.write = r.w
	a.task.Sources = []*planv1.Source{{Kind: &planv1.Source_Table{Table: &planv1.TableScan{Catalog: "lake", Files: []*planv1.PinnedFile{
		{Uri: lakeData + "/in.parquet", Deletes: []*planv1.DeleteFile{{Uri: lakeData + "/in.puffin"}}}, {Path: "/etc/passwd"},
	}}}}}
	return r, store, a.ref
}

// J19, J20: an attempt gets reads of the files of its own task, and writes below its own prefix.
func TestAccess_OfOneAttempt_J19_J20(t *testing.T) {
	r, store, ref := remoteReport(t)
	s := r.w.s
	prefix := attemptPrefix(r.w.spec, ref.JobId, 0, 0, ref.AttemptId)
	ask := func(r *executorv1.AccessRequest) *executorv1.Access {
		if r.Analysis == "" && r.Attempt == nil {
			r.Attempt = ref
		}
		return s.Access(t.Context(), "x", r, nil)
	}
	out := ask(&executorv1.AccessRequest{
		Reads: []string{lakeData + "/in.parquet", lakeData + "/in.puffin"},
		Puts:  []*executorv1.PutRequest{{Name: "a.parquet", SizeBytes: 3, Crc32C: []byte{0, 0, 0, 1}}, {Name: "a.parquet", Head: true}},
	})
	require.Nil(t, out.GetError())
	require.Equal(t, []string{"GET " + lakeData + "/in.parquet", "GET " + lakeData + "/in.puffin", "PUT " + prefix + "/a.parquet", "HEAD " + prefix + "/a.parquet"}, store.signed)
	require.Equal(t, ref.AttemptId, out.GetPuts()[0].GetHeaders()["X-Amz-Meta-Signet-Put"])
	require.Equal(t, "*", out.GetPuts()[0].GetHeaders()["If-None-Match"])
	require.Equal(t, prefix+"/a.parquet", out.GetPuts()[0].GetUri())
	require.Positive(t, out.GetValidMillis())
	require.Nil(t, out.GetWrite(), "no session of the store's own")

	store.signed = nil
	for name, req := range map[string]*executorv1.AccessRequest{
		"a file of the table that is not the task's": {Reads: []string{lakeData + "/other.parquet"}},
		"the table's metadata":                       {Reads: []string{"s3://lake/wh/s/t/metadata/v1.metadata.json"}},
		"a local file of the task":                   {Reads: []string{"/etc/passwd"}},
		"one of several":                             {Reads: []string{lakeData + "/in.parquet", lakeData + "/other.parquet"}, Puts: []*executorv1.PutRequest{{Name: "a", Head: true}}},
		"a name that leads out":                      {Puts: []*executorv1.PutRequest{{Name: "../x", Head: true}}},
		"too many at a time":                         {Puts: make([]*executorv1.PutRequest, 513)},
	} {
		out := ask(req)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, out.GetError().GetClass(), name)
		require.Empty(t, out.GetReads(), name)
		require.Empty(t, out.GetPuts(), name)
	}
	for _, u := range store.signed {
		require.Equal(t, "GET "+lakeData+"/in.parquet", u, "what is signed before a refusal is not handed out")
	}

	analysis := &executorv1.Analyze{Sources: s.attempt(r.attempt).task.Sources}
	out = s.Access(t.Context(), "x", &executorv1.AccessRequest{Analysis: "q", Reads: []string{lakeData + "/in.parquet"}}, analysis)
	require.Len(t, out.GetReads(), 1)
	out = s.Access(t.Context(), "x", &executorv1.AccessRequest{Analysis: "q", Puts: []*executorv1.PutRequest{{Name: "a", Head: true}}}, analysis)
	require.NotNil(t, out.GetError(), "an analysis writes nothing")
	out = s.Access(t.Context(), "x", &executorv1.AccessRequest{Analysis: "q", Reads: []string{lakeData + "/other.parquet"}}, analysis)
	require.NotNil(t, out.GetError())
}

// What a catalog gives for a table signs what is about that table's files, and sweeps what its attempts have left.
func TestAccess_WithWhatTheCatalogGivesForTheTable(t *testing.T) {
	r, store, ref := remoteReport(t)
	var opened []string
	r.w.target.entry.catalog = &vendingCatalog{store: func(id catalog.Ident, location string) storage.Store {
		opened = append(opened, id.String()+" "+location)
		return store
	}}
	r.w.s.attempt(r.attempt).task.Sources[0].GetTable().Ident = []string{"s", "read"}
	out := r.w.s.Access(t.Context(), "x", &executorv1.AccessRequest{
		Attempt: ref, Reads: []string{lakeData + "/in.parquet"}, Puts: []*executorv1.PutRequest{{Name: "a", Head: true}},
	}, nil)
	require.Nil(t, out.GetError())
	prefix := attemptPrefix(r.w.spec, ref.JobId, 0, 0, ref.AttemptId)
	require.Equal(t, []string{"s.read " + lakeData, "s.t " + prefix}, opened)

	task := r.w.s.attempt(r.attempt).task
	rec := r.w.attemptRecord(r.w.attemptTask(&planv1.Task{JobId: ref.JobId, Work: task.Work}, ref.AttemptId))
	require.Equal(t, []string{"s", "t"}, rec.Ident)
	require.NoError(t, r.w.s.journal.Update(func(tx *journal.Tx) error {
		if err := tx.PutAttempt(rec); err != nil {
			return err
		}
		return r.w.s.oweSweeps(tx, &journal.Job{ID: ref.JobId})
	}))
	opened = nil
	r.w.s.sweepOnce(t.Context())
	require.Equal(t, prefix, <-store.removed)
	require.Equal(t, []string{"s.t " + lakeData}, opened)
}

type vendingCatalog struct {
	catalog.Catalog
	store func(catalog.Ident, string) storage.Store
}

func (c *vendingCatalog) Store(_ context.Context, id catalog.Ident, location string) (storage.Store, error) {
	return c.store(id, location), nil
}

func (*vendingCatalog) Close() error { return nil }

// J19: nothing for attempts that are replaced, of jobs that have ended, or under other ids.
func TestAccess_NoneAfterTheAttemptsEnd_J19(t *testing.T) {
	put := func(ref *executorv1.AttemptRef) *executorv1.AccessRequest {
		return &executorv1.AccessRequest{Attempt: ref, Puts: []*executorv1.PutRequest{{Name: "a", Head: true}}}
	}
	for name, end := range map[string]func(r *report, ref *executorv1.AttemptRef){
		"replaced":     func(r *report, _ *executorv1.AttemptRef) { r.w.giveUp(r.attempt) },
		"cancelled":    func(r *report, _ *executorv1.AttemptRef) { r.w.job.cancel(errCancelled) },
		"older epoch":  func(_ *report, ref *executorv1.AttemptRef) { ref.Epoch-- },
		"another job":  func(_ *report, ref *executorv1.AttemptRef) { ref.JobId = uuid.NewString() },
		"another task": func(_ *report, ref *executorv1.AttemptRef) { ref.Task++ },
	} {
		t.Run(name, func(t *testing.T) {
			r, store, ref := remoteReport(t)
			ref = proto.CloneOf(ref)
			require.Nil(t, r.w.s.Access(t.Context(), "x", put(ref), nil).GetError())
			store.signed = nil
			end(r, ref)
			out := r.w.s.Access(t.Context(), "x", put(ref), nil)
			require.NotNil(t, out.GetError())
			require.Empty(t, out.GetPuts())
			require.Empty(t, store.signed)
		})
	}
	r, store, ref := remoteReport(t)
	store.err = objects.ErrBusy
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_IO, r.w.s.Access(t.Context(), "x", put(ref), nil).GetError().GetClass(), "which is asked for again")
}

func TestAccess_AnAttemptsFilesAreCounted(t *testing.T) {
	var n names
	for i := range maxAttemptNames {
		require.True(t, n.add(fmt.Sprint(i)))
	}
	require.True(t, n.add("7"), "another request about one of them")
	require.False(t, n.add("one more"))
}

// Nothing of what is granted is in the journal or in the log.
func TestAccess_IsWrittenNowhere(t *testing.T) {
	r, store, ref := remoteReport(t)
	out := r.w.s.Access(t.Context(), "x", &executorv1.AccessRequest{Attempt: ref, Puts: []*executorv1.PutRequest{{Name: "a", Head: true}}}, nil)
	require.Contains(t, out.GetPuts()[0].GetUrl(), "canary-signature")
	store.err = errors.New("refused")
	require.NotContains(t, r.w.s.Access(t.Context(), "x", &executorv1.AccessRequest{Attempt: ref, Puts: []*executorv1.PutRequest{{Name: "a", Head: true}}}, nil).String(), "canary")
	require.NoError(t, r.w.s.journal.View(func(tx *journal.Tx) error {
		return tx.Attempts(ref.JobId, func(a *journal.Attempt) error {
			b, err := json.Marshal(a)
			require.NotContains(t, string(b), "canary")
			return err
		})
	}))
}

// A file that cannot be looked at says nothing about a task manifest: it is reported again. One that is not there, or is another, refuses it.
func TestAccept_AStoreThatIsBusyRefusesNothing(t *testing.T) {
	r, store, _ := remoteReport(t)
	prefix := attemptPrefix(r.w.spec, r.w.job.id, 0, 0, r.attempt)
	chunks, err := manifest.Encode(
		&planv1.ManifestHeader{JobId: r.w.job.id, AttemptId: r.attempt, Epoch: r.w.s.journal.Epoch(), TableUuid: r.w.spec.TableUuid, Prefix: prefix},
		[]*planv1.DataFile{{Path: fmt.Sprintf("%s/0-0-%s-0.parquet", prefix, r.attempt), Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 1, SizeBytes: 10}},
	)
	require.NoError(t, err)
	report := func() (bool, string, error) {
		rd := manifest.NewReader(manifest.Limits{})
		for _, c := range chunks {
			require.NoError(t, rd.Add(c))
		}
		return r.w.accept(t.Context(), rd)
	}
	for _, again := range []error{objects.ErrBusy, objects.ErrUnknown, &objects.Error{Op: "head", Status: http.StatusBadGateway, Err: objects.ErrUnknown}} {
		store.err = again
		ok, reason, err := report()
		require.ErrorIs(t, err, errUnseen)
		require.False(t, ok)
		require.Empty(t, reason)
		require.Empty(t, r.w.job.events.take(), "no failure is counted")
	}
	store.err = fmt.Errorf("x: %w", storage.ErrNotFound)
	ok, reason, err := report()
	require.NoError(t, err)
	require.False(t, ok)
	require.Contains(t, reason, "refused")
	store.err, store.size = nil, 10
	ok, _, err = report()
	require.NoError(t, err)
	require.True(t, ok)
}

// S72: below a remote prefix somebody may write until the last access to it has run out; the duty is not over before, also where the executor has confirmed the end.
func TestSweep_NotOverBeforeAccessIs_S72(t *testing.T) {
	r, store, ref := remoteReport(t)
	s := r.w.s
	prefix := attemptPrefix(r.w.spec, ref.JobId, 0, 0, ref.AttemptId)
	duty := func() *journal.Duty {
		var out *journal.Duty
		require.NoError(t, s.journal.View(func(tx *journal.Tx) error {
			return tx.Duties(func(d *journal.Duty) error { c := *d; out = &c; return nil })
		}))
		return out
	}
	require.NoError(t, s.journal.Update(func(tx *journal.Tx) error {
		if err := tx.PutAttempt(&journal.Attempt{Job: ref.JobId, ID: ref.AttemptId, Prefix: prefix, Location: lakeData, Catalog: "lake"}); err != nil {
			return err
		}
		s.ended[ref.AttemptId] = time.Now() // its executor has said so
		return s.oweSweeps(tx, &journal.Job{ID: ref.JobId})
	}))
	begun := time.Now()
	require.WithinRange(t, s.accessEnds(&journal.Attempt{Prefix: prefix, Catalog: "another"}, begun), begun.Add(65*time.Minute), begun.Add(65*time.Minute), "a session may live for an hour")
	s.sweepOnce(t.Context())
	require.Equal(t, prefix, <-store.removed, "at once")
	d := duty()
	require.NotNil(t, d, "and once more")
	require.True(t, d.NotBefore.After(begun.Add(19*time.Minute)), "when no access is left: %s", d.NotBefore)
	s.sweepOnce(t.Context())
	require.Empty(t, store.removed)

	d.NotBefore, d.Until = time.Now().Add(-time.Second), time.Now().Add(-time.Second)
	require.NoError(t, s.journal.Update(func(tx *journal.Tx) error { return tx.PutDuty(d) }))
	s.sweepOnce(t.Context())
	require.Equal(t, prefix, <-store.removed)
	require.Nil(t, duty())
}
