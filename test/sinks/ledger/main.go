// Command signet-sink-ledger is a sink for tests: a storage sink that carries out every kind of write, as plainly as that can be done. A table is a directory:
//
//	_ledger/00000000000000000000.json   one for each commit: what it adds and removes, and the table's definition where it changes
//	data/...                            Parquet files, written by executors
//
// It resolves no conflicts: what a commit removes is decided on the head that it follows.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func main() { sdk.Serve(ledger{}) }

type ledger struct{}

// entry is one commit.
type entry struct {
	Version   int64                         `json:"version"`
	Millis    int64                         `json:"millis"`
	Operation string                        `json:"operation"`
	User      string                        `json:"user"`
	Markers   []string                      `json:"markers"`
	Table     *sinkv1.DescribeTableResponse `json:"table,omitempty"`
	Add       []*sinkv1.ScanFile            `json:"add"`
	Remove    []string                      `json:"remove"`
	Pad       string                        `json:"pad,omitempty"` // as long as the table's property pad says
}

// staged is what a reference holds: the files of task manifests.
type staged struct {
	Add      []*sinkv1.ScanFile `json:"add"`
	Replaced []string           `json:"replaced"`
}

func (ledger) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "ledger", Version: "0.1.0", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE, CommitPoints: []string{"_ledger/*.json"},
		Summary: "every kind of write, for tests",
		Capabilities: []sinkv1.Capability{
			sinkv1.Capability_CAPABILITY_CREATE_AS_SELECT, sinkv1.Capability_CAPABILITY_GROUP_COMMIT, sinkv1.Capability_CAPABILITY_OVERWRITE,
			sinkv1.Capability_CAPABILITY_ROW_LEVEL, sinkv1.Capability_CAPABILITY_REWRITE, sinkv1.Capability_CAPABILITY_REPLACE_TABLE,
		},
	}
}

// head is a table at one version.
type head struct {
	location string
	table    *sinkv1.DescribeTableResponse // nil: there is no table
	entries  []*entry
	live     []*sinkv1.ScanFile
}

func (h *head) uri(version int64) string {
	return fmt.Sprintf("%s/_ledger/%020d.json", h.location, version)
}

// version is that of the newest commit, as text.
func (h *head) version() string { return strconv.FormatInt(int64(len(h.entries))-1, 10) }

// load reads the table as it is, or was when until said so.
func load(ctx context.Context, until func(*entry) bool) (*head, error) {
	location, err := sdk.HostFrom(ctx).Location(ctx)
	h := &head{location: location}
	for err == nil {
		e := &entry{}
		if err = sdk.HostFrom(ctx).GetJSON(ctx, h.uri(int64(len(h.entries))), e); err != nil || !until(e) {
			break
		}
		h.apply(e)
	}
	if err != nil && !errors.Is(err, sdk.ErrNotFound) {
		return nil, err
	}
	return h, nil
}

func (h *head) apply(e *entry) {
	h.entries = append(h.entries, e)
	h.live = slices.DeleteFunc(h.live, func(f *sinkv1.ScanFile) bool { return slices.Contains(e.Remove, f.GetUri()) })
	h.live = append(h.live, e.Add...)
	if e.Table != nil {
		h.table = e.Table
	}
}

func newest(*entry) bool { return true }

// loadTable is load for a table that has to be there.
func loadTable(ctx context.Context, until func(*entry) bool) (*head, error) {
	h, err := load(ctx, until)
	if err == nil && h.table == nil {
		err = sdk.Refuse(sdk.NotFound, "the table does not exist")
	}
	return h, err
}

// number gives every field, nested ones included, the id by which readers find it.
func number(fields []*planv1.Field, last *int32) {
	for _, f := range fields {
		*last++
		f.Id = *last
		number(f.GetType().GetFields(), last)
	}
}

