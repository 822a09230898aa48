package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// parallelPuts is how many manifests of one commit are created at a time.
const parallelPuts = 8

// batch is what one Commit call makes visible. It does not change between attempts, but for the names of the manifests that it creates.
type batch struct {
	req        *sinkv1.CommitRequest
	plan       *plan
	units      []*sinkv1.Unit
	markers    []string
	jobs       []string
	refs       []*ref // manifests
	logs       []*ref // lists of changes
	files      int64
	rows       int64
	bytes      int64
	nulls      map[int32]bool // optional columns that may hold NULLs in some file
	partitions int            // touched; -1: too many to know
	snapshotID int64          // format version 1; otherwise chosen per call
	changes    sinkv1.Totals  // replaced files, deleted and updated rows

	// What the lists of changes hold; read when a commit is built.
	changed  bool
	replaced map[string]*change   // by path
	written  map[string]bool      // partitions, by tupleKey
	deletes  map[string][]*change // delete files, by the data file
	merged   map[string]string    // delete files that go because those hold their rows, and their data files
	added    counts

	// Files that are registered where they are.
	byName bool            // some of them have no field ids
	paths  map[string]bool // their places, by pathKey; nil: not read yet
	looked map[string]bool // manifests of the table that have none of them

	pick *picking // nil: the commit picks no snapshot, or it is not read yet
}

