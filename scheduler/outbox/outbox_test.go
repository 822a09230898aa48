package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/outbox"
)

// receiver remembers what it was sent, and fails as it is told.
type receiver struct {
	mu    sync.Mutex
	got   []string
	fail  int // the next so many sends
	after int // of a failing send, so many are delivered
	sent  chan struct{}
}

func newReceiver() *receiver { return &receiver{sent: make(chan struct{}, 1000)} }

func (r *receiver) Send(_ context.Context, list []outbox.Message) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.sent <- struct{}{} }()
	n := len(list)
	var err error
	if r.fail > 0 {
		r.fail--
		n, err = min(r.after, n), errors.New("away")
	}
	for _, m := range list[:n] {
		r.got = append(r.got, string(m.Body))
	}
	return n, err
}

func (r *receiver) Close() error { return nil }

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.got...)
}

func open(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Wait: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func config(j *journal.Journal, target outbox.Target) outbox.Config {
	return outbox.Config{To: "x", Name: "x", Target: target, Journal: j, Logger: slog.New(slog.DiscardHandler), BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond}
}

func start(t *testing.T, cfg outbox.Config) (*outbox.Outbox, func()) {
	t.Helper()
	o, err := outbox.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); o.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return o, stop
}

func put(t *testing.T, o *outbox.Outbox, j *journal.Journal, bodies ...string) {
	t.Helper()
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		for _, b := range bodies {
			if err := o.Put(tx, "job", outbox.Message{Body: []byte(b), Path: map[string]string{"table": b}}); err != nil {
				return err
			}
		}
		return nil
	}))
}

func numbers(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func TestOutbox_TellsInOrderWhateverFails(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j.db"))
	r := newReceiver()
	r.fail, r.after = 3, 5
	o, _ := start(t, config(j, r))
	o.Note(outbox.Message{Body: []byte("first")})
	put(t, o, j, numbers(0, 150)...)
	require.NoError(t, o.Flush(t.Context()))
	require.Equal(t, append([]string{"first"}, numbers(0, 150)...), r.all(), "each once: failed sends go on where they ended")
	require.Equal(t, outbox.Stats{Sent: 151, Failed: 3}, o.Stats())
	require.NoError(t, j.View(func(tx *journal.Tx) error {
		left, err := tx.Outgoing("x", 10)
		require.Empty(t, left)
		return err
	}))
}

func TestOutbox_SurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	j := open(t, path)
	away := newReceiver()
	away.fail = 1 << 30
	o, stop := start(t, config(j, away))
	put(t, o, j, numbers(0, 70)...)
	<-away.sent
	stop()
	require.NoError(t, j.Close())

	j = open(t, path)
	r := newReceiver()
	o, err := outbox.New(config(j, r))
	require.NoError(t, err)
	require.Equal(t, 70, o.Stats().Pending)
	o, _ = start(t, config(j, r))
	put(t, o, j, "70")
	require.NoError(t, o.Flush(t.Context()))
	require.Equal(t, numbers(0, 71), r.all())
}

func TestOutbox_IsBounded(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j.db"))
	r := newReceiver()
	r.fail = 1 << 30
	cfg := config(j, r)
	cfg.Pending = 3
	o, _ := start(t, cfg)
	for _, n := range numbers(0, 5) {
		put(t, o, j, n)
	}
	o.Note(outbox.Message{Body: []byte("x")})
	require.EqualValues(t, 3, o.Stats().Dropped)
	require.Equal(t, 3, o.Stats().Pending)
	r.mu.Lock()
	r.fail = 0
	r.mu.Unlock()
	require.NoError(t, o.Flush(t.Context()))
	require.Equal(t, numbers(0, 3), r.all())
	put(t, o, j, "9")
	require.NoError(t, o.Flush(t.Context()))
	require.Equal(t, append(numbers(0, 3), "9"), r.all())
}

