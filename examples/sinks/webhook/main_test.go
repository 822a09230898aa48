package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk/sdktest"
	"github.com/signet-io/signet/plugins/sinktest"
)

// ear is a receiver: it notes what it is told and answers as it is told to.
type ear struct {
	*httptest.Server
	mu     sync.Mutex
	heard  []event
	keys   []string
	answer func(n int) int // status of the n-th request, from 1
}

func listen(t *testing.T) *ear {
	e := &ear{answer: func(int) int { return http.StatusNoContent }}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got event
		assert.NoError(t, err)
		assert.NoError(t, json.Unmarshal(body, &got))
		assert.Len(t, r.Header.Get("Webhook-Signature"), 64)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard, e.keys = append(e.heard, got), append(e.keys, r.Header.Get("Idempotency-Key"))
		w.WriteHeader(e.answer(len(e.heard)))
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *ear) secrets() map[string]string {
	return map[string]string{"receiver": `{"url": "` + e.URL + `/hook", "signing_key": "k"}`}
}

func (e *ear) dial() map[string]string {
	return map[string]string{"receiver": e.Listener.Addr().String()}
}

// requests are the keys under which it was told something.
func (e *ear) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.keys...)
}

func TestConformance(t *testing.T) {
	e := listen(t)
	sinktest.Run(t, sinktest.InProcess(webhook{}), sinktest.Options{Secrets: e.secrets(), Dial: e.dial()})
	require.NotEmpty(t, e.requests())
}

// table is one with a job's rows to commit.
type table struct {
	t    *testing.T
	host *sinktest.Host
	sink sinkv1.SinkClient
	ref  *sinkv1.TableRef
	spec *planv1.WriteSpec
}

func newTable(t *testing.T, e *ear) *table {
	h := sinktest.NewHost("file:///warehouse/ns/t")
	h.Outward(e.secrets(), e.dial())
	b := &table{t: t, host: h, sink: sdktest.NewTestConn(t, webhook{}, h.Register), ref: &sinkv1.TableRef{Namespace: []string{"ns"}, Name: "t"}}
	_, err := b.sink.CreateTable(t.Context(), &sinkv1.CreateTableRequest{Lease: h.Lease, Table: b.ref, Definition: &sinkv1.TableDefinition{
		Schema: &planv1.Schema{Fields: []*planv1.Field{{Name: "id", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}}}},
	}})
	require.NoError(t, err)
	r, err := b.sink.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Lease: h.Lease, Table: b.ref})
	require.NoError(t, err)
	b.spec = r.GetSpec()
	return b
}

func (b *table) commit(job string) *sinkv1.CommitResponse {
	b.t.Helper()
	r, err := b.sink.Commit(b.t.Context(), &sinkv1.CommitRequest{
		Lease: b.host.Lease, Table: b.ref, Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, Spec: b.spec, MaxAttempts: 3,
		Units: []*sinkv1.Unit{{JobId: job, CommitKey: "key-" + job, Marker: "marker-" + job, Totals: &sinkv1.Totals{Rows: 7}}},
	})
	require.NoError(b.t, err)
	return r
}

const (
	committed = sinkv1.Outcome_OUTCOME_COMMITTED
	already   = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED
)

func TestTell_OnceForAJob(t *testing.T) {
	e := listen(t)
	b := newTable(t, e)
	r := b.commit("a")
	require.Equal(t, committed, r.GetOutcome())
	require.Empty(t, r.GetMessage())
	require.Equal(t, already, b.commit("a").GetOutcome(), "the host asks again")
	require.Equal(t, committed, b.commit("b").GetOutcome())
	require.Equal(t, []string{"key-a", "key-b"}, e.requests())
	require.Equal(t, event{Table: "ns.t", Version: version(0), JobID: "a", Rows: 7}, e.heard[0])
}

func TestTell_AgainUntilItIsHeard(t *testing.T) {
	e := listen(t)
	e.answer = func(n int) int { return map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusOK}[n < 3] }
	b := newTable(t, e)
	require.Equal(t, committed, b.commit("a").GetOutcome())
	require.Equal(t, []string{"key-a", "key-a", "key-a"}, e.requests())
}

// A receiver that is not there fails no commit. It hears of everything later, in order.
func TestTell_WhatWasMissed(t *testing.T) {
	e := listen(t)
	b := newTable(t, e)
	b.host.Outward(e.secrets(), nil)
	r := b.commit("a")
	require.Equal(t, committed, r.GetOutcome())
	require.Contains(t, r.GetMessage(), "the receiver was not told")
	require.NotContains(t, r.GetMessage(), e.URL, "the address may hold a token")
	require.Empty(t, e.requests())
	b.host.Outward(e.secrets(), e.dial())
	require.Equal(t, committed, b.commit("b").GetOutcome())
	require.Equal(t, []string{"key-a", "key-b"}, e.requests())
}

// A crash between the request and its note makes it two requests, under one key.
func TestTell_TwiceAfterACrash(t *testing.T) {
	e := listen(t)
	b := newTable(t, e)
	require.Equal(t, committed, b.commit("a").GetOutcome())
	before := newTable(t, e) // the same table without the note
	for _, o := range b.host.Objects() {
		if !strings.Contains(o, "/_told/") {
			before.host.Put(o, b.host.Body(o))
		}
	}
	before.spec = b.spec
	require.Equal(t, already, before.commit("a").GetOutcome())
	require.Equal(t, []string{"key-a", "key-a"}, e.requests())
}

// A sink that could tell nobody refuses to write.
func TestPrepareWrite_NeedsAReceiver(t *testing.T) {
	e := listen(t)
	b := newTable(t, e)
	for _, secret := range []string{``, `{}`, `{"url": "ftp://x"}`, `{"url": "https://"}`, `"https://x"`} {
		b.host.Outward(map[string]string{"receiver": secret}, e.dial())
		_, err := b.sink.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Lease: b.host.Lease, Table: b.ref})
		require.ErrorContains(t, err, `the secret "receiver" of the webhook sink`, secret)
	}
}
