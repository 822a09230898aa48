package scheduler

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/flightsql"
)

// Rows that a client sends to be ingested lie in a file of the data directory, which no statement can name: a job that has one in its record reads it
// under flightsql.InputName. The file lives as long as its job is open, over restarts.

func (s *Server) inputDir() string { return filepath.Join(s.cfg.DataDir, "inputs") }

// NewInput implements flightsql.Backend.
func (b *flightBackend) NewInput() (*os.File, error) {
	dir := b.s.inputDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, uuid.NewString()+".parquet"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	return f, nil
}

func (s *Server) dropInput(path string) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		s.log.Warn("the file of an ingest is left until the next start", "file", path, "error", err)
	}
}

// watchInput removes a job's file when the job has ended. One that only pauses, because the scheduler stops, keeps it.
func (s *Server) watchInput(j *job) {
	<-j.done
	j.mu.Lock()
	ended, path := isTerminal(j.state), j.rec.Input
	j.mu.Unlock()
	if ended {
		s.dropInput(path)
	}
}

// adoptInputs goes on watching the files of open jobs, and removes those of clients and jobs that are gone.
func (s *Server) adoptInputs() error {
	wanted := map[string]bool{}
	for _, j := range s.jobsNewestFirst() {
		j.mu.Lock()
		path, ended := j.rec.Input, isTerminal(j.state)
		j.mu.Unlock()
		if path == "" || ended {
			continue
		}
		wanted[path] = true
		s.spawn(func() { s.watchInput(j) })
	}
	left, err := os.ReadDir(s.inputDir())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	for _, e := range left {
		if path := filepath.Join(s.inputDir(), e.Name()); !wanted[path] {
			s.dropInput(path)
		}
	}
	return nil
}

// resolveFiles finds the files of a source: the job's own input by its name, all others by the rules for sources.
func (s *Server) resolveFiles(ctx context.Context, j *job, names []string) ([]*planv1.PinnedFile, error) {
	if j.rec.Input == "" || len(names) != 1 || names[0] != flightsql.InputName {
		return s.sources.Resolve(ctx, j.rec.BaseDir, names)
	}
	real, err := filepath.EvalSymlinks(j.rec.Input) // the data directory may be a link
	var fi os.FileInfo
	if err == nil {
		fi, err = os.Lstat(real)
	}
	if err != nil { // its path is none of the client's business
		s.log.Error("the file of an ingest is gone", "job", j.id, "error", err)
		return nil, fail(codeInternal, "send them again", "the rows of this ingest are gone")
	}
	return []*planv1.PinnedFile{{Path: real, SizeBytes: fi.Size(), MtimeNanos: fi.ModTime().UnixNano(), Name: flightsql.InputName}}, nil
}
