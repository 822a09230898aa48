package iceberg

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
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
	snap, schema, err := scanned(t.Metadata, req.GetVersion())
	if err != nil {
		return permanent(req.GetTable(), err)
	}
	if err := readable(schema); err != nil {
		return permanent(req.GetTable(), err)
	}
	first := &sinkv1.PlanScanResponse{Schema: schemaOf(schema), TableUuid: t.UUID}
	if snap == nil {
		return send(first)
	}
	first.Version = versionOf(snap.ID)
	sc := &scan{table: t.Metadata, schema: schema, specs: map[int32]*scanSpec{}}
	list, err := s.manifests(ctx, h, snap)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := sc.manifest(ctx, h, m); err != nil {
			return scanError(req.GetTable(), err)
		}
	}
	if err := sc.fillConstants(); err != nil {
		return permanent(req.GetTable(), err)
	}
	first.ConstantIds = sc.constantIDs
	return sc.send(first, send)
}

// scanError keeps the host's errors as they are and makes the sink's own final.
func scanError(ref *sinkv1.TableRef, err error) error {
	if hostError(err) {
		return err
	}
	return permanent(ref, err)
}

// scanned picks the snapshot of a version and the schema to read it with: the current schema for the current state, a snapshot's own for a named one.
func scanned(m *meta.Metadata, version string) (*meta.Snapshot, *meta.Schema, error) {
	if version == "" {
		schema, err := m.CurrentSchema()
		if err != nil {
			return nil, nil, err
		}
		head, err := m.Head()
		return head, schema, listed(head, err)
	}
	id, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("version %q is not a snapshot id", version)
	}
	snap, err := m.Snapshot(id)
	if err == nil && snap == nil {
		err = fmt.Errorf("it has no snapshot %d; it may have expired", id)
	}
	if err != nil {
		return nil, nil, err
	}
	schema, err := m.CurrentSchema()
	if snap.SchemaID != nil {
		var own *meta.Schema
		if own, err = m.Schema(*snap.SchemaID); err == nil && own != nil {
			schema = own
		} else if err == nil {
			schema, err = m.CurrentSchema()
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return snap, schema, listed(snap, nil)
}

func listed(s *meta.Snapshot, err error) error {
	if err == nil && s != nil && s.ManifestList == "" {
		return fmt.Errorf("snapshot %d has no manifest list (a table of a very old version), which is not supported", s.ID)
	}
	if err == nil && s != nil && s.KeyID != "" {
		return fmt.Errorf("it is encrypted, which is not supported")
	}
	return err
}

// readable refuses columns that read as something else than NULL where a file lacks them.
func readable(schema *meta.Schema) error {
	var err error
	schema.Walk(func(n *meta.Node) {
		if err == nil && schema.HasInitialDefault(n.Field.GetId()) {
			err = fmt.Errorf("column %s has an initial default, which is not supported yet in reads", n.Path)
		}
	})
	return err
}

func schemaOf(s *meta.Schema) *planv1.Schema { return &planv1.Schema{Fields: s.Fields} }

// scan collects the live data files of one snapshot.
type scan struct {
	table       *meta.Metadata
	schema      *meta.Schema
	specs       map[int32]*scanSpec
	files       []scanFile
	constantIDs []int32
}

// scanSpec is a partition spec as a scan needs it.
type scanSpec struct {
	identity map[int32]identity // by id of the source column
}

type identity struct {
	fieldID int32
	typ     *planv1.Type
}

type scanFile struct {
	*sinkv1.ScanFile
	values map[int32]*planv1.Value // of identity partition fields, by id of the source column
}

// manifest adds the files of one Iceberg manifest.
func (sc *scan) manifest(ctx context.Context, h Host, m icefile.Manifest) error {
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
	raw, err := h.Get(ctx, m.Path)
	if err != nil {
		return fmt.Errorf("read Iceberg manifest %s: %w", m.Path, err)
	}
	err = icefile.ReadEntries(raw, len(spec.identity) > 0, func(e *icefile.Entry) error {
		if e.Status == icefile.StatusDeleted {
			return nil
		}
		return sc.add(e, m, spec)
	})
	if err != nil {
		return fmt.Errorf("manifest %s: %w", m.Path, err)
	}
	return nil
}

func (sc *scan) add(e *icefile.Entry, m icefile.Manifest, spec *scanSpec) error {
	switch {
	case m.Content != icefile.ContentData || e.Content != 0:
		return fmt.Errorf("the table has delete files or deletion vectors, which are not supported yet in reads; rewrite the table's data files first")
	case !strings.EqualFold(e.Format, "parquet"):
		return fmt.Errorf("data file %s has format %s; only Parquet is read", e.Path, e.Format)
	}
	f := scanFile{ScanFile: &sinkv1.ScanFile{Uri: e.Path, SizeBytes: e.Size, RecordCount: e.Records, SplitOffsets: e.SplitOffsets}}
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
		// Files that were added to the table as they were may hold their partition columns in the path only.
		if has, known := e.HasColumn(id); known && !has && !containsID(sc.constantIDs, id) {
			sc.constantIDs = append(sc.constantIDs, id)
		}
	}
	sc.files = append(sc.files, f)
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

// fillConstants gives every file its value of every column that some file lacks.
func (sc *scan) fillConstants() error {
	for _, id := range sc.constantIDs {
		for i := range sc.files {
			f := &sc.files[i]
			v, ok := f.values[id]
			if !ok {
				return fmt.Errorf("column %s is missing in some data files and not a partition value of %s, which is not supported yet in reads", sc.schema.Node(id).Path, f.GetUri())
			}
			f.Constants = append(f.Constants, v)
		}
	}
	return nil
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
	out := &scanSpec{identity: map[int32]identity{}}
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
		if len(msg.Files) == scanBatchFiles || size+n > scanBatchBytes {
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
