package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/root"
	"github.com/signet-io/signet/scheduler/sql"
)

// caches are the results that CACHE TABLE keeps: a name of one principal stands for the rows that a query gave, until UNCACHE TABLE. The rows
// lie in a Parquet file in a directory of its own, beside cache.json. The directory appears under its name by one rename, so that a cache is
// there whole or not at all, also after a crash.
type caches struct {
	dir string
	mu  sync.Mutex
	all map[string]*cached // by directory
	max int64              // bytes of one principal; 0: no limit
}

// cached is one cached table.
type cached struct {
	Principal string         `json:"principal"`
	Name      string         `json:"name"`
	Job       string         `json:"job"`
	Rows      int64          `json:"rows"`
	Bytes     int64          `json:"bytes"`
	Files     []string       `json:"files"`
	Columns   []byte         `json:"columns"`        // plan.v1 FileSource, of which only the columns count
	Does      []journal.Does `json:"does,omitempty"` // what the query read
	dir       string
}

const cacheRecord = "cache.json"

// openCaches finds the caches of earlier incarnations and removes what they left unfinished.
func openCaches(dir string) (*caches, error) {
	c := &caches{dir: dir, all: map[string]*cached{}}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cached tables: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(filepath.Join(path, cacheRecord))
		rec := &cached{dir: path}
		if err != nil || json.Unmarshal(b, rec) != nil || cacheKey(rec.Principal, rec.Name) != e.Name() {
			if err := os.RemoveAll(path); err != nil {
				return nil, fmt.Errorf("cached tables: %s is not complete and cannot be removed: %w", path, err)
			}
			continue
		}
		c.all[e.Name()] = rec
	}
	return c, nil
}

// cacheKey names a cache's directory. Names of caches do not depend on case, as names in a query do not.
func cacheKey(principal, name string) string {
	sum := sha256.Sum256([]byte(hashParts("cache", principal, strings.ToLower(name))))
	return hex.EncodeToString(sum[:16])
}

func (c *caches) find(principal, name string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[cacheKey(principal, name)]
}

// put makes a finished directory a cache.
func (c *caches) put(rec *cached, from string) error {
	key := cacheKey(rec.Principal, rec.Name)
	rec.dir = filepath.Join(c.dir, key)
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(from, cacheRecord), b, 0o600); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[key] != nil {
		return cacheExists(rec.Name)
	}
	if have := c.bytes(rec.Principal); c.max > 0 && have+rec.Bytes > c.max {
		return fail(codeResource, "forget others with UNCACHE TABLE, or raise the setting", "the cached table %s has %d bytes, and others %d; limits.max_cache_bytes is %d", sql.DisplayIdent(rec.Name), rec.Bytes, have, c.max)
	}
	if err := fault.Hit("scheduler.cache.before-rename"); err != nil {
		return err
	}
	if err := os.Rename(from, rec.dir); err != nil {
		return err
	}
	c.all[key] = rec
	return fault.Hit("scheduler.cache.after-rename")
}

// bytes of a principal's caches. Called with mu held.
func (c *caches) bytes(principal string) int64 {
	sum := int64(0)
	for _, rec := range c.all {
		if rec.Principal == principal {
			sum += rec.Bytes
		}
	}
	return sum
}

// drop forgets a cache. Jobs that still read its files fail with the files' names.
func (c *caches) drop(principal, name string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey(principal, name)
	rec := c.all[key]
	if rec == nil {
		return false, nil
	}
	delete(c.all, key)
	if err := os.Remove(filepath.Join(rec.dir, cacheRecord)); err != nil { // without it the next start removes the rest
		return true, err
	}
	return true, os.RemoveAll(rec.dir)
}

