package rest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/catalog/storage"
)

// server speaks Iceberg's REST protocol over a catalog in SQLite.
type server struct {
	cat     *sql.Catalog
	url     string
	page    int    // names on a page of a list; 0: all
	config  string // the answer to /v1/config
	noStage bool
	noETag  bool
	loses   []string                             // tables whose changes in a transaction it forgets
	loose   bool                                 // takes an append to an empty table also when the table is empty no longer, and what was there is lost
	vend    func(location string) map[string]any // what goes with a table for who asks for credentials; nil: nothing

	one       sync.Mutex // loose commit at a time
	mu        sync.Mutex
	calls     []string
	delegated []string // those that asked for credentials
}

const plainConfig = `{"defaults":{},"overrides":{}}`

func newServer(t testing.TB) *server {
	return newServerOver(t, "file://"+filepath.Join(t.TempDir(), "wh"), nil)
}

func newServerOver(t testing.TB, warehouse string, stores storage.Opener) *server {
	cat, err := sql.Open(t.Context(), sql.Options{
		Name: "behind", URI: "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), Warehouse: warehouse, Stores: stores,
	})
	require.NoError(t, err)
	s := &server{cat: cat, config: plainConfig}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.Close(); require.NoError(t, cat.Close()) })
	s.url = srv.URL
	return s
}

// open connects a client to the server, or to what stands in front of it.
func (s *server) open(t testing.TB, at string, change ...func(*rest.Options)) *rest.Catalog {
	o := rest.Options{Name: "lake", URI: at, Warehouse: s.cat.Warehouse()}
	for _, f := range change {
		f(&o)
	}
	c, err := rest.Open(t.Context(), o)
	require.NoError(t, err)
	return c
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+r.URL.EscapedPath())
	if v := r.Header.Values("X-Iceberg-Access-Delegation"); v != nil {
		s.delegated = append(s.delegated, r.Method+" "+r.URL.EscapedPath()+" "+strings.Join(v, ","))
	}
	s.mu.Unlock()
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/v1/"), "/")
	for i := range path {
		if i != 1 {
			path[i], _ = url.PathUnescape(path[i])
		}
	}
	switch {
	case path[0] == "transactions":
		s.transact(w, r)
	case path[0] == "config":
		_, _ = w.Write([]byte(s.config))
	case len(path) == 1 && r.Method == http.MethodGet:
		s.namespaces(w, r)
	case len(path) == 1:
		s.createNamespace(w, r)
	case len(path) == 2:
		reply(w, map[string]any{"namespace": decodeNamespace(path[1]), "properties": map[string]string{}})
	case len(path) == 3 && r.Method == http.MethodGet:
		s.tables(w, r, decodeNamespace(path[1]))
	case len(path) == 3:
		s.create(w, r, decodeNamespace(path[1]))
	default:
		s.table(w, r, append(decodeNamespace(path[1]), path[3]))
	}
}

func decodeNamespace(text string) catalog.Ident {
	var ns catalog.Ident
	for p := range strings.SplitSeq(text, "%1F") {
		p, _ = url.PathUnescape(p)
		ns = append(ns, p)
	}
	return ns
}

