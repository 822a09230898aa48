package delta

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
)

// PrepareWrite implements sdk.Sink.
func (s *Sink) PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	ref := req.GetTable()
	if err := asked(req); err != nil {
		return nil, permanent(ref, err)
	}
	t, err := s.load(ctx, ref)
	if err != nil {
		return nil, err
	}
	st := state{Mode: req.GetMode(), Location: t.location}
	var metadata *log.Metadata
	switch {
	case st.Mode == sinkv1.WriteMode_WRITE_MODE_CREATE && !t.missing:
		return nil, exists(ref)
	case st.Mode == sinkv1.WriteMode_WRITE_MODE_CREATE:
		if st.Define, err = define(req.GetDefinition(), s.now()); err == nil {
			err = placed(req.GetDefinition(), t.location)
		}
		if err != nil {
			return nil, permanent(ref, err)
		}
		metadata = &st.Define.Metadata
	case t.missing:
		return nil, sdk.Refuse(sdk.NotFound, "table %s does not exist: there is no Delta log in %s", tableName(ref), t.location)
	case st.Mode == sinkv1.WriteMode_WRITE_MODE_REPLACE:
		if st.Define, err = redefine(t.Snapshot, req.GetDefinition(), s.now()); err == nil {
			err = placed(req.GetDefinition(), t.location)
		}
		if err != nil {
			return nil, permanent(ref, err)
		}
		metadata = &st.Define.Metadata
	default:
		metadata = &t.Metadata
	}
	if !t.missing {
		if err := st.writable(t.Snapshot); err != nil {
			return nil, permanent(ref, err)
		}
	}
	if st.Define == nil {
		if d, ok := t.Domains()[domainClustering]; ok {
			if st.Clustered, err = stats.Clustering(d.Configuration); err != nil {
				return nil, permanent(ref, err)
			}
		}
	}
	spec, err := st.spec(req, metadata)
	if err != nil {
		return nil, permanent(ref, err)
	}
	if !t.missing {
		spec.BaseVersion = versionOf(t.Version)
	}
	return &sinkv1.PrepareWriteResponse{Spec: spec}, nil
}

// asked refuses writes that Delta tables do not have.
func asked(req *sinkv1.PrepareWriteRequest) error {
	switch {
	case !slices.Contains(supported, req.GetMode()):
		return fmt.Errorf("write mode %s is not supported by the sink delta", req.GetMode())
	case req.GetBranch() != "" && req.GetBranch() != "main":
		return fmt.Errorf("branch %q: Delta tables have no branches", req.GetBranch())
	case req.GetWapId() != "":
		return fmt.Errorf("wap.id %q: Delta tables have no snapshots that are staged to be published later", req.GetWapId())
	case req.GetMode() == sinkv1.WriteMode_WRITE_MODE_OVERWRITE && req.GetScope().GetKind() == nil:
		return fmt.Errorf("an overwrite without a scope")
	}
	return nil
}

// writable refuses tables with features that the write cannot honour, by name.
func (st *state) writable(t *log.Snapshot) error {
	if st.Mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL {
		if err := log.CheckRowLevel(t.Protocol, t.Metadata); err != nil {
			return err
		}
	} else if err := log.CheckWrite(t.Protocol, t.Metadata); err != nil {
		return err
	}
	removes := st.Mode == sinkv1.WriteMode_WRITE_MODE_OVERWRITE || st.Mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL || st.Mode == sinkv1.WriteMode_WRITE_MODE_REPLACE
	if removes && isTrue(t.Metadata.Configuration[propAppendOnly]) {
		return fmt.Errorf("its property %s is true: rows are only added; ALTER TABLE … SET TBLPROPERTIES ('%s' = 'false') lets them be removed", propAppendOnly, propAppendOnly)
	}
	return nil
}

// spec is the write spec of a table that is, or will be, as m says.
func (st *state) spec(req *sinkv1.PrepareWriteRequest, m *log.Metadata) (*planv1.WriteSpec, error) {
	s, err := schema.Parse(m.SchemaString)
	if err != nil {
		return nil, err
	}
	if err := s.CheckNames(); err != nil {
		return nil, oneLine(err)
	}
	if _, err := s.Partition(m.PartitionColumns); err != nil {
		return nil, err
	}
	files, warnings := fileRules(m.Configuration)
	st.SchemaText, st.PartitionBy = m.SchemaString, m.PartitionColumns
	if len(st.PartitionBy) == 0 {
		st.PartitionBy = nil
	}
	w := &planv1.WriteSpec{
		TableUuid: m.ID, Schema: schemaOf(s), SchemaId: schemaID(st.SchemaText), SpecId: specID(st.PartitionBy), Files: files, DataLocation: st.Location, FormatVersion: 1,
		Warnings: warnings, CreatesTable: st.Mode == sinkv1.WriteMode_WRITE_MODE_CREATE, Scope: req.GetScope(), AddsFiles: req.GetAddFiles() != nil,
	}
	w.Partition = partitionFields(w.GetSchema(), st.PartitionBy)
	if st.Mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL {
		w.RowChanges, st.Operation = planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE, req.GetOperation()
	}
	st.Statistics = maps.Clone(m.Configuration)
	maps.DeleteFunc(st.Statistics, func(k, _ string) bool { return !strings.HasPrefix(k, "delta.dataSkipping") })
	if len(st.Statistics) == 0 {
		st.Statistics = nil
	}
	st.metrics(w, s)
	w.SinkState, err = json.Marshal(st)
	return w, err
}

// domainClustering says by which columns other writers cluster the table's rows: each file has to have their statistics.
const domainClustering = "delta.clustering"

// firstPartitionField is the id of the first partition field; Delta has none.
const firstPartitionField = 1000

func partitionFields(s *planv1.Schema, names []string) []*planv1.PartitionField {
	var out []*planv1.PartitionField
	for i, name := range names {
		for _, f := range s.GetFields() {
			if f.GetName() == name {
				out = append(out, &planv1.PartitionField{
					FieldId: firstPartitionField + int32(i), Name: name, SourceId: f.GetId(), Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY, ResultType: f.GetType(),
				})
			}
		}
	}
	return out
}
