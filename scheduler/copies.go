package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/sources"
)

// setCopies says whether the store of a writing task's source may copy into the task's files by itself, and why not.
func (s *Server) setCopies(ctx context.Context, t *target, task *planv1.Task) {
	w, inputs := task.GetWrite(), task.GetSources()
	if !w.GetSplice() || len(inputs) != 1 || !isRemote(w.GetPrefix()) || len(copyable(inputs[0])) == 0 {
		return
	}
	if err := s.oneStore(ctx, t, w.GetPrefix(), inputs[0]); err != nil {
		w.NoCopies = "its files are " + err.Error()
		return
	}
	w.Copies = true
}

// oneStore says why the store does not copy from all files of a source to a place of the table.
func (s *Server) oneStore(ctx context.Context, t *target, prefix string, source *planv1.Source) error {
	to, _, err := t.entry.object(ctx, t.ident, prefix+"/x")
	if err != nil {
		return explained(err)
	}
	seen := map[objects.Client]bool{}
	for _, f := range copyable(source) {
		from, _, err := s.sourceObject(ctx, source, f.GetUri())
		if err == nil && !seen[from] {
			seen[from] = true
			err = objects.SameStore(ctx, to, from)
		}
		if err != nil {
			return explained(err)
		}
	}
	return nil
}

// explained is the reason for people; what is denied or broken says so when it is read.
func explained(err error) error {
	if errors.Is(err, objects.ErrElsewhere) {
		_, why, _ := strings.Cut(err.Error(), objects.ErrElsewhere.Error())
		return fmt.Errorf("%w%s", objects.ErrElsewhere, why)
	}
	return errors.New("in a store that copies nothing for this table")
}

// copyable are the files of a source that are in stores.
func copyable(source *planv1.Source) []*planv1.PinnedFile {
	files := source.GetFile().GetFiles()
	if t := source.GetTable(); t != nil {
		files = t.GetFiles()
	}
	var out []*planv1.PinnedFile
	for _, f := range files {
		if f.GetUri() != "" {
			out = append(out, f)
		}
	}
	return out
}

// sourceObject is a file of a source as a client knows it: of the table's catalog, or of the prefix of sources.remote, which is looked up again.
func (s *Server) sourceObject(ctx context.Context, source *planv1.Source, file string) (objects.Client, string, error) {
	t := source.GetTable()
	if t == nil {
		client, key, err := s.sources.Object(file)
		if errors.Is(err, sources.ErrDenied) {
			err = fmt.Errorf("%w: %w", credentials.ErrRefused, err)
		}
		return client, key, err
	}
	entry := s.catalogs[t.GetCatalog()]
	if entry == nil {
		return nil, "", fmt.Errorf("%w: %q is of no catalog", credentials.ErrRefused, file)
	}
	return entry.object(ctx, t.GetIdent(), file)
}

// object is a file of a table as the client of its store knows it.
func (e *catalogEntry) object(ctx context.Context, table catalog.Ident, file string) (objects.Client, string, error) {
	store, err := e.store(ctx, table, file[:max(strings.LastIndexByte(file, '/'), 0)])
	if err != nil {
		return nil, "", err
	}
	at, ok := store.(storage.Located)
	if !ok {
		return nil, "", fmt.Errorf("%w: the store of the table copies nothing", objects.ErrElsewhere)
	}
	return at.Object(file)
}

func copyRange(r *executorv1.CopyRange) *objects.Range {
	if r == nil {
		return nil
	}
	return &objects.Range{URI: r.GetUri(), Off: r.GetOffset(), Size: r.GetSizeBytes()}
}

// copySources are the files that requests of an attempt copy from: files of its own task, in the versions that were planned for, if the store reaches both. What is none of
// them is refused by who signs.
func (s *Server) copySources(ctx context.Context, t *target, task *planv1.Task, puts []*executorv1.PutRequest) (map[string]objects.CopySource, error) {
	out := map[string]objects.CopySource{}
	if !task.GetWrite().GetSplice() || len(task.GetSources()) != 1 { // copies is no more than advice, which a restart forgets: what counts is looked at now
		return out, nil
	}
	source := task.GetSources()[0]
	pinned := map[string]*planv1.PinnedFile{}
	for _, f := range copyable(source) {
		pinned[f.GetUri()] = f
	}
	for _, p := range puts {
		c := p.GetCopy()
		f := pinned[c.GetUri()]
		if c == nil || f == nil {
			continue
		}
		if c.GetOffset() < 0 || c.GetSizeBytes() < 0 || c.GetOffset() > f.GetSizeBytes()-c.GetSizeBytes() {
			return nil, fmt.Errorf("%w: file %s has no %d bytes from %d on", credentials.ErrRefused, f.GetUri(), c.GetSizeBytes(), c.GetOffset())
		}
		client, key, err := s.sourceObject(ctx, source, f.GetUri())
		if err != nil {
			return nil, fmt.Errorf("copy of %s: %w", f.GetUri(), err)
		}
		out[f.GetUri()] = objects.CopySource{Client: client, Key: key, ETag: f.GetEtag()}
	}
	return out, nil
}