// define makes a table of a definition; its partitions are columns.
func define(def *sinkv1.TableDefinition, location string) (*sinkv1.DescribeTableResponse, error) {
	number(def.GetSchema().GetFields(), new(int32))
	t := &sinkv1.DescribeTableResponse{Schema: def.GetSchema(), TableUuid: rand.Text(), Location: location, FormatVersion: 1, Properties: def.GetProperties()}
	for _, p := range def.GetPartition() {
		at := slices.IndexFunc(def.GetSchema().GetFields(), func(f *planv1.Field) bool { return f.GetName() == p.GetColumn() })
		if at < 0 || p.GetTransform() != planv1.TransformKind_TRANSFORM_KIND_IDENTITY {
			return nil, sdk.Refuse(sdk.Permanent, "partition %s: only columns are taken", p.GetColumn())
		}
		f := def.GetSchema().GetFields()[at]
		t.Partition = append(t.Partition, &planv1.PartitionField{
			FieldId: 1000 + int32(len(t.Partition)), Name: f.GetName(), SourceId: f.GetId(), Transform: p.GetTransform(), ResultType: f.GetType(), //nolint:gosec // few
		})
	}
	return t, nil
}

func (ledger) PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	h, err := load(ctx, newest)
	if err != nil {
		return nil, err
	}
	t := h.table
	spec := &planv1.WriteSpec{DataLocation: h.location + "/data", FormatVersion: 1, Files: &planv1.FileRules{Codec: "zstd"}}
	switch create := req.GetMode() == sinkv1.WriteMode_WRITE_MODE_CREATE; {
	case create && t != nil:
		return nil, sdk.Refuse(sdk.Exists, "the table exists")
	case !create && t == nil:
		return nil, sdk.Refuse(sdk.NotFound, "the table does not exist")
	case create || req.GetMode() == sinkv1.WriteMode_WRITE_MODE_REPLACE:
		made, err := define(req.GetDefinition(), h.location)
		if err != nil {
			return nil, err
		}
		if t != nil {
			made.TableUuid = t.GetTableUuid()
		}
		if spec.SinkState, err = json.Marshal(made); err != nil {
			return nil, err
		}
		t, spec.CreatesTable = made, create
	case req.GetMode() == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		spec.RowChanges = planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE
	}
	spec.TableUuid, spec.Schema, spec.Partition = t.GetTableUuid(), t.GetSchema(), t.GetPartition()
	if len(h.entries) > 0 {
		spec.BaseVersion = h.version()
	}
	return &sinkv1.PrepareWriteResponse{Spec: spec}, nil
}

// partitionOf makes bytes of a file's partition, which are equal where it is.
func partitionOf(values []*planv1.Value) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&planv1.DataFile{Partition: values})
}

func (ledger) Stage(_ context.Context, _ *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	resp := &sinkv1.StageResponse{}
	for m, err := range manifests.All() {
		if err != nil {
			return nil, err
		}
		var s staged
		for f, err := range m.Files() {
			if err != nil {
				return nil, err
			}
			partition, err := partitionOf(f.GetPartition())
			if err != nil {
				return nil, err
			}
			s.Add = append(s.Add, &sinkv1.ScanFile{Uri: f.GetPath(), RecordCount: f.GetRecordCount(), SizeBytes: f.GetSizeBytes(), Partition: partition})
		}
		for _, r := range m.Replaced() {
			s.Replaced = append(s.Replaced, r.GetPath())
		}
		data, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		resp.Refs = append(resp.Refs, &sinkv1.StagedRef{Data: data})
	}
	return resp, nil
}

func (ledger) Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	var all staged
	next := &entry{Operation: req.GetMode().String(), Add: []*sinkv1.ScanFile{}}
	for _, unit := range req.GetUnits() {
		next.Markers, next.User = append(next.Markers, unit.GetMarker()), unit.GetProperties()["signet.user"]
		for _, ref := range unit.GetRefs() {
			var s staged
			if err := json.Unmarshal(ref.GetData(), &s); err != nil {
				return nil, err
			}
			all.Add, all.Replaced = append(all.Add, s.Add...), append(all.Replaced, s.Replaced...)
		}
	}
	next.Add = append(next.Add, all.Add...)
	for attempt := int32(1); ; attempt++ {
		h, err := load(ctx, newest)
		if err != nil {
			return nil, err
		}
		switch version, found := find(h, next.Markers); {
		case found == len(next.Markers):
			return &sinkv1.CommitResponse{Outcome: sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, Attempts: attempt, Version: version}, nil
		case found > 0:
			return nil, sdk.Refuse(sdk.Permanent, "%d of %d units have committed before", found, len(next.Markers))
		}
		if err := next.follow(h, req, all.Replaced); err != nil {
			return nil, err
		}
		version := strconv.FormatInt(next.Version, 10)
		err = sdk.HostFrom(ctx).PutJSON(ctx, h.uri(next.Version), next, sdk.AsCommitPoint(version, h.version(), next.Markers...))
		if !errors.Is(err, sdk.ErrConflict) || attempt >= req.GetMaxAttempts() {
			return &sinkv1.CommitResponse{Outcome: sinkv1.Outcome_OUTCOME_COMMITTED, Attempts: attempt, Version: version, Location: h.uri(next.Version)}, err
		}
	}
}

