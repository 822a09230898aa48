package iceberg

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// Stage implements sdk.Sink.
func (s *Sink) Stage(ctx context.Context, header *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	h := sdk.HostFrom(ctx)
	s.warm(ctx, h, header.GetTable())
	return stage(ctx, h, header, manifests)
}

// warm reads the manifest list on which the commit will probably build, while tasks still run. If it fails, so will the commit, and that will say so.
func (s *Sink) warm(ctx context.Context, h Host, ref *sinkv1.TableRef) {
	_, m, ok := s.tables.latest(tableName(ref))
	if !ok {
		return
	}
	if head, err := m.Head(); err == nil && head != nil && head.ManifestList != "" {
		_, _ = s.manifests(ctx, h, head)
	}
}

// staging packs the files of one call into Iceberg manifests.
type staging struct {
	host  Host
	plan  *plan
	job   string
	nonce string
	w     *icefile.Writer
	snap  int64 // format version 1
	seq   *int64
	log   changeLog
	parts map[string]bool // partitions in the log, by tupleKey
	refs  []ref
	names bool // some files have no field ids

	named     int // manifests
	early     early
	sendBytes int
}

func stage(ctx context.Context, h Host, header *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	return stageIn(ctx, h, header, manifests, sendBytes)
}

// stageIn sends manifests in pieces of at least so many bytes while they are made.
func stageIn(ctx context.Context, h Host, header *sinkv1.StageHeader, manifests *sdk.ManifestSource, piece int) (*sinkv1.StageResponse, error) {
	st, err := newStaging(h, header)
	if err != nil {
		return nil, permanent(header.GetTable(), err)
	}
	st.sendBytes = piece
	defer st.giveUp()
	for m, err := range manifests.All() {
		if err != nil {
			return nil, err
		}
		if err := st.check(m.Header); err != nil {
			return nil, permanent(header.GetTable(), err)
		}
		for f, err := range m.EachLean() {
			if err != nil {
				return nil, err
			}
			if err := st.add(ctx, f); errors.Is(err, icefile.ErrRefused) {
				return nil, permanent(header.GetTable(), fmt.Errorf("task %d, attempt %s: %w", m.Header.GetTask(), m.Header.GetAttemptId(), err))
			} else if err != nil {
				return nil, err
			}
		}
		if err := st.replace(m.Replaced()); err != nil {
			return nil, permanent(header.GetTable(), fmt.Errorf("task %d, attempt %s: %w", m.Header.GetTask(), m.Header.GetAttemptId(), err))
		}
	}
	if err := st.last(ctx); err != nil {
		return nil, err
	}
	return st.response()
}

func newStaging(h Host, header *sinkv1.StageHeader) (*staging, error) {
	p, err := readPlan(header.GetSpec())
	if err != nil {
		return nil, err
	}
	if header.GetJobId() == "" {
		return nil, errors.New("Stage without a job id")
	}
	st := &staging{host: h, plan: p, job: header.GetJobId(), nonce: nonce(), parts: map[string]bool{}}
	l := icefile.Layout{Version: int(p.GetFormatVersion()), Schema: p.schema, Spec: p.partition, Partition: p.GetPartition(), Metrics: p.GetFiles().GetMetrics()}
	if l.Version == 1 {
		st.snap = snapshotOfJob(p.GetTableUuid(), st.job)
		l.SnapshotID = st.snap
	}
	if sinkv1.WriteMode(p.Mode) == sinkv1.WriteMode_WRITE_MODE_REWRITE {
		st.seq = &p.BaseSequence // so that deletes since then still apply to the rows
		l.Sequence = st.seq
	}
	st.w, err = icefile.NewWriter(l)
	return st, err
}

// nonce makes object names differ between processes and calls: a name is created once, and never again.
func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it cannot fail; see crypto/rand
	return hex.EncodeToString(b[:])
}

// snapshotOfJob is the snapshot id of a job in a table of format version 1, whose manifest entries hold the id before the commit knows it. It is the same
// however often the job is staged.
func snapshotOfJob(tableUUID, job string) int64 {
	sum := sha256.Sum256([]byte("signet-snapshot\x00" + tableUUID + "\x00" + job))
	return int64(binary.BigEndian.Uint64(sum[:])>>1) | 1 // positive
}

