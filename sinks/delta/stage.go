package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// refLines is how many bytes of add actions go into one reference: some 10,000 files.
const refLines = 4 << 20

// Stage implements sdk.Sink. It needs no objects: references hold the add actions themselves, as the log will have them.
func (s *Sink) Stage(_ context.Context, header *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	ref := header.GetTable()
	p, err := readPlan(header.GetSpec())
	if err == nil && header.GetJobId() == "" {
		err = errors.New("Stage without a job id")
	}
	if err != nil {
		return nil, permanent(ref, err)
	}
	st := &staging{plan: p, job: header.GetJobId(), millis: s.now().UnixMilli(), stats: newStatistician(p)}
	st.reset()
	for m, err := range manifests.All() {
		if err != nil {
			return nil, err
		}
		where := fmt.Sprintf("task %d, attempt %s", m.Header.GetTask(), m.Header.GetAttemptId())
		if err := st.check(m.Header); err != nil {
			return nil, permanent(ref, fmt.Errorf("%s: %w", where, err))
		}
		for f, err := range m.EachLean() {
			if err != nil {
				return nil, err
			}
			if err := st.add(f); err != nil {
				return nil, permanent(ref, fmt.Errorf("%s: file %s: %w", where, f.GetPath(), err))
			}
		}
		if err := st.replace(m.Replaced()); err != nil {
			return nil, permanent(ref, fmt.Errorf("%s: %w", where, err))
		}
	}
	if err := st.flush(); err != nil {
		return nil, err
	}
	return &sinkv1.StageResponse{Refs: st.refs}, nil
}

// staging packs the files of one call into references.
type staging struct {
	plan   *plan
	stats  *statistician
	job    string
	millis int64 // when the files are said to have been made
	head   *refHeader
	lines  []byte
	size   int // of the list of replaced files, about
	refs   []*sinkv1.StagedRef
}

func (st *staging) reset() {
	st.head = &refHeader{TableUUID: st.plan.GetTableUuid(), JobID: st.job, SchemaID: st.plan.GetSchemaId(), SpecID: st.plan.GetSpecId()}
	st.lines, st.size = st.lines[:0], 0
}

// check compares the ids of a task manifest before any of its files is looked at.
func (st *staging) check(h *planv1.ManifestHeader) error {
	p := st.plan
	if h.GetJobId() != st.job || h.GetTableUuid() != p.GetTableUuid() || h.GetSchemaId() != p.GetSchemaId() || h.GetSpecId() != p.GetSpecId() {
		return fmt.Errorf("the task manifest is of job %s, table %s, schema %d, spec %d; wanted %s, %s, %d, %d",
			h.GetJobId(), h.GetTableUuid(), h.GetSchemaId(), h.GetSpecId(), st.job, p.GetTableUuid(), p.GetSchemaId(), p.GetSpecId())
	}
	return nil
}

func (st *staging) add(f sdk.LeanFile) error {
	switch {
	case f.GetContent() != planv1.FileContent_FILE_CONTENT_UNSPECIFIED:
		return fmt.Errorf("it is of content %s, and Delta tables are written data files only", f.GetContent())
	case f.GetFormat() != planv1.FileFormat_FILE_FORMAT_PARQUET:
		return fmt.Errorf("its format is %s, and Delta tables have Parquet files", f.GetFormat())
	case f.GetRecordCount() < 0 || f.GetSizeBytes() <= 0:
		return fmt.Errorf("it has %d rows in %d bytes", f.GetRecordCount(), f.GetSizeBytes())
	}
	path, below := strings.CutPrefix(f.GetPath(), st.plan.Location+"/")
	if path == "" || !below && !st.plan.GetAddsFiles() {
		return fmt.Errorf("it does not lie below the table's location %s", st.plan.Location)
	}
	partition, err := st.partition(f.DataFile)
	if err != nil {
		return err
	}
	a := &log.Add{Path: path, PartitionValues: partition, Size: f.GetSizeBytes(), ModificationTime: st.millis, DataChange: true}
	if a.Stats, err = st.stats.of(f); err != nil {
		return err
	}
	if st.lines, err = log.AppendAction(st.lines, &log.Action{Add: a}); err != nil {
		return err
	}
	h := st.head
	h.Files, h.Rows, h.Bytes = h.Files+1, h.Rows+f.GetRecordCount(), h.Bytes+f.GetSizeBytes()
	return st.full()
}

// partition gives the texts of a file's partition values.
func (st *staging) partition(f *planv1.DataFile) (map[string]*string, error) {
	c := &st.plan.columns
	if len(f.GetPartition()) != len(c.Names) {
		return nil, fmt.Errorf("it has %d partition values, and the table %d partition columns", len(f.GetPartition()), len(c.Names))
	}
	values := make([]value.Value, len(c.Names))
	for i, v := range f.GetPartition() {
		var err error
		if values[i], err = valueOf(c.Types[i], v); err != nil {
			return nil, fmt.Errorf("partition column %s: %w", c.Names[i], err)
		}
	}
	return c.Serialize(values)
}

func (st *staging) replace(files []*planv1.ReplacedFile) error {
	for _, f := range files {
		switch {
		case !st.plan.replaces():
			return fmt.Errorf("data file %s is replaced, and the write replaces none", f.GetPath())
		case f.GetPath() == "" || f.GetRecordCount() < 0 || f.GetDeletedRows() < 0 || f.GetUpdatedRows() < 0:
			return fmt.Errorf("data file %q is replaced, of which %d of %d rows are deleted and %d changed", f.GetPath(), f.GetDeletedRows(), f.GetRecordCount(), f.GetUpdatedRows())
		}
		st.head.Replaced = append(st.head.Replaced, replaced{f.GetPath(), f.GetRecordCount(), f.GetDeletedRows(), f.GetUpdatedRows()})
		st.size += len(f.GetPath()) + 64
		if err := st.full(); err != nil {
			return err
		}
	}
	return nil
}

// full ends the reference if it is large enough.
func (st *staging) full() error {
	if len(st.lines)+st.size < refLines {
		return nil
	}
	return st.flush()
}

func (st *staging) flush() error {
	if st.head.Files == 0 && len(st.head.Replaced) == 0 {
		return nil
	}
	r, err := encodeRef(st.head, st.lines)
	if err != nil {
		return err
	}
	st.refs = append(st.refs, r)
	st.reset()
	return nil
}