func reply(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func fail(w http.ResponseWriter, err error) {
	status, kind := http.StatusInternalServerError, "InternalServerError"
	switch {
	case errors.Is(err, catalog.ErrExists):
		status, kind = http.StatusConflict, "AlreadyExistsException"
	case errors.Is(err, catalog.ErrConflict):
		status, kind = http.StatusConflict, "CommitFailedException"
		if errors.Is(err, catalog.ErrNotFound) {
			status, kind = http.StatusNotFound, "NoSuchTableException"
		}
	case errors.Is(err, catalog.ErrNotFound):
		status, kind = http.StatusNotFound, "NoSuchThingException"
	case errors.Is(err, catalog.ErrPermanent):
		status, kind = http.StatusBadRequest, "BadRequestException"
	}
	w.WriteHeader(status)
	reply(w, map[string]any{"error": map[string]any{"message": err.Error(), "type": kind, "code": status}})
}

func (s *server) show(w http.ResponseWriter, r *http.Request, t *catalog.Table, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	if etag := `"` + t.MetadataLocation + `"`; !s.noETag {
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", etag)
	}
	raw, err := s.cat.RawMetadata(r.Context(), t)
	if err != nil {
		fail(w, err)
		return
	}
	doc := map[string]any{"metadata-location": t.MetadataLocation, "metadata": json.RawMessage(raw), "config": map[string]string{}}
	s.give(r, doc, t.Location)
	reply(w, doc)
}

// give adds credentials to an answer, for who asks for them.
func (s *server) give(r *http.Request, doc map[string]any, location string) {
	if s.vend == nil || r.Header.Get("X-Iceberg-Access-Delegation") != "vended-credentials" {
		return
	}
	for k, v := range s.vend(location) {
		doc[k] = v
	}
}

func (s *server) table(w http.ResponseWriter, r *http.Request, id catalog.Ident) {
	switch r.Method {
	case http.MethodGet:
		t, err := s.cat.Load(r.Context(), id)
		s.show(w, r, t, err)
	case http.MethodDelete:
		if err := s.cat.Drop(r.Context(), id); err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		var body struct{ Requirements, Updates json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			fail(w, catalog.ErrPermanent)
			return
		}
		if s.loose {
			s.one.Lock()
			defer s.one.Unlock()
			var err error
			if body.Requirements, body.Updates, err = s.loosen(r.Context(), id, body.Requirements, body.Updates); err != nil {
				fail(w, err)
				return
			}
		}
		t, err := s.cat.Commit(r.Context(), id, body.Requirements, body.Updates)
		s.show(w, r, t, err)
	}
}

func (s *server) create(w http.ResponseWriter, r *http.Request, ns catalog.Ident) {
	var body struct {
		Name     string
		Location string
		Schema   json.RawMessage
		Spec     json.RawMessage   `json:"partition-spec"`
		Order    json.RawMessage   `json:"write-order"`
		Stage    bool              `json:"stage-create"`
		Props    map[string]string `json:"properties"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, catalog.ErrPermanent)
		return
	}
	id := append(slices.Clone(ns), body.Name)
	if body.Stage {
		if s.noStage {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		location, err := body.Location, error(nil)
		if location == "" {
			location, err = s.cat.DefaultLocation(r.Context(), id)
		}
		if err != nil {
			fail(w, err)
			return
		}
		doc := map[string]any{"metadata": map[string]string{"location": location, "table-uuid": uuid.NewString()}}
		s.give(r, doc, location)
		reply(w, doc)
		return
	}
	t, err := s.cat.Create(r.Context(), id, catalog.CreateSpec{
		Schema: body.Schema, PartitionSpec: body.Spec, SortOrder: body.Order, Properties: body.Props, Location: body.Location,
	})
	s.show(w, r, t, err)
}

func (s *server) createNamespace(w http.ResponseWriter, r *http.Request) {
	var body struct{ Namespace []string }
	err := json.NewDecoder(r.Body).Decode(&body)
	if err == nil {
		err = s.cat.CreateNamespace(r.Context(), body.Namespace, false)
	}
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, map[string]any{"namespace": body.Namespace})
}

func (s *server) namespaces(w http.ResponseWriter, r *http.Request) {
	all, err := s.cat.Namespaces(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	var parent []string
	if p := r.URL.Query().Get("parent"); p != "" {
		parent = strings.Split(p, "\x1f")
	}
	out := [][]string{}
	for _, ns := range all {
		if len(ns) > len(parent) && slices.Equal(ns[:len(parent)], parent) {
			out = append(out, ns[:len(parent)+1])
		}
	}
	slices.SortFunc(out, slices.Compare)
	s.list(w, r, "namespaces", slices.CompactFunc(out, slices.Equal))
}

func (s *server) tables(w http.ResponseWriter, r *http.Request, ns catalog.Ident) {
	all, err := s.cat.Tables(r.Context(), ns)
	if err != nil {
		fail(w, err)
		return
	}
	out := []map[string]any{}
	for _, id := range all {
		out = append(out, map[string]any{"namespace": id.Namespace(), "name": id.Table()})
	}
	s.list(w, r, "identifiers", out)
}

// list answers a page.
func (s *server) list(w http.ResponseWriter, r *http.Request, name string, all any) {
	b, _ := json.Marshal(all)
	var items []json.RawMessage
	_ = json.Unmarshal(b, &items)
	from, _ := strconv.Atoi(r.URL.Query().Get("pageToken"))
	doc := map[string]any{name: items}
	if s.page > 0 && from+s.page < len(items) {
		doc[name], doc["next-page-token"] = items[from:from+s.page], strconv.Itoa(from+s.page)
	} else if s.page > 0 {
		doc[name], doc["next-page-token"] = items[from:], nil
	}
	reply(w, doc)
}
