package scheduler

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/lineage"
	"github.com/signet-io/signet/scheduler/outbox"
	"github.com/signet-io/signet/scheduler/plan"
)

// reads is what a job's planning has learned of its inputs. Guarded by the job's mu.
type reads struct {
	sources []*planv1.Source
	tables  map[string]lineage.Table // by their text
}

// noteSources keeps what a query reads, for its lineage.
func (j *job) noteSources(list []*planv1.Source) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads.sources = append(j.reads.sources, list...)
}

// noteTable keeps where a table is that a sink has just loaded.
func (s *Server) noteTable(j *job, t *target, lease *broker.Lease) {
	s.noteTableAt(j, t, lease.TableLocation())
}

func (s *Server) noteTableAt(j *job, t *target, location string) {
	if s.told.lineage == nil {
		return
	}
	table := s.lineageTable(t)
	table.Location = location
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.reads.tables == nil {
		j.reads.tables = map[string]lineage.Table{}
	}
	j.reads.tables[t.String()] = table
}

// lineageTable is a table by what the configuration says of its catalog.
func (s *Server) lineageTable(t *target) lineage.Table {
	cfg := s.cfg.Catalogs[t.entry.name]
	out := lineage.Table{Name: strings.Join(t.ident, "."), Catalog: lineage.CatalogNamespace(cfg.URI), Namespace: "signet-" + s.cfg.Cluster + "/" + t.entry.name, Layer: t.entry.sink}
	if cfg.Type != config.CatalogSQL {
		out.Catalog = ""
	}
	return out
}

// lineageOf is a run's share of events: what it reads and writes. w is nil for queries.
func (s *Server) lineageOf(j *job, w *writeState, stages []stageRun) *lineage.Run {
	j.mu.Lock()
	rec, sources, tables := j.rec, j.reads.sources, j.reads.tables
	j.mu.Unlock()
	r := s.runOf(&rec, w)
	if len(sources) == 0 { // a plan of the user's own
		sources = sourcesOf(stages)
	}
	b := &s.told.build
	for _, src := range sources {
		switch {
		case src.GetFile() != nil:
			r.Inputs = append(r.Inputs, b.Files(src.GetFile().Files, src.GetFile().Columns)...)
		case src.GetTable() != nil:
			scan := src.GetTable()
			t, known := tables[scan.Table]
			if !known {
				t = lineage.Table{Name: scan.Table, Namespace: "signet-" + s.cfg.Cluster}
			}
			t.Schema, t.Version = scan.Schema, scan.Version
			d := b.Table(t)
			rows, bytes := sizeOf(scan.Files)
			b.SetInput(&d, rows, bytes, int64(len(scan.Files)))
			r.Inputs = append(r.Inputs, d)
		}
	}
	r.Inputs = lineage.Merge(r.Inputs)
	if w != nil {
		t, known := tables[w.target.String()]
		if !known {
			t = s.lineageTable(w.target)
		}
		t.Location = cmp.Or(w.rec.Location, t.Location)
		t.Schema, t.Lifecycle = w.spec.Schema, lifecycle(w.mode, w.spec)
		r.Outputs = []lineage.Dataset{b.Table(t)}
	}
	r.Started = true
	return r
}

// lineageOfWrite is nil where nobody is told.
func (s *Server) lineageOfWrite(w *writeState, stages []stageRun) *lineage.Run {
	if s.told.lineage == nil {
		return nil
	}
	return s.lineageOf(w.job, w, stages)
}

// lifecycle is what a write does to its table as a whole.
func lifecycle(mode sinkv1.WriteMode, spec *planv1.WriteSpec) string {
	switch {
	case mode == sinkv1.WriteMode_WRITE_MODE_CREATE:
		return "CREATE"
	case mode == sinkv1.WriteMode_WRITE_MODE_REPLACE, mode == sinkv1.WriteMode_WRITE_MODE_OVERWRITE && spec.GetScope().GetAll():
		return "OVERWRITE"
	}
	return ""
}

// sizeOf sums rows, -1 if they are not known, and bytes.
func sizeOf(files []*planv1.PinnedFile) (rows, bytes int64) {
	for _, f := range files {
		if bytes += f.SizeBytes; f.RecordCount == 0 {
			rows = -1
		} else if rows >= 0 {
			rows += f.RecordCount
		}
	}
	return rows, bytes
}

// sourcesOf are the inputs of tasks, each once, with all files that any of them reads.
func sourcesOf(stages []stageRun) []*planv1.Source {
	byView := map[string]*planv1.Source{}
	seen := map[string]map[string]bool{}
	var out []*planv1.Source
	for _, st := range stages {
		for _, t := range st.tasks {
			for _, src := range t.Sources {
				files := filesOf(src)
				key := src.GetTable().GetTable()
				if key == "" {
					key = src.View
				}
				whole := byView[key]
				if whole == nil {
					whole = emptied(src)
					byView[key], seen[key] = whole, map[string]bool{}
					out = append(out, whole)
				}
				for _, f := range files {
					if name := cmp.Or(f.Uri, f.Path); !seen[key][name] {
						seen[key][name] = true
						addFile(whole, f)
					}
				}
			}
		}
	}
	return out
}

func filesOf(src *planv1.Source) []*planv1.PinnedFile {
	if t := src.GetTable(); t != nil {
		return t.Files
	}
	return src.GetFile().GetFiles()
}