// follow makes the commit one on top of a head.
func (e *entry) follow(h *head, req *sinkv1.CommitRequest, replaced []string) error {
	e.Version, e.Millis, e.Remove = int64(len(h.entries)), time.Now().UnixMilli(), []string{}
	made := &sinkv1.DescribeTableResponse{}
	creates := req.GetMode() == sinkv1.WriteMode_WRITE_MODE_CREATE
	switch {
	case creates && h.table != nil:
		return sdk.Refuse(sdk.Exists, "the table exists")
	case !creates && (h.table == nil || h.table.GetTableUuid() != req.GetSpec().GetTableUuid()):
		return sdk.Refuse(sdk.Permanent, "the table was dropped and created again since the write began")
	}
	remove := func(*sinkv1.ScanFile) (bool, error) { return false, nil }
	switch scope := req.GetSpec().GetScope(); req.GetMode() {
	case sinkv1.WriteMode_WRITE_MODE_CREATE, sinkv1.WriteMode_WRITE_MODE_REPLACE:
		if err := json.Unmarshal(req.GetSpec().GetSinkState(), made); err != nil {
			return err
		}
		e.Table, remove = made, func(*sinkv1.ScanFile) (bool, error) { return true, nil }
	case sinkv1.WriteMode_WRITE_MODE_OVERWRITE:
		remove = func(f *sinkv1.ScanFile) (bool, error) {
			switch {
			case scope.GetAll():
				return true, nil
			case scope.GetPartitions():
				return slices.ContainsFunc(e.Add, func(a *sinkv1.ScanFile) bool { return slices.Equal(a.GetPartition(), f.GetPartition()) }), nil
			}
			return h.satisfies(f, scope.GetFilter())
		}
	case sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, sinkv1.WriteMode_WRITE_MODE_REWRITE:
		for _, uri := range replaced {
			if !slices.ContainsFunc(h.live, func(f *sinkv1.ScanFile) bool { return f.GetUri() == uri }) {
				return sdk.Refuse(sdk.Permanent, "data file %s was removed meanwhile", uri)
			}
		}
		remove = func(f *sinkv1.ScanFile) (bool, error) { return slices.Contains(replaced, f.GetUri()), nil }
	}
	for _, f := range h.live {
		switch is, err := remove(f); {
		case err != nil:
			return err
		case is:
			e.Remove = append(e.Remove, f.GetUri())
		}
	}
	t := cmp.Or(e.Table, h.table)
	if pad := t.GetProperties()["pad"]; pad != "" {
		e.Pad = strings.Repeat("x", int(max(number64(pad), 0)))
	}
	return nil
}

// satisfies evaluates equalities of partition columns.
func (h *head) satisfies(f *sinkv1.ScanFile, p *planv1.Predicate) (bool, error) {
	d := &planv1.DataFile{}
	if err := proto.Unmarshal(f.GetPartition(), d); err != nil {
		return false, err
	}
	c := p.GetComparison()
	at := slices.IndexFunc(h.table.GetPartition(), func(x *planv1.PartitionField) bool { return x.GetSourceId() == c.GetFieldId() })
	if c.GetOp() != planv1.CompareOp_COMPARE_OP_EQ || at < 0 || at >= len(d.GetPartition()) {
		return false, sdk.Refuse(sdk.Permanent, "the filter %v: only a partition column that equals a value is taken", p)
	}
	return proto.Equal(d.GetPartition()[at], c.GetValues()[0]), nil
}

// find counts the markers that are in the table.
func find(h *head, markers []string) (version string, found int) {
	for _, e := range h.entries {
		for _, m := range markers {
			if slices.Contains(e.Markers, m) {
				version, found = strconv.FormatInt(e.Version, 10), found+1
			}
		}
	}
	return version, found
}

