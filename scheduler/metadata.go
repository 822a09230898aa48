package scheduler

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/broker"
)

// created collects what the job's sink has made in the table's metadata, over all its leases.
func (w *writeState) keepCreated(l *broker.Lease) {
	uris := l.Created()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.created == nil {
		w.created = map[string]bool{}
	}
	for _, u := range uris {
		w.created[u] = true
	}
	if !slices.Contains(w.leases, l) {
		w.leases = append(w.leases, l)
	}
}

// drainLeases also finds what the sink was creating when a lease was closed over it, as a cancel does.
func (w *writeState) drainLeases() {
	w.mu.Lock()
	leases := slices.Clone(w.leases)
	w.mu.Unlock()
	for _, l := range leases {
		l.Drain()
		w.keepCreated(l)
	}
}

func (w *writeState) adopted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]string, 0, len(w.created))
	for u := range w.created {
		out = append(out, u)
	}
	return out
}

// sweepMetadata removes metadata files of the job's sink that no snapshot refers to: those of attempts that met a conflict, of
// a staging that was done again, and all of them where nothing landed. What it cannot do now is left to orphan removal.
func (s *Server) sweepMetadata(w *writeState) {
	w.mu.Lock()
	final, clean := w.machine.State().Final(), w.machine.State() == coordinator.Committed && w.machine.Seals() == 1 && w.stagings <= 1 && !w.resumed
	w.mu.Unlock()
	if !final || clean {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	w.drainLeases()
	err := s.findCreated(ctx, w)
	if err == nil {
		err = s.sweepLease(ctx, w)
	}
	if err != nil && s.ctx.Err() == nil {
		s.log.Info("metadata files of a job are left to orphan removal", "job", w.job.id, "error", err)
	}
}

func (s *Server) sweepLease(ctx context.Context, w *writeState) error {
	spec, err := w.commitLease(ctx, w.adopted())
	if err != nil {
		return err
	}
	if p, err := s.plugin(ctx, w.target); err == nil {
		spec.Sink = p.Describe()
	}
	l, err := s.broker.Lease(spec)
	if err != nil {
		return err
	}
	defer l.Close()
	n, err := l.Sweep(ctx, nil)
	if loc := w.rec.Location; loc != "" { // of a table that the job creates
		s.tidy(w.target.entry, storage.Join(loc, "metadata"), storage.Join(loc, "metadata"))
	}
	if n > 0 {
		s.log.Info("swept metadata files", "job", w.job.id, "files", n)
	}
	return err
}

// findCreated finds what an earlier incarnation's leases made: names that contain the job's id.
func (s *Server) findCreated(ctx context.Context, w *writeState) error {
	if !w.resumed || w.target.entry.catalog == nil {
		return nil
	}
	location := w.rec.Location
	if location == "" {
		t, err := w.target.entry.catalog.Load(ctx, w.target.ident)
		if err != nil {
			return err
		}
		location = t.Location
	}
	store, err := w.target.entry.store(ctx, w.target.ident, location)
	if err != nil {
		return err
	}
	err = store.List(ctx, storage.Join(location, "metadata"), func(i storage.Info) error {
		if strings.Contains(path.Base(i.URI), w.job.id+"-") {
			w.mu.Lock()
			if w.created == nil {
				w.created = map[string]bool{}
			}
			w.created[i.URI] = true
			w.mu.Unlock()
		}
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
