// Package gluetest is an AWS Glue Data Catalog in memory for tests: the operations on databases and tables that catalogs use, with the optimistic locking by VersionId that moto's
// Glue leaves out.
package gluetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Server is a running one.
type Server struct {
	URL string

	mu        sync.Mutex
	databases map[string]*database
	calls     int
	archived  int
	versions  bool
	page      int
}

type database struct {
	input  map[string]any
	tables map[string]*entry
}

type entry struct {
	input   map[string]any
	version int
}

// Start runs a server until the test ends. It takes any credentials, and no notice of signatures.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{databases: map[string]*database{}, versions: true, page: 100}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// WithoutVersions leaves VersionId out of what it answers.
func (s *Server) WithoutVersions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions = false
}

// Pages makes lists come in pages of n names at most.
func (s *Server) Pages(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = n
}

// Archived counts the older versions of tables that were kept.
func (s *Server) Archived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.archived
}

// Database makes a database, as another engine does.
func (s *Server) Database(name string, input map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	input["Name"] = name
	s.databases[name] = &database{input: input, tables: map[string]*entry{}}
}

// Edit changes a table's input, or makes the table, as another engine or a person does: its version is another afterwards.
func (s *Server) Edit(db, table string, change func(input map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.databases[db].tables[table]
	if e == nil {
		e = &entry{input: map[string]any{"Name": table}}
		s.databases[db].tables[table] = e
	}
	e.input = clone(e.input)
	change(e.input)
	e.version++
}

// Table is what a table's input is.
func (s *Server) Table(db, table string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.databases[db]; d != nil && d.tables[table] != nil {
		return clone(d.tables[table].input)
	}
	return nil
}

func clone(in map[string]any) map[string]any {
	b, err := json.Marshal(in)
	var out map[string]any
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		panic(err) // it came from JSON
	}
	return out
}

// problem is an exception of the service.
type problem struct{ code, message string }

func missing(what string) *problem {
	return &problem{"EntityNotFoundException", what + " not found."}
}

func taken(what string) *problem {
	return &problem{"AlreadyExistsException", what + " already exists."}
}

// request holds the members of all operations.
type request struct {
	Name, DatabaseName, VersionId, NextToken string
	DatabaseInput, TableInput                map[string]any
	SkipArchive                              bool
	MaxResults                               int
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in request
	err := json.NewDecoder(r.Body).Decode(&in)
	op := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AWSGlue.")
	s.mu.Lock()
	s.calls++
	id := fmt.Sprintf("request-%d", s.calls)
	var out any
	p := &problem{"UnknownOperationException", op}
	do := map[string]func(*request) (any, *problem){
		"GetTable": s.getTable, "GetTables": s.getTables, "GetDatabase": s.getDatabase, "GetDatabases": s.getDatabases,
		"CreateTable": s.createTable, "UpdateTable": s.updateTable, "DeleteTable": s.deleteTable, "CreateDatabase": s.createDatabase,
	}[op]
	switch {
	case err != nil:
		p = &problem{"SerializationException", err.Error()}
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "):
		p = &problem{"MissingAuthenticationTokenException", "Missing Authentication Token"}
	case do != nil:
		out, p = do(&in)
	}
	status := http.StatusOK
	if p != nil {
		status, out = http.StatusBadRequest, map[string]string{"__type": p.code, "Message": p.message}
	}
	body, err := json.Marshal(out)
	s.mu.Unlock()
	if err != nil {
		panic(err) // it came from JSON
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amzn-Requestid", id)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// find looks a table up, by its name in lower case as Glue does.
func (s *Server) find(db, name string) (*database, *entry, *problem) {
	d := s.databases[strings.ToLower(db)]
	if d == nil {
		return nil, nil, missing("Database " + db)
	}
	e := d.tables[strings.ToLower(name)]
	if e == nil {
		return d, nil, missing("Entity " + name)
	}
	return d, e, nil
}

func (s *Server) shown(db string, e *entry) map[string]any {
	out := clone(e.input)
	out["DatabaseName"] = strings.ToLower(db)
	if s.versions {
		out["VersionId"] = strconv.Itoa(e.version)
	}
	return out
}

func (s *Server) getTable(in *request) (any, *problem) {
	_, e, p := s.find(in.DatabaseName, in.Name)
	if p != nil {
		return nil, p
	}
	return map[string]any{"Table": s.shown(in.DatabaseName, e)}, nil
}

func (s *Server) getTables(in *request) (any, *problem) {
	d := s.databases[strings.ToLower(in.DatabaseName)]
	if d == nil {
		return nil, missing("Database " + in.DatabaseName)
	}
	names, next := s.cut(d.tables, in)
	list := []any{}
	for _, n := range names {
		list = append(list, s.shown(in.DatabaseName, d.tables[n]))
	}
	return map[string]any{"TableList": list, "NextToken": next}, nil
}

func (s *Server) getDatabase(in *request) (any, *problem) {
	d := s.databases[strings.ToLower(in.Name)]
	if d == nil {
		return nil, missing("Database " + in.Name)
	}
	return map[string]any{"Database": d.input}, nil
}

func (s *Server) getDatabases(in *request) (any, *problem) {
	names, next := s.cut(s.databases, in)
	list := []any{}
	for _, n := range names {
		list = append(list, s.databases[n].input)
	}
	return map[string]any{"DatabaseList": list, "NextToken": next}, nil
}

func (s *Server) createDatabase(in *request) (any, *problem) {
	name := strings.ToLower(fmt.Sprint(in.DatabaseInput["Name"]))
	if s.databases[name] != nil {
		return nil, taken("Database")
	}
	in.DatabaseInput["Name"] = name
	s.databases[name] = &database{input: in.DatabaseInput, tables: map[string]*entry{}}
	return map[string]any{}, nil
}

func (s *Server) createTable(in *request) (any, *problem) {
	name := strings.ToLower(fmt.Sprint(in.TableInput["Name"]))
	d, e, p := s.find(in.DatabaseName, name)
	switch {
	case d == nil:
		return nil, p
	case e != nil:
		return nil, taken("Table")
	}
	in.TableInput["Name"] = name
	d.tables[name] = &entry{input: in.TableInput}
	return map[string]any{}, nil
}

func (s *Server) updateTable(in *request) (any, *problem) {
	_, e, p := s.find(in.DatabaseName, fmt.Sprint(in.TableInput["Name"]))
	if p != nil {
		return nil, p
	}
	if in.VersionId != "" && in.VersionId != strconv.Itoa(e.version) {
		return nil, &problem{"ConcurrentModificationException", "Update table failed due to concurrent modifications."}
	}
	if !in.SkipArchive {
		s.archived++
	}
	e.input, e.version = in.TableInput, e.version+1
	return map[string]any{}, nil
}

func (s *Server) deleteTable(in *request) (any, *problem) {
	d, _, p := s.find(in.DatabaseName, in.Name)
	if p != nil {
		return nil, p
	}
	delete(d.tables, strings.ToLower(in.Name))
	return map[string]any{}, nil
}

// cut gives a page of names, and the token of the next.
func (s *Server) cut(all any, in *request) ([]string, string) {
	var names []string
	switch m := all.(type) {
	case map[string]*database:
		for n := range m {
			names = append(names, n)
		}
	case map[string]*entry:
		for n := range m {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	from, _ := strconv.Atoi(in.NextToken)
	from = min(from, len(names))
	to := min(from+s.page, len(names))
	if in.MaxResults > 0 {
		to = min(to, from+in.MaxResults)
	}
	if to == len(names) {
		return names[from:], ""
	}
	return names[from:to], strconv.Itoa(to)
}