// bind makes a source of a cached table: its files, or, where it has no rows, an empty table.
func (rec *cached) bind(src *planv1.Source) error {
	known := &planv1.FileSource{}
	if err := proto.Unmarshal(rec.Columns, known); err != nil {
		return fmt.Errorf("cached table %s: %w", rec.Name, err)
	}
	if len(rec.Files) == 0 {
		scan := &planv1.TableScan{Schema: &planv1.Schema{}, Table: rec.Name, Version: rec.Job}
		for i, c := range known.Columns {
			scan.Schema.Fields = append(scan.Schema.Fields, &planv1.Field{Id: int32(i + 1), Name: c.Name, Type: c.Type}) //nolint:gosec // few
		}
		src.Kind = &planv1.Source_Table{Table: scan}
		return nil
	}
	files := &planv1.FileSource{Function: "read_parquet"}
	for _, f := range rec.Files {
		path, err := filepath.EvalSymlinks(filepath.Join(rec.dir, f))
		if err != nil {
			return fmt.Errorf("cached table %s: %w", rec.Name, err)
		}
		fi, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("cached table %s: %w", rec.Name, err)
		}
		files.Files = append(files.Files, &planv1.PinnedFile{Path: path, SizeBytes: fi.Size(), MtimeNanos: fi.ModTime().UnixNano(), Name: rec.Name})
	}
	src.Kind = &planv1.Source_File{File: files}
	return nil
}

func cacheExists(name string) error {
	return fail(codeExists, "UNCACHE TABLE "+sql.DisplayIdent(name)+" forgets it", "there is a cached table %s", sql.DisplayIdent(name))
}

// runCache answers CACHE TABLE: the query runs as every other one, its rows stay on the executors that made them, and are fetched from there.
func (s *Server) runCache(j *job, st *sql.Cache) error {
	if rec := s.caches.find(j.owner, st.Name.Text); rec != nil {
		if rec.Job == j.id { // made by this job before a restart
			return s.answerCache(j, rec)
		}
		return cacheExists(st.Name.Text)
	}
	q, err := s.planQuery(j, st.Query, true)
	if err != nil {
		return err
	}
	columns := q.plan().Columns
	for i, c := range columns {
		if !root.Exact(c) {
			return fail(codeUser, "cast it, for example to VARCHAR", "column %s has type %s, which a cached table cannot hold", sql.DisplayIdent(c.Name), c.EngineType)
		}
		for _, other := range columns[:i] {
			if strings.EqualFold(other.Name, c.Name) {
				return fail(codeUser, "give one of them another name with AS", "two columns are called %s", sql.DisplayIdent(c.Name))
			}
		}
	}
	l := s.newLoop(j, nil, q.planner)
	if err := l.execute(q.first); err != nil {
		return err
	}
	rec, err := s.fillCache(j.ctx, l, st.Name.Text, columns)
	if err != nil {
		return err
	}
	// Nobody else fetches the rows.
	if err := l.act(l.g.Apply(graph.ResultReleased{})); err != nil {
		return err
	}
	return s.answerCache(j, rec)
}

func (s *Server) answerCache(j *job, rec *cached) error {
	return s.answer(j, []string{"table", "rows:int", "bytes:int"}, []row{{rec.Name, rec.Rows, rec.Bytes}})
}

// cacheFile holds a cached table's rows.
const cacheFile = "rows.parquet"

// fillCache writes the rows of the final stage into a file under the query's own names.
func (s *Server) fillCache(ctx context.Context, l *loop, name string, columns []*planv1.Column) (*cached, error) {
	dir := filepath.Join(s.caches.dir, "new-"+l.j.id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cached table %s: %w", name, err)
	}
	defer os.RemoveAll(dir) // renamed, if all went well
	rec := &cached{Principal: l.j.owner, Name: name, Job: l.j.id, Does: l.j.does()}
	var err error
	if rec.Columns, err = proto.Marshal(&planv1.FileSource{Columns: columns}); err != nil {
		return nil, err
	}
	in, err := l.input(columns)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, cacheFile)
	if rec.Rows, err = root.WriteParquet(ctx, in, file); err != nil {
		return nil, fmt.Errorf("cached table %s: %w", name, err)
	}
	if fi, err := os.Stat(file); err == nil && rec.Rows > 0 {
		rec.Files, rec.Bytes = []string{cacheFile}, fi.Size()
	}
	return rec, s.caches.put(rec, dir)
}

func (s *Server) runUncache(j *job, st *sql.Uncache) error {
	had, err := s.caches.drop(j.owner, st.Name.Text)
	switch {
	case err != nil:
		return fmt.Errorf("cached table %s: %w", st.Name.Text, err)
	case !had && !st.IfExists && !j.again:
		return fail(codeNotFound, "", "there is no cached table %s", sql.DisplayIdent(st.Name.Text))
	}
	return s.answer(j, []string{"result"}, []row{{"the cached table " + sql.DisplayIdent(st.Name.Text) + " is gone"}})
}
