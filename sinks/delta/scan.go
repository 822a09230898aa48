package delta

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/internal/skip"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
)

// The most that goes into one message of a scan.
const (
	scanBatchFiles = 1000
	scanBatchBytes = 1 << 20
)

// PlanScan implements sdk.ScanPlanner.
func (s *Sink) PlanScan(ctx context.Context, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error {
	ref := req.GetTable()
	t, err := s.existing(ctx, ref)
	if err != nil {
		return err
	}
	if t, err = t.asked(ctx, req); err != nil {
		return refused(ref, err)
	}
	if err := log.CheckRead(t.Protocol, t.Metadata); err != nil {
		return permanent(ref, err)
	}
	sc, err := newScan(t, req)
	if err != nil {
		return permanent(ref, err)
	}
	files := make([]*sinkv1.ScanFile, 0, t.NumFiles())
	for a := range t.Files() {
		f, err := sc.file(a)
		if err != nil {
			return permanent(ref, fmt.Errorf("version %d: data file %s: %w", t.Version, a.Path, err))
		}
		if f != nil {
			files = append(files, f)
		}
	}
	first := &sinkv1.PlanScanResponse{
		Schema: sc.schema, Version: versionOf(t.Version), TableUuid: t.Metadata.ID, ConstantIds: sc.constantIDs, TotalFiles: int64(t.NumFiles()), ByName: true,
	}
	return sendFiles(first, files, send)
}

// asked is the table at the version that a request names.
func (t *table) asked(ctx context.Context, req *sinkv1.PlanScanRequest) (*table, error) {
	var o log.LoadOptions
	switch {
	case req.GetRef() != "" && req.GetRef() != "main":
		return nil, sdk.Refuse(sdk.Permanent, "table %s: %q: Delta tables have no branches and no tags", tableName(req.GetTable()), req.GetRef())
	case req.GetVersion() != "" && req.AsOfMillis != nil:
		return nil, sdk.Refuse(sdk.Permanent, "table %s: a scan is of a version or of a time, and not of both", tableName(req.GetTable()))
	case req.GetVersion() != "":
		v, err := strconv.ParseInt(req.GetVersion(), 10, 64)
		if err != nil {
			return nil, sdk.Refuse(sdk.Permanent, "table %s: version %q is not a whole number", tableName(req.GetTable()), req.GetVersion())
		}
		if v == t.Version {
			return t, nil
		}
		o.Version = &v
	case req.AsOfMillis != nil:
		at := time.UnixMilli(req.GetAsOfMillis())
		o.AsOf = &at
	default:
		return t, nil
	}
	old, err := log.Load(ctx, t.store, o)
	if err != nil {
		return nil, err
	}
	return &table{Snapshot: old, store: t.store, location: t.location}, nil
}

// scan makes the files of one version ones that executors can read.
type scan struct {
	table       *table
	schema      *planv1.Schema
	columns     partition.Columns
	constantIDs []int32      // of the partition columns, which files do not hold
	filter      *skip.Filter // nil: none
	partitions  bool
	spec        int32
}

func newScan(t *table, req *sinkv1.PlanScanRequest) (*scan, error) {
	columns, err := schema.Parse(t.Metadata.SchemaString)
	if err != nil {
		return nil, err
	}
	sc := &scan{table: t, schema: schemaOf(columns), partitions: req.GetPartitions(), spec: specID(t.Metadata.PartitionColumns)}
	if sc.columns, err = partition.Of(columns, t.Metadata.PartitionColumns); err != nil {
		return nil, err
	}
	for _, f := range partitionFields(sc.schema, t.Metadata.PartitionColumns) {
		sc.constantIDs = append(sc.constantIDs, f.GetSourceId())
	}
	if req.GetFilter() != nil {
		sc.filter, err = newFilter(columns, sc.columns, req.GetFilter())
	}
	return sc, err
}

// file is a data file of the version; nil: the filter leaves it out.
func (sc *scan) file(a *log.Add) (*sinkv1.ScanFile, error) {
	f := &sinkv1.ScanFile{Uri: resolve(sc.table.location, a.Path), SizeBytes: a.Size, SpecId: sc.spec}
	if sc.filter != nil {
		if !sc.filter.Inclusive(a) {
			return nil, nil
		}
		f.Matched = sc.filter.Strict(a)
	} else {
		f.Matched = true
	}
	if a.Stats != nil {
		if n, ok := stats.Records(*a.Stats); ok {
			f.RecordCount = n
		}
	}
	values, err := sc.columns.Parse(a.PartitionValues)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		f.Constants = append(f.Constants, planValue(v))
	}
	if sc.partitions {
		key, err := sc.columns.Key(a.PartitionValues)
		if err != nil {
			return nil, err
		}
		f.Partition = []byte(key)
	}
	if a.DeletionVector != nil {
		d, err := sc.deletes(a.DeletionVector)
		if err != nil {
			return nil, err
		}
		f.Deletes = []*planv1.DeleteFile{d}
	}
	return f, nil
}

// sendFiles sends the first message and the files in batches.
func sendFiles(msg *sinkv1.PlanScanResponse, files []*sinkv1.ScanFile, send func(*sinkv1.PlanScanResponse) error) error {
	size := 0
	for _, f := range files {
		n := len(f.GetUri()) + len(f.GetPartition()) + 64
		for _, c := range f.GetConstants() {
			n += len(c.GetString_()) + len(c.GetBinary()) + 16
		}
		for _, d := range f.GetDeletes() {
			n += len(d.GetPath()) + len(d.GetInline()) + 48
		}
		if len(msg.GetFiles()) > 0 && (len(msg.GetFiles()) == scanBatchFiles || size+n > scanBatchBytes) {
			if err := send(msg); err != nil {
				return err
			}
			msg, size = &sinkv1.PlanScanResponse{}, 0
		}
		msg.Files = append(msg.Files, f)
		size += n
	}
	return send(msg)
}

var errVector = errors.New("deletion vector")
