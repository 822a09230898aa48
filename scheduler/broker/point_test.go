package broker_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

// commitObject creates version n of the log.
func (j *job) commitObject(version, body string) (*hostv1.PutIfAbsentResponse, error) {
	return j.sink.putPoint(j.uri("_log/"+version+".json"), []byte(body), &hostv1.CommitPoint{Version: version, Markers: j.spec.Markers})
}

func (j *job) body(text string) string {
	return `{"marker":"` + j.spec.Markers[0] + `","text":"` + text + `"}`
}

func TestPoint_LandsOnceAndConflicts(t *testing.T) {
	j := storageJob(t)
	_, err := j.commitObject("1", j.body("a"))
	require.NoError(t, err)
	require.Equal(t, coordinator.Committed, j.gate.state())
	require.Equal(t, coordinator.Result{Version: "1", Location: j.uri("_log/1.json")}, *j.gate.m.Result())
	_, err = j.commitObject("2", j.body("a"))
	again := requireRefusal(t, already, err, "committed")
	require.Equal(t, "1", again.GetVersion())

	other := j.storageJob(j.spec.Location)
	_, err = other.commitObject("1", other.body("a"))
	requireRefusal(t, conflict, err, "taken")
	require.Equal(t, coordinator.Committing, other.gate.state())
	_, err = other.commitObject("2", other.body("a"))
	require.NoError(t, err)
	names, err := other.list(j.spec.Location)
	require.NoError(t, err)
	require.Equal(t, []string{"_log/1.json", "_log/2.json"}, names)
}

func TestPoint_Refusals(t *testing.T) {
	j := storageJob(t)
	put := func(body string, cp *hostv1.CommitPoint) error {
		_, err := j.sink.putPoint(j.uri("_log/1.json"), []byte(body), cp)
		return err
	}
	m := j.spec.Markers
	requireRefusal(t, permanent, put("", &hostv1.CommitPoint{Version: "1", Markers: m}), "empty")
	requireRefusal(t, permanent, put(j.body("x"), &hostv1.CommitPoint{Markers: m}), "no version")
	requireRefusal(t, permanent, put(j.body("x"), &hostv1.CommitPoint{Version: "1"}), "exactly")
	requireRefusal(t, permanent, put(j.body("x"), &hostv1.CommitPoint{Version: "1", Markers: []string{"abc"}}), "exactly")
	requireRefusal(t, permanent, put("no marker inside", &hostv1.CommitPoint{Version: "1", Markers: m}), "could not be found again")
	st, err := j.sink.storage.PutIfAbsent(j.sink.ctx)
	require.NoError(t, err)
	for i := range 18 {
		r := &hostv1.PutIfAbsentRequest{Data: []byte(strings.Repeat("x", 1<<20))}
		if i == 0 {
			r.Uri, r.CommitPoint = j.uri("_log/1.json"), &hostv1.CommitPoint{Version: "1", Markers: m}
		}
		if st.Send(r) != nil {
			break
		}
	}
	_, err = st.CloseAndRecv()
	requireRefusal(t, permanent, err, "keeps none beside its journal")
	require.Zero(t, j.gate.m.Seals())

	catalogSink := j.storageJob(j.spec.Location, func(s *broker.LeaseSpec) {
		s.Sink = logSink()
		s.Sink.CommitPoint = icebergSink().GetCommitPoint()
	})
	_, err = catalogSink.commitObject("1", catalogSink.body("x"))
	requireRefusal(t, permanent, err, "no commit point in storage")
}

// faultyStore fails puts: by losing the answer, or by doing nothing.
type faultyStore struct {
	storage.Store
	mu   sync.Mutex
	next []string
	puts int
}