func emptied(src *planv1.Source) *planv1.Source {
	switch {
	case src.GetTable() != nil:
		t := src.GetTable()
		return &planv1.Source{Kind: &planv1.Source_Table{Table: &planv1.TableScan{Schema: t.Schema, Table: t.Table, Version: t.Version}}}
	case src.GetFile() != nil:
		return &planv1.Source{Kind: &planv1.Source_File{File: &planv1.FileSource{Columns: src.GetFile().Columns}}}
	}
	return &planv1.Source{}
}

func addFile(src *planv1.Source, f *planv1.PinnedFile) {
	if t := src.GetTable(); t != nil {
		t.Files = append(t.Files, f)
	} else if fs := src.GetFile(); fs != nil {
		fs.Files = append(fs.Files, f)
	}
}

// runOf is a run before anything is known of what it reads and writes.
func (s *Server) runOf(rec *journal.Job, w *writeState) *lineage.Run {
	r := &lineage.Run{ID: rec.ID, Begun: rec.Submitted}
	if s.told.build.IncludeSQL {
		r.SQL = s.views.redact.Text(clip(rec.SQL, maxLogged))
	}
	parts := []string{cmp.Or(rec.Kind, "statement")}
	if w != nil {
		parts = append(parts, w.target.String())
	}
	r.Job = strings.Join(append(parts, queryHash(rec)[:8]), ".") // the same statement is the same job
	if set, err := plan.ParseSettings(rec.Settings); err == nil {
		r.Parent, r.Job = set.LineageParent, cmp.Or(set.LineageJob, r.Job)
	}
	return r
}

// tellStart puts the START of a write that is planned, and what its later events say, into its record.
func (s *Server) tellStart(tx *journal.Tx, rec *journal.Job, r *lineage.Run) error {
	if r == nil {
		return nil
	}
	body, err := s.told.build.Event(lineage.Start, r.Begun, r, nil)
	if err != nil {
		return err
	}
	if rec.Lineage, err = json.Marshal(r); err != nil {
		return err
	}
	return s.told.lineage.Put(tx, rec.ID, outbox.Message{Body: body})
}

// noteStart tells of a query that is planned. A restart runs it again, which is told again.
func (s *Server) noteStart(j *job, stages []stageRun) {
	if s.told.lineage == nil {
		return
	}
	r := s.lineageOf(j, nil, stages)
	s.note(j, lineage.Start, r)
	if b, err := json.Marshal(r); err == nil {
		j.update(func() { j.rec.Lineage = b })
	}
}

// noteRunning tells that a write goes on after a restart.
func (s *Server) noteRunning(j *job) {
	r := &lineage.Run{}
	j.mu.Lock()
	b := j.rec.Lineage
	j.mu.Unlock()
	if s.told.lineage == nil || len(b) == 0 || json.Unmarshal(b, r) != nil {
		return
	}
	s.note(j, lineage.Running, r)
}

func (s *Server) note(j *job, kind string, r *lineage.Run) {
	body, err := s.told.build.Event(kind, time.Now(), r, nil)
	if err != nil {
		s.log.Warn("cannot make a lineage event", "job", j.id, "error", err)
		return
	}
	s.told.lineage.Note(outbox.Message{Body: body})
}

// landed adds to a record what its commit has done.
func (s *Server) landed(rec *journal.Job, m *coordinator.Machine) {
	r := &lineage.Run{}
	if s.told.lineage == nil || len(rec.Lineage) == 0 || json.Unmarshal(rec.Lineage, r) != nil || len(r.Outputs) == 0 {
		return
	}
	res, t, b := m.Result(), m.Totals(), &s.told.build
	if !res.Skipped {
		b.SetVersion(&r.Outputs[0], res.Version)
	}
	if !res.Already || !res.Unreferenced {
		b.SetOutput(&r.Outputs[0], t.Rows, t.Bytes, t.Files)
	}
	if out, err := json.Marshal(r); err == nil {
		rec.Lineage = out
	}
}

// dataKinds are the kinds of jobs that read or write rows: of those that fail before they are planned an event tells, too.
var dataKinds = map[string]bool{kindInsert: true, kindCreate: true, kindSelect: true, kindSession: true, kindCache: true, kindPlan: true, kindRewrite: true, kindAddFiles: true}

// tellEnd puts the event of a job's end into the transaction that records it. What was kept for events goes.
func (s *Server) tellEnd(tx *journal.Tx, rec *journal.Job) error {
	kept := rec.Lineage
	rec.Lineage = nil
	if s.told.lineage == nil {
		return nil
	}
	r := &lineage.Run{}
	if len(kept) > 0 {
		if err := json.Unmarshal(kept, r); err != nil {
			return err
		}
	}
	kind := map[journal.State]string{journal.StateSuccessful: lineage.Complete, journal.StateFailed: lineage.Fail, journal.StateCancelled: lineage.Abort}[rec.State]
	if !r.Started {
		if !dataKinds[rec.Kind] || kind == lineage.Complete {
			return nil
		}
		r = s.runOf(rec, nil)
		body, err := s.told.build.Event(lineage.Start, r.Begun, r, nil)
		if err != nil {
			return err
		}
		if err := s.told.lineage.Put(tx, rec.ID, outbox.Message{Body: body}); err != nil {
			return err
		}
	}
	var why *lineage.Failure
	if rec.Error != nil {
		why = &lineage.Failure{Message: s.views.redact.Text(rec.Error.Message)}
	}
	body, err := s.told.build.Event(kind, rec.Finished, r, why)
	if err != nil {
		return err
	}
	return s.told.lineage.Put(tx, rec.ID, outbox.Message{Body: body})
}