// check compares the ids of a task manifest before any of its files is looked at.
func (st *staging) check(h *planv1.ManifestHeader) error {
	p := st.plan
	if mutant.On("iceberg/ids-unchecked") {
		return nil
	}
	if h.GetJobId() != st.job || h.GetTableUuid() != p.GetTableUuid() || h.GetSchemaId() != p.GetSchemaId() || h.GetSpecId() != p.GetSpecId() {
		return fmt.Errorf("task %d, attempt %s: the task manifest is of job %s, table %s, schema %d, spec %d; wanted %s, %s, %d, %d", h.GetTask(), h.GetAttemptId(),
			h.GetJobId(), h.GetTableUuid(), h.GetSchemaId(), h.GetSpecId(), st.job, p.GetTableUuid(), p.GetSchemaId(), p.GetSpecId())
	}
	return nil
}

// replace notes files that the commit removes.
func (st *staging) replace(files []*planv1.ReplacedFile) error {
	for _, f := range files {
		if !replaces(st.plan) {
			return fmt.Errorf("data file %s is replaced, and the write replaces none", f.GetPath())
		}
		c := &change{kind: changeReplaced, path: f.GetPath(), records: f.GetRecordCount(), deleted: f.GetDeletedRows(), updated: f.GetUpdatedRows()}
		if err := st.log.add(c); err != nil {
			return err
		}
	}
	return nil
}

// replaces reports whether the write names the files that it removes.
func replaces(p *plan) bool {
	m := sinkv1.WriteMode(p.Mode)
	return m == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL || m == sinkv1.WriteMode_WRITE_MODE_REWRITE
}

// wantedDeletes is the content of delete files by the way in which changed rows are stored.
var wantedDeletes = map[planv1.RowChanges]planv1.FileContent{
	planv1.RowChanges_ROW_CHANGES_POSITION_DELETES: planv1.FileContent_FILE_CONTENT_POSITION_DELETES,
	planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR,
}

// addDeletes notes a delete file. The manifest of delete files is made at the commit, which knows the partition of the data file.
func (st *staging) addDeletes(f *planv1.DataFile) error {
	want, ok := wantedDeletes[st.plan.GetRowChanges()]
	vector := f.GetContent() == planv1.FileContent_FILE_CONTENT_DELETION_VECTOR
	switch {
	case !ok || f.GetContent() != want:
		return fmt.Errorf("%w: %s: a file of content %s, and changed rows are stored as %s", icefile.ErrRefused, f.GetPath(), f.GetContent(), st.plan.GetRowChanges())
	case f.GetReferencedDataFile() == "" || f.GetPath() == "":
		return fmt.Errorf("%w: delete file %q does not say which data file it is about", icefile.ErrRefused, f.GetPath())
	case f.GetRecordCount() <= 0 || f.GetSizeBytes() <= 0:
		return fmt.Errorf("%w: delete file %s: %d rows in %d bytes", icefile.ErrRefused, f.GetPath(), f.GetRecordCount(), f.GetSizeBytes())
	case vector && (f.GetContentOffset() < 0 || f.GetContentSize() <= 0 || f.GetContentSize() > f.GetSizeBytes()-f.GetContentOffset()):
		return fmt.Errorf("%w: deletion vector %s at %d+%d of %d bytes", icefile.ErrRefused, f.GetPath(), f.GetContentOffset(), f.GetContentSize(), f.GetSizeBytes())
	}
	n := manifest.CountsOf(f)
	if n.Deleted < 0 || n.Updated < 0 || f.GetCarriedRows() < 0 {
		return fmt.Errorf("%w: delete file %s: %d rows, %d of them deleted before and %d changed", icefile.ErrRefused, f.GetPath(), f.GetRecordCount(), f.GetCarriedRows(), n.Updated)
	}
	return st.log.add(&change{
		kind: changeDeletes, path: f.GetPath(), content: int64(f.GetContent()), records: f.GetRecordCount(), deleted: n.Deleted, updated: n.Updated,
		size: f.GetSizeBytes(), offset: f.GetContentOffset(),
		length: f.GetContentSize(), referenced: f.GetReferencedDataFile(), merged: f.GetMerged(),
	})
}