func (f *faultyStore) PutIfAbsent(ctx context.Context, uri string, body io.Reader) (storage.Info, error) {
	f.mu.Lock()
	f.puts++
	fault := ""
	if len(f.next) > 0 {
		fault, f.next = f.next[0], f.next[1:]
	}
	f.mu.Unlock()
	switch fault {
	case "dropped":
		return storage.Info{}, errors.New("503")
	case "lost":
		if _, err := f.Store.PutIfAbsent(ctx, uri, body); err != nil {
			return storage.Info{}, err
		}
		return storage.Info{}, errors.New("connection reset")
	default:
		return f.Store.PutIfAbsent(ctx, uri, body)
	}
}

// D1, D5, C3: lost answers, 503s and "exists" about our own object.
func TestPoint_UnknownOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		faults []string
		want   []coordinator.OutcomeKind
		puts   int
	}{
		"reply lost":   {[]string{"lost"}, []coordinator.OutcomeKind{coordinator.OutcomeLanded}, 1},
		"nothing done": {[]string{"dropped", "dropped"}, []coordinator.OutcomeKind{coordinator.OutcomeUnknown, coordinator.OutcomeLanded}, 3},
		"then lost":    {[]string{"dropped", "lost"}, []coordinator.OutcomeKind{coordinator.OutcomeUnknown, coordinator.OutcomeLanded}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := &faultyStore{next: tc.faults}
			j := storageJob(t, func(s *broker.LeaseSpec) { f.Store, s.Store = s.Store, f })
			_, err := j.commitObject("1", j.body("a"))
			require.NoError(t, err)
			require.Equal(t, tc.want, j.gate.outcomes())
			require.Equal(t, tc.puts, f.puts)
			require.Equal(t, coordinator.Committed, j.gate.state())
		})
	}
}

func TestPoint_SomebodyElseTakesTheNameMeanwhile(t *testing.T) {
	f := &faultyStore{next: []string{"dropped"}}
	j := storageJob(t, func(s *broker.LeaseSpec) { f.Store, s.Store = s.Store, f })
	_, err := j.gate.Seal(t.Context(), coordinator.Attempt{
		Epoch: j.config.Epoch, Kind: coordinator.KindStorage, Version: "1", Markers: j.spec.Markers, URI: j.uri("_log/1.json"), Body: []byte(j.body("a")),
	})
	require.NoError(t, err)
	a := j.gate.crash(j.config.Epoch + 1)
	require.NotNil(t, a)
	other := j.storageJob(j.spec.Location)
	_, err = other.commitObject("1", other.body("b"))
	require.NoError(t, err)
	o, err := j.broker.Resolve(t.Context(), j.spec, *a)
	require.NoError(t, err)
	require.Equal(t, coordinator.OutcomeDead, o.Kind)
}

// The object of a lost incarnation is recognised before anything is sealed.
func TestPoint_MemoryLost(t *testing.T) {
	j := storageJob(t)
	_, err := j.commitObject("1", j.body("a"))
	require.NoError(t, err)
	j.restart()
	again := j.storageJob(j.spec.Location, func(s *broker.LeaseSpec) { s.Markers = j.spec.Markers })
	_, err = again.commitObject("1", j.body("a"))
	require.Equal(t, "1", requireRefusal(t, already, err, "committed").GetVersion())
	require.Zero(t, again.gate.m.Seals())
	require.FileExists(t, strings.TrimPrefix(j.uri("_log/1.json"), "file://"))
}

// LoadTable of a storage sink names the place and nothing else.
func TestPoint_LoadTable(t *testing.T) {
	j := storageJob(t)
	l, err := j.sink.load()
	require.NoError(t, err)
	require.True(t, l.missing)
	require.Equal(t, j.spec.Location, l.home)
	_, err = j.sink.send(j.sink.ctx, []byte("[]"), []byte("[]"))
	requireRefusal(t, permanent, err, "no catalog")
	_, err = j.sink.catalog.CreateTable(j.sink.ctx, &hostv1.CreateTableRequest{})
	requireRefusal(t, permanent, err, "does not allow")
}