func newBatch(req *sinkv1.CommitRequest) (*batch, error) {
	p, err := readPlan(req.GetSpec())
	if err != nil {
		return nil, err
	}
	b := &batch{req: req, plan: p, units: req.GetUnits(), nulls: map[int32]bool{}, replaced: map[string]*change{}, written: map[string]bool{}, deletes: map[string][]*change{}, merged: map[string]string{}}
	switch {
	case len(b.units) == 0:
		return nil, errors.New("a commit without units")
	case req.GetMarkerProperty() == "":
		return nil, errors.New("a commit without a marker property")
	case p.GetCreatesTable() != (req.GetMode() == sinkv1.WriteMode_WRITE_MODE_CREATE):
		return nil, fmt.Errorf("%w: write mode %s", errState, req.GetMode())
	case !supported(req.GetMode()):
		return nil, fmt.Errorf("write mode %s is not supported by the sink iceberg", req.GetMode())
	case p.Mode != modeState(req.GetMode()):
		return nil, fmt.Errorf("%w: write mode %s, prepared was %s", errState, req.GetMode(), sinkv1.WriteMode(p.Mode))
	case (p.GetPick() != "") != (req.GetMode() == sinkv1.WriteMode_WRITE_MODE_PICK):
		return nil, fmt.Errorf("%w: it picks snapshot %q in write mode %s", errState, p.GetPick(), req.GetMode())
	case len(b.units) > 1 && (p.GetFormatVersion() == 1 || req.GetMode() != sinkv1.WriteMode_WRITE_MODE_APPEND):
		return nil, errors.New("a table of format version 1, or a commit that does more than append, takes one job per commit")
	}
	tuples, many, paths := map[uint64]bool{}, false, map[string]bool{}
	for _, u := range b.units {
		if err := b.unit(u, tuples, paths, &many); err != nil {
			return nil, err
		}
	}
	b.partitions = len(tuples)
	if many {
		b.partitions = -1
	}
	if len(b.units) > 1 {
		if err := b.join(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *batch) unit(u *sinkv1.Unit, tuples map[uint64]bool, paths map[string]bool, many *bool) error {
	if u.GetMarker() == "" || slices.Contains(b.markers, u.GetMarker()) {
		return fmt.Errorf("job %s: marker %q is empty or comes twice", u.GetJobId(), u.GetMarker())
	}
	b.markers, b.jobs = append(b.markers, u.GetMarker()), append(b.jobs, u.GetJobId())
	var got sinkv1.Totals
	for _, in := range u.GetRefs() {
		r, err := readRef(b.plan, u.GetJobId(), in)
		if err != nil {
			return err
		}
		key := r.Path + string(r.Inline)
		if paths[key] {
			return fmt.Errorf("job %s: manifest %s comes twice", u.GetJobId(), r.Path)
		}
		paths[key] = true
		if r.Kind == refChanges {
			b.logs = append(b.logs, r)
		} else {
			b.refs = append(b.refs, r)
			b.added.dataFiles, b.added.rows, b.added.bytes = b.added.dataFiles+r.Files, b.added.rows+r.Rows, b.added.bytes+r.Bytes
			b.snapshotID = r.SnapshotID
		}
		got.Files, got.Rows, got.Bytes = got.Files+r.Files, got.Rows+r.Rows, got.Bytes+r.Bytes
		got.ReplacedFiles, got.DeletedRows, got.UpdatedRows = got.ReplacedFiles+r.ReplacedFiles, got.DeletedRows+r.DeletedRows, got.UpdatedRows+r.UpdatedRows
		for _, id := range r.Nulls {
			b.nulls[id] = true
		}
		for _, t := range r.Tuples {
			tuples[t] = true
		}
		*many = *many || r.ManyMore
		b.byName = b.byName || r.ByName
	}
	if want := u.GetTotals(); want != nil && (want.GetFiles() != got.Files || want.GetRows() != got.Rows || want.GetBytes() != got.Bytes) {
		return fmt.Errorf("job %s: its references hold %d files, %d rows, %d bytes; the unit says %d, %d, %d", u.GetJobId(),
			got.Files, got.Rows, got.Bytes, want.GetFiles(), want.GetRows(), want.GetBytes())
	}
	if want := u.GetTotals(); want != nil && (want.GetReplacedFiles() != got.ReplacedFiles || want.GetDeletedRows() != got.DeletedRows || want.GetUpdatedRows() != got.UpdatedRows) {
		return fmt.Errorf("job %s: its references replace %d files, delete %d rows and update %d; the unit says %d, %d, %d", u.GetJobId(),
			got.ReplacedFiles, got.DeletedRows, got.UpdatedRows, want.GetReplacedFiles(), want.GetDeletedRows(), want.GetUpdatedRows())
	}
	b.files, b.rows, b.bytes = b.files+got.Files, b.rows+got.Rows, b.bytes+got.Bytes
	b.changes.ReplacedFiles += got.ReplacedFiles
	b.changes.DeletedRows += got.DeletedRows
	b.changes.UpdatedRows += got.UpdatedRows
	return nil
}

func supported(m sinkv1.WriteMode) bool {
	switch m {
	case sinkv1.WriteMode_WRITE_MODE_APPEND, sinkv1.WriteMode_WRITE_MODE_CREATE, sinkv1.WriteMode_WRITE_MODE_OVERWRITE, sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL,
		sinkv1.WriteMode_WRITE_MODE_REWRITE, sinkv1.WriteMode_WRITE_MODE_REPLACE, sinkv1.WriteMode_WRITE_MODE_PICK:
		return true
	}
	return false
}

// modeState is the mode as the state has it.
func modeState(m sinkv1.WriteMode) int32 {
	if m == sinkv1.WriteMode_WRITE_MODE_APPEND || m == sinkv1.WriteMode_WRITE_MODE_CREATE {
		return 0
	}
	return int32(m)
}

// nothing reports whether the commit would change nothing. What overwrites removes is only found out at the table.
func (b *batch) nothing() bool {
	if b.files > 0 || b.changes.ReplacedFiles > 0 || b.plan.Operation == operationManifests || b.plan.GetPick() != "" {
		return false
	}
	return !b.overwrites() || b.plan.GetScope().GetPartitions()
}

// overwrites reports whether the files that go are those that a scope covers.
func (b *batch) overwrites() bool {
	m := b.req.GetMode()
	return m == sinkv1.WriteMode_WRITE_MODE_OVERWRITE || m == sinkv1.WriteMode_WRITE_MODE_REPLACE
}

// everything reports whether every file goes.
func (b *batch) everything() bool {
	return b.req.GetMode() == sinkv1.WriteMode_WRITE_MODE_REPLACE || b.plan.GetScope().GetAll()
}

// branch that the commit goes to.
func (b *batch) branch() string { return cmp.Or(b.plan.GetBranch(), meta.MainBranch) }

// what names the statement in messages.
func (b *batch) what() string {
	switch b.req.GetMode() {
	case sinkv1.WriteMode_WRITE_MODE_OVERWRITE:
		return "overwrite"
	case sinkv1.WriteMode_WRITE_MODE_REPLACE:
		return "replacement"
	case sinkv1.WriteMode_WRITE_MODE_REWRITE:
		return "rewrite"
	}
	return b.operation()
}

// operation of a row-level write.
func (b *batch) operation() string { return cmp.Or(b.plan.Operation, "update") }

// create starts to create the manifests that came within their references, beside the load of the table. The commit waits for it. Their names are
// this try's own: an earlier one may have created its manifests before it failed.
func (b *batch) create(ctx context.Context, h Host) (wait func() error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelPuts)
	name := nonce()
	for i, r := range b.refs {
		if len(r.Inline) > 0 {
			r.Path = metadataPath(b.plan.Location, "%s-%s-m%d.avro", r.JobID, name, i)
			g.Go(func() error { return putManifest(ctx, h, r.Path, r.Inline) })
		}
	}
	return sync.OnceValue(g.Wait)
}