func TestOutbox_ReceiversAreApart(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j.db"))
	a, b := newReceiver(), newReceiver()
	a.fail = 1 << 30 // away
	ca, cb := config(j, a), config(j, b)
	ca.To, cb.To = "a", "ab" // one name begins with the other
	oa, _ := start(t, ca)
	ob, _ := start(t, cb)
	put(t, oa, j, "1", "2")
	put(t, ob, j, "3")
	require.NoError(t, ob.Flush(t.Context()))
	require.Equal(t, []string{"3"}, b.all())
	require.Equal(t, 2, oa.Stats().Pending)
}

func TestOutbox_NilTakesNothing(t *testing.T) {
	var o *outbox.Outbox
	require.NoError(t, o.Put(nil, "", outbox.Message{}))
	o.Note(outbox.Message{})
	require.NoError(t, o.Flush(t.Context()))
	require.Zero(t, o.Stats())
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "er", "events.jsonl")
	f, err := outbox.NewFile(path)
	require.NoError(t, err)
	send := func(bodies ...string) {
		var list []outbox.Message
		for _, b := range bodies {
			list = append(list, outbox.Message{Body: []byte(b)})
		}
		n, err := f.Send(t.Context(), list)
		require.NoError(t, err)
		require.Equal(t, len(list), n)
	}
	send(`{"a":1}`, `{"a":2}`)
	half, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = half.WriteString(`{"a":`)
	require.NoError(t, errors.Join(err, half.Close()))
	send(`{"a":3}`)
	require.NoError(t, os.Rename(path, path+".1")) // rotated
	send(`{"a":4}`)
	old, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	require.Equal(t, "{\"a\":1}\n{\"a\":2}\n{\"a\":\n{\"a\":3}\n", string(old))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{\"a\":4}\n", string(now))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	_, err = outbox.NewFile(filepath.Join(path, "below-a-file"))
	require.Error(t, err)
}

func TestHTTP(t *testing.T) {
	type request struct{ path, auth, kind, body string }
	var mu sync.Mutex
	var got []request
	answers := []int{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirection was followed") }))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		mu.Lock()
		defer mu.Unlock()
		code := 201
		if len(answers) > 0 {
			code, answers = answers[0], answers[1:]
		}
		got = append(got, request{r.URL.EscapedPath(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)})
		if code == 302 {
			w.Header().Set("Location", elsewhere.URL)
		}
		w.WriteHeader(code)
	}))
	defer srv.Close()
	token := "Bearer one"
	var log strings.Builder
	h := outbox.NewHTTP(srv.URL+"/v1/namespaces/{namespace}/tables/{table}/metrics", time.Second, func() (map[string]string, error) {
		if token == "" {
			return nil, errors.New("no token")
		}
		return map[string]string{"Authorization": token}, nil
	}, slog.New(slog.NewTextHandler(&log, nil)))
	defer func() { require.NoError(t, h.Close()) }()
	list := []outbox.Message{
		{Body: []byte(`{"a":1}`), Path: map[string]string{"namespace": "a\x1fb", "table": "t/ü"}},
		{Body: []byte(`{"a":2}`), Path: map[string]string{"namespace": "n", "table": "t"}},
	}
	n, err := h.Send(t.Context(), list)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, request{"/v1/namespaces/a%1Fb/tables/t%2F%C3%BC/metrics", "Bearer one", "application/json", `{"a":1}`}, got[0])

	for _, code := range []int{500, 503, 429, 401, 403, 302, 404} {
		answers = []int{201, code}
		n, err = h.Send(t.Context(), list)
		require.ErrorContains(t, err, fmt.Sprint(code))
		require.Equal(t, 1, n, "the second is sent again")
	}
	answers = []int{400, 201}
	n, err = h.Send(t.Context(), list)
	require.NoError(t, err, "what is refused for good holds up nothing")
	require.Equal(t, 2, n)
	require.Contains(t, log.String(), "refused")

	token = "Bearer two"
	got = nil
	_, err = h.Send(t.Context(), list[:1])
	require.NoError(t, err)
	require.Equal(t, "Bearer two", got[0].auth, "secrets are read again")
	token = ""
	n, err = h.Send(t.Context(), list)
	require.ErrorContains(t, err, "no token")
	require.Zero(t, n)
	srv.Close()
	token = "t"
	_, err = h.Send(t.Context(), list)
	require.Error(t, err)
}