func (ledger) Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	h, err := load(ctx, newest)
	if err != nil {
		return nil, err
	}
	version, found := find(h, []string{req.GetMarker()})
	return &sinkv1.LookupResponse{Found: found > 0, Version: version}, nil
}

func (ledger) DescribeTable(ctx context.Context, _ *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	h, err := loadTable(ctx, newest)
	if err != nil {
		return nil, err
	}
	h.table.Version = h.version()
	return h.table, nil
}

func (ledger) PlanScan(ctx context.Context, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error {
	h, err := loadTable(ctx, func(e *entry) bool {
		return (req.GetVersion() == "" || e.Version <= number64(req.GetVersion())) && (req.AsOfMillis == nil || e.Millis <= req.GetAsOfMillis())
	})
	if err == nil && req.GetVersion() != "" && h.version() != req.GetVersion() {
		err = sdk.Refuse(sdk.Permanent, "the table has no version %s", req.GetVersion())
	}
	if err == nil {
		err = send(&sinkv1.PlanScanResponse{Schema: h.table.GetSchema(), Version: h.version(), TableUuid: h.table.GetTableUuid(), TotalFiles: int64(len(h.live))})
	}
	if err != nil {
		return err
	}
	var files []*sinkv1.ScanFile
	for _, f := range h.live {
		f.Matched = true
		if p := req.GetFilter(); p != nil {
			is, err := h.satisfies(f, p)
			if err == nil && !is {
				continue
			}
			f.Matched = is
		}
		files = append(files, f)
	}
	for chunk := range slices.Chunk(files, 1000) {
		if err := send(&sinkv1.PlanScanResponse{Files: chunk}); err != nil {
			return err
		}
	}
	return nil
}

func number64(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (ledger) History(ctx context.Context, req *sinkv1.HistoryRequest, send func(*sinkv1.HistoryResponse) error) error {
	h, err := loadTable(ctx, newest)
	if err != nil {
		return err
	}
	var all []*sinkv1.HistoryEntry
	for _, e := range slices.Backward(h.entries) {
		x := &sinkv1.HistoryEntry{
			Version: strconv.FormatInt(e.Version, 10), TimestampMillis: &e.Millis, User: e.User, Operation: e.Operation, BlindAppend: proto.Bool(len(e.Remove) == 0),
			Metrics: map[string]string{"numFiles": strconv.Itoa(len(e.Add)), "numRemovedFiles": strconv.Itoa(len(e.Remove))}, Engine: "ledger/0.1.0",
		}
		if e.Version > 0 {
			x.ReadVersion = proto.Int64(e.Version - 1)
		}
		all = append(all, x)
	}
	most := len(all)
	if req.GetLimit() > 0 {
		most = min(most, int(req.GetLimit()))
	}
	for chunk := range slices.Chunk(all[:most], 1000) {
		if err := send(&sinkv1.HistoryResponse{Entries: chunk}); err != nil {
			return err
		}
	}
	return nil
}

func (ledger) Maintain(ctx context.Context, req *sinkv1.MaintainRequest, send func(*sinkv1.MaintainResponse) error) error {
	h, err := loadTable(ctx, newest)
	if err != nil {
		return err
	}
	const retention = 7 * 24 * time.Hour
	since := cmp.Or(req.GetUnnamedSinceMillis(), time.Now().Add(-retention).UnixMilli())
	kept := map[string]bool{}
	for _, f := range h.live {
		kept[f.GetUri()] = true
	}
	for _, e := range h.entries {
		for _, uri := range e.Remove {
			kept[uri] = kept[uri] || e.Millis >= since
		}
	}
	objects, err := sdk.HostFrom(ctx).List(ctx, h.location+"/data")
	if err != nil && !errors.Is(err, sdk.ErrNotFound) {
		return err
	}
	resp := &sinkv1.MaintainResponse{Version: h.version(), TableUuid: h.table.GetTableUuid(), RetentionMillis: retention.Milliseconds()}
	for _, o := range objects {
		if !kept[o.GetUri()] && o.GetMtimeMillis() < req.GetOlderThanMillis() {
			resp.Proposals = append(resp.Proposals, &sinkv1.Proposal{Uri: o.GetUri(), SizeBytes: o.GetSize(), MtimeMillis: o.GetMtimeMillis(), Reason: "no version needs it"})
		}
	}
	return send(resp)
}