func (st *staging) add(ctx context.Context, f sdk.LeanFile) error {
	if f.GetContent() != planv1.FileContent_FILE_CONTENT_UNSPECIFIED {
		return st.addDeletes(f.DataFile)
	}
	if err := st.w.AddLean(f.DataFile, f.Columns); err != nil {
		return err
	}
	st.names = st.names || f.GetByName()
	if st.plan.Mode != 0 && len(st.plan.GetPartition()) > 0 {
		if key := icefile.TupleKey(st.plan.GetPartition(), f.GetPartition()); !st.parts[key] {
			st.parts[key] = true
			if err := st.log.add(&change{kind: changePartition, tuple: []byte(key)}); err != nil {
				return err
			}
		}
	}
	if int64(st.w.Size()) < st.plan.ManifestSize {
		st.send(ctx)
		return nil
	}
	return st.flush(ctx)
}

// inlineBytes is the largest Iceberg manifest that its reference holds, instead of naming an object.
const inlineBytes = 32 << 10

// flush ends the current Iceberg manifest and creates it.
func (st *staging) flush(ctx context.Context) error {
	r, data, err := st.pack()
	if err != nil || r == nil {
		return err
	}
	if r.Path, err = st.put(ctx, data); err != nil {
		return err
	}
	st.refs = append(st.refs, *r)
	return nil
}

// last ends the call's last manifest. If it is the only one and small, nobody waits for it here: Commit creates it while it loads the table.
func (st *staging) last(ctx context.Context) error {
	if len(st.refs) > 0 || st.w.Size() > inlineBytes {
		if err := st.flush(ctx); err != nil {
			return err
		}
		return st.changes(ctx)
	}
	r, data, err := st.pack()
	if err != nil {
		return err
	}
	if r != nil {
		r.Inline = data
		st.refs = append(st.refs, *r)
	}
	return st.changes(ctx)
}

// changes ends the list of changes, if there are any.
func (st *staging) changes(ctx context.Context) error {
	l := &st.log
	if l.n == 0 {
		return nil
	}
	data, err := l.data()
	if err != nil {
		return err
	}
	r := st.ref(int64(len(data)))
	r.Kind, r.Files, r.Bytes, r.ReplacedFiles, r.DeletedRows, r.UpdatedRows = refChanges, l.files, l.bytes, l.replaced, l.deleted, l.update
	if len(data) <= inlineBytes {
		r.Inline = data
	} else {
		r.Path = metadataPath(st.plan.Location, "%s-%s-changes.avro", st.job, st.nonce)
		if err := putManifest(ctx, st.host, r.Path, data); err != nil {
			return err
		}
	}
	st.refs = append(st.refs, *r)
	return nil
}

func (st *staging) ref(length int64) *ref {
	p := st.plan
	return &ref{
		TableUUID: p.GetTableUuid(), JobID: st.job, Version: int(p.GetFormatVersion()), SchemaID: p.GetSchemaId(), SpecID: p.GetSpecId(), Length: length,
	}
}

// pack ends the current Iceberg manifest; nil: it has no files.
func (st *staging) pack() (*ref, []byte, error) {
	if st.w.Files() == 0 {
		return nil, nil, nil
	}
	packed, err := st.w.Finish()
	if err != nil {
		return nil, nil, err
	}
	r := st.ref(int64(len(packed.Data)))
	r.Files, r.Rows, r.Bytes, r.SnapshotID, r.Sequence, r.Partitions = packed.Files, packed.Rows, packed.Bytes, st.snap, st.seq, packed.Partitions
	return r, packed.Data, nil
}

func putManifest(ctx context.Context, h Host, uri string, data []byte) error {
	if err := hit("iceberg.stage.before-put"); err != nil {
		return err
	}
	if _, err := h.PutIfAbsent(ctx, uri, data); err != nil {
		return fmt.Errorf("write Iceberg manifest %s: %w", uri, err)
	}
	return hit("iceberg.stage.after-put")
}

func (st *staging) response() (*sinkv1.StageResponse, error) {
	resp := &sinkv1.StageResponse{Totals: &sinkv1.Totals{}}
	for i, r := range st.refs {
		if i == 0 {
			r.First, r.Nulls, r.Tuples, r.ByName = true, st.w.MayHaveNulls(), st.w.Tuples(), st.names
			r.ManyMore = r.Tuples == nil
		}
		out, err := r.encode()
		if err != nil {
			return nil, err
		}
		resp.Refs = append(resp.Refs, out)
		resp.Totals.Files += r.Files
		resp.Totals.Rows += r.Rows
		resp.Totals.Bytes += r.Bytes
		resp.Totals.ReplacedFiles += r.ReplacedFiles
		resp.Totals.DeletedRows += r.DeletedRows
		resp.Totals.UpdatedRows += r.UpdatedRows
	}
	return resp, nil
}
