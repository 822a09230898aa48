package iceberg

import (
	"context"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/filter"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

const (
	scanBatchFiles = 1000
	scanBatchBytes = 1 << 20
)

// PlanScan implements sdk.ScanPlanner.
func (s *Sink) PlanScan(ctx context.Context, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error {
	return s.planScan(ctx, sdk.HostFrom(ctx), req, send)
}

func (s *Sink) planScan(ctx context.Context, h Host, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error {
	t, err := s.existing(ctx, h, req.GetTable())
	if err != nil {
		return err
	}
	if t.Encrypted || t.Properties[propEncryptionKey] != "" {
		return permanent(req.GetTable(), fmt.Errorf("it is encrypted, which is not supported"))
	}
	at, err := scanned(t.Metadata, req)
	if err == nil {
		err = readable(at.schema)
	}
	if err != nil {
		return permanent(req.GetTable(), err)
	}
	first := &sinkv1.PlanScanResponse{Schema: schemaOf(at.schema), TableUuid: t.UUID, Branch: at.branch, RowLineage: t.FormatVersion >= 3}
	if text := t.Properties[meta.NameMapping]; text != "" {
		if first.Names, err = meta.ParseNameMapping(text); err != nil {
			return permanent(req.GetTable(), err)
		}
	}
	if at.snapshot == nil {
		return send(first)
	}
	first.Version = versionOf(at.snapshot.ID)
	sc, err := newScan(t.Metadata, at.schema, req.GetFilter())
	if err != nil {
		return permanent(req.GetTable(), err)
	}
	sc.partitions = req.GetPartitions()
	list, err := s.manifests(ctx, h, at.snapshot)
	if err != nil {
		return err
	}
	if err := sc.run(ctx, h, list); err != nil {
		return scanError(req.GetTable(), err)
	}
	first.ConstantIds, first.TotalFiles = sc.constantIDs, sc.total
	return sc.send(first, send)
}

// scanError keeps the host's errors as they are and makes the sink's own final.
func scanError(ref *sinkv1.TableRef, err error) error {
	if hostError(err) {
		return err
	}
	return permanent(ref, err)
}

// readable refuses columns that read as something that cannot be said of where a file lacks them.
func readable(schema *meta.Schema) error {
	var err error
	schema.Walk(func(n *meta.Node) {
		if err == nil && schema.HasInitialDefault(n.Field.GetId()) && n.Field.GetInitialDefault().GetKind() == nil {
			err = fmt.Errorf("column %s is nested and has an initial default, which is not supported in reads", n.Path)
		}
	})
	return err
}

func schemaOf(s *meta.Schema) *planv1.Schema { return &planv1.Schema{Fields: s.Fields} }

// scan collects the live data files of one snapshot.
type scan struct {
	table       *meta.Metadata
	schema      *meta.Schema
	filter      *filter.Filter
	specs       map[int32]*scanSpec
	deletes     *deletes
	files       []scanFile
	constantIDs []int32
	partitions  bool  // are said of each file
	total       int64 // data files, those that the filter leaves out included; -1: not known
}

// scanSpec is a partition spec as a scan needs it.
type scanSpec struct {
	identity map[int32]identity // by id of the source column
	bound    *filter.Bound
	plain    bool // without fields
}

type identity struct {
	fieldID int32
	typ     *planv1.Type
}

type scanFile struct {
	*sinkv1.ScanFile
	values map[int32]*planv1.Value // of identity partition fields, by id of the source column
}

func newScan(t *meta.Metadata, schema *meta.Schema, pred *planv1.Predicate) (*scan, error) {
	f, err := filter.New(schema, pred)
	if err != nil {
		return nil, err
	}
	return &scan{table: t, schema: schema, filter: f, specs: map[int32]*scanSpec{}, deletes: newDeletes()}, nil
}

// run reads the manifests that may have a file of interest: those of deletes first.
func (sc *scan) run(ctx context.Context, h Host, list []icefile.Manifest) error {
	for _, content := range []int32{icefile.ContentDeletes, icefile.ContentData} {
		for i := range list {
			if m := &list[i]; m.Content == content {
				if err := sc.manifest(ctx, h, m); err != nil {
					return err
				}
			} else if m.Content != icefile.ContentDeletes && m.Content != icefile.ContentData {
				return fmt.Errorf("manifest %s has content %d, which is not supported", m.Path, m.Content)
			}
		}
	}
	sc.fillConstants()
	return nil
}

// manifest adds the files of one Iceberg manifest.
func (sc *scan) manifest(ctx context.Context, h Host, m *icefile.Manifest) error {
	if m.Key != nil {
		return fmt.Errorf("manifest %s is encrypted, which is not supported", m.Path)
	}
	if m.Files.Known() && m.Files.Live() == 0 {
		return nil
	}
	spec, err := sc.spec(m.SpecID)
	if err != nil {
		return err
	}
	if !spec.bound.Manifest(m) {
		if m.Content == icefile.ContentData {
			sc.skip(m.Files)
		}
		return nil
	}
	raw, err := h.Get(ctx, m.Path)
	if err != nil {
		return fmt.Errorf("read Iceberg manifest %s: %w", m.Path, err)
	}
	rows := m.FirstRowID // of the next file without a first row id of its own
	metrics := m.Content == icefile.ContentDeletes || len(spec.identity) > 0 || len(sc.filter.Fields()) > 0
	err = icefile.ReadFiles(raw, metrics, func(e *icefile.Entry) error {
		if e.Status == icefile.StatusDeleted {
			return nil
		}
		if m.Content == icefile.ContentDeletes {
			return sc.deletes.add(e, m, spec)
		}
		d := e.Detail()
		if d.FirstRowID == nil && rows != nil {
			first := *rows
			next := first + e.Records
			d.FirstRowID, rows = &first, &next
		} else if rows == nil {
			d.FirstRowID = nil // of a manifest that gives none, entries have none either
		}
		return sc.add(e, d, m, spec)
	})
	if err != nil {
		return fmt.Errorf("manifest %s: %w", m.Path, err)
	}
	return nil
}

// skip counts the files of a manifest that is not read.
func (sc *scan) skip(c icefile.Counts) {
	switch {
	case sc.total < 0:
	case c.Added == nil || c.Existing == nil:
		sc.total = -1
	default:
		sc.total += c.Live()
	}
}

func (sc *scan) add(e *icefile.Entry, d icefile.Detail, m *icefile.Manifest, spec *scanSpec) error {
	if e.Content != icefile.FileData {
		return fmt.Errorf("%s has content %d, in a manifest of data files", e.Path, e.Content)
	}
	if sc.total >= 0 {
		sc.total++
	}
	file := filter.Entry(e)
	if !spec.bound.Inclusive(file) {
		return nil
	}
	if err := checkFile("data file", e, d); err != nil {
		return err
	}
	f := scanFile{ScanFile: &sinkv1.ScanFile{
		Uri: e.Path, SizeBytes: e.Size, RecordCount: e.Records, SplitOffsets: e.SplitOffsets, FirstRowId: d.FirstRowID, DataSequenceNumber: e.DataSequence(m), SpecId: m.SpecID,
		Matched: spec.bound.Strict(file),
	}}
	if sc.partitions {
		f.Partition = []byte(partitionKey(m.SpecID, e))
	}
	if !sc.deletes.empty() {
		deletes, err := sc.deletes.of(e.Path, f.GetDataSequenceNumber(), partitionKey(m.SpecID, e))
		if err != nil {
			return err
		}
		f.Deletes = deletes
	}
	if err := sc.constants(&f, e, spec); err != nil {
		return err
	}
	sc.files = append(sc.files, f)
	return nil
}

// constants keeps the values of identity partition fields, which stand in for columns that the file does not hold.
func (sc *scan) constants(f *scanFile, e *icefile.Entry, spec *scanSpec) error {
	for id, field := range spec.identity {
		v, ok, err := e.Partition(field.fieldID, field.typ)
		if err != nil {
			return fmt.Errorf("data file %s: partition field %d: %w", e.Path, field.fieldID, err)
		}
		if !ok {
			continue
		}
		if f.values == nil {
			f.values = map[int32]*planv1.Value{}
		}
		f.values[id] = v
		// Files that were added to the table as they were may hold their partition columns in the path only. Without metrics nobody knows.
		if has, _ := e.HasColumn(id); !has && !containsID(sc.constantIDs, id) {
			sc.constantIDs = append(sc.constantIDs, id)
		}
	}
	return nil
}

func containsID(ids []int32, id int32) bool {
	for _, i := range ids {
		if i == id {
			return true
		}
	}
	return false
}

// fillConstants gives every file a value for every column that some file may lack: its partition value, or what the column reads as elsewhere.
func (sc *scan) fillConstants() {
	for _, id := range sc.constantIDs {
		for i := range sc.files {
			f := &sc.files[i]
			v, ok := f.values[id]
			if !ok {
				if v = sc.schema.Node(id).Field.GetInitialDefault(); v == nil {
					v = &planv1.Value{}
				}
			}
			f.Constants = append(f.Constants, v)
		}
	}
}

// spec reads a partition spec; fields whose source column is gone from the scanned schema are of no interest.
func (sc *scan) spec(id int32) (*scanSpec, error) {
	if s, ok := sc.specs[id]; ok {
		return s, nil
	}
	spec, err := sc.table.Spec(id)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return nil, fmt.Errorf("%w: a manifest names partition spec %d, which the table does not have", meta.ErrInvalid, id)
	}
	out := &scanSpec{identity: map[int32]identity{}, bound: sc.filter.Bind(spec), plain: len(spec.Fields) == 0}
	for _, f := range spec.Fields {
		n := sc.schema.Node(f.SourceID)
		if n != nil && n.Leaf() && f.Transform.Kind == planv1.TransformKind_TRANSFORM_KIND_IDENTITY {
			out.identity[f.SourceID] = identity{f.ID, n.Field.GetType()}
		}
	}
	sc.specs[id] = out
	return out, nil
}

// send sends the first message and the files in batches.
func (sc *scan) send(msg *sinkv1.PlanScanResponse, send func(*sinkv1.PlanScanResponse) error) error {
	size := 0
	for _, f := range sc.files {
		n := len(f.GetUri()) + 16*len(f.GetSplitOffsets()) + 64
		for _, c := range f.GetConstants() {
			n += len(c.GetString_()) + len(c.GetBinary()) + 16
		}
		for _, d := range f.GetDeletes() {
			n += len(d.GetPath()) + 8*len(d.GetEqualityIds()) + 48
		}
		if len(msg.Files) > 0 && (len(msg.Files) == scanBatchFiles || size+n > scanBatchBytes) {
			if err := send(msg); err != nil {
				return err
			}
			msg, size = &sinkv1.PlanScanResponse{}, 0
		}
		msg.Files = append(msg.Files, f.ScanFile)
		size += n
	}
	return send(msg)
}
