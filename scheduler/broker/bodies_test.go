package broker_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

// largeJob is a job whose host keeps commit objects beside its journal.
func largeJob(t *testing.T, edit ...func(*broker.LeaseSpec)) *job {
	t.Helper()
	b := &bench{TB: t, config: broker.Config{Bodies: filepath.Join(t.TempDir(), "commits")}}
	b.restart()
	return b.storageJob("file://"+filepath.Join(t.TempDir(), "table"), edit...)
}

// large is a commit object that the journal does not take, with the marker at its end.
func (j *job) large(pad int) []byte {
	return append(bytes.Repeat([]byte("0123456789abcde\n"), (coordinator.MaxBody+pad)/16), strings.Join(j.spec.Markers, ",")...)
}

// commitLarge sends an object in chunks of an odd size, so that markers lie across them.
func (j *job) commitLarge(version string, body []byte) error {
	st, err := j.sink.storage.PutIfAbsent(j.sink.ctx)
	if err != nil {
		return err
	}
	r := &hostv1.PutIfAbsentRequest{Uri: j.uri("_log/" + version + ".json"), CommitPoint: &hostv1.CommitPoint{Version: version, Markers: j.spec.Markers}}
	for chunk := range slicesOf(body, 1<<20-5) {
		r.Data = chunk
		if st.Send(r) != nil {
			break
		}
		r = &hostv1.PutIfAbsentRequest{}
	}
	_, err = st.CloseAndRecv()
	return err
}

func slicesOf(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

func (j *job) bodyFiles() []string {
	entries, err := os.ReadDir(j.config.Bodies)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(j, err)
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(j.config.Bodies, e.Name()))
	}
	return out
}

// A commit object of 48 MiB lands whole. The journal has its digest, and its file is gone once the outcome is journalled.
func TestBody_Lands(t *testing.T) {
	j := largeJob(t)
	body := j.large(32 << 20)
	require.NoError(t, j.commitLarge("1", body))
	j.gate.await(coordinator.Committed)
	there, err := os.ReadFile(strings.TrimPrefix(j.uri("_log/1.json"), "file://"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, there))
	require.Less(t, len(j.gate.journal), 10_000)
	require.Empty(t, j.bodyFiles())
}

func TestBody_Refusals(t *testing.T) {
	j := largeJob(t)
	body := j.large(0)
	requireRefusal(t, permanent, j.commitLarge("1", append(body[:len(body)-3], "..."...)), "could not be found again")
	require.Empty(t, j.bodyFiles())
	other := j.storageJob(j.spec.Location)
	require.NoError(t, other.commitLarge("1", other.large(0)))
	requireRefusal(t, conflict, j.commitLarge("1", j.large(0)), "taken")
	require.Empty(t, j.bodyFiles())
	require.Zero(t, j.gate.m.Seals())
	require.NoError(t, j.gate.Step(coordinator.Cancel{Reason: "by the client"}))
	require.Error(t, j.commitLarge("2", j.large(0)), "the seal is refused")
	require.Empty(t, j.bodyFiles())
}

// Markers are found wherever they lie in an object, also across the messages that bring it.
func TestBody_MarkersAcrossMessages(t *testing.T) {
	j := largeJob(t, units(3))
	pad := bytes.Repeat([]byte("x"), coordinator.MaxBody)
	at := 17*(1<<20-5) - 7
	body := append(append(append([]byte{}, pad...), pad[:at-len(pad)]...), j.spec.Markers[0]+j.spec.Markers[1]+"x"+j.spec.Markers[2]...)
	require.NoError(t, j.commitLarge("1", body))
	requireRefusal(t, permanent, j.storageJob(j.spec.Location, units(1)).commitLarge("2", body), "could not be found again")
}

// sealedLarge is a large commit whose scheduler died while its outcome was unknown.
func sealedLarge(t *testing.T) (*job, *faultyStore, *coordinator.Attempt) {
	t.Helper()
	f := &faultyStore{}
	for range 1000 {
		f.next = append(f.next, "dropped")
	}
	j := largeJob(t, func(s *broker.LeaseSpec) { f.Store, s.Store = s.Store, f })
	go func() { _ = j.commitLarge("1", j.large(0)) }()
	j.gate.await(coordinator.Resolving)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, j.broker.Close(ctx))
	a := j.gate.crash(j.config.Epoch + 1)
	require.NotNil(t, a)
	f.mu.Lock()
	f.next = nil
	f.mu.Unlock()
	j.restart()
	require.Len(t, j.bodyFiles(), 1)
	return j, f, a
}

// S62, S67: the identical object is sent again by the next incarnation.
func TestBody_SentAgainAfterACrash(t *testing.T) {
	j, _, a := sealedLarge(t)
	stray := filepath.Join(j.config.Bodies, "STRAY.body")
	require.NoError(t, os.WriteFile(stray, []byte("of a crash before the seal"), 0o600))
	require.NoError(t, j.broker.KeepBodies([]*coordinator.Attempt{a}))
	require.NoFileExists(t, stray)
	require.Equal(t, coordinator.OutcomeLanded, j.resolve(t, *a).Kind)
	there, err := os.ReadFile(strings.TrimPrefix(j.uri("_log/1.json"), "file://"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(j.large(0), there))
	j.broker.Forget(a)
	require.Empty(t, j.bodyFiles())
}

// A body that is missing or damaged is never sent: the attempt ends when its version is seen to be taken, by whomever.
func TestBody_MissingOrDamaged(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"missing": os.Remove,
		"shorter": func(f string) error { return os.Truncate(f, coordinator.MaxBody+1) },
		"changed": func(f string) error {
			b, err := os.ReadFile(f)
			if err == nil {
				b[len(b)/2] ^= 1
				err = os.WriteFile(f, b, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, f, a := sealedLarge(t)
			require.NoError(t, spoil(j.bodyFiles()[0]))
			f.mu.Lock()
			before := f.puts
			f.mu.Unlock()
			ended := make(chan coordinator.Outcome, 1)
			go func() {
				o, err := j.broker.Resolve(t.Context(), j.spec, *a)
				if err == nil {
					ended <- o
				}
			}()
			other := j.storageJob(j.spec.Location, func(s *broker.LeaseSpec) { s.Store = openStore(t, j.spec.Location) })
			_, err := other.commitObject("1", other.body("b"))
			require.NoError(t, err)
			require.Equal(t, coordinator.OutcomeDead, (<-ended).Kind)
			require.Equal(t, before, f.puts, "nothing was sent")
		})
	}
}

func openStore(t *testing.T, location string) storage.Store {
	t.Helper()
	s, err := storage.Local.Open(t.Context(), location)
	require.NoError(t, err)
	return s
}
