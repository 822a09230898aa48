package iceberg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/evolve"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// PrepareWrite implements sdk.Sink.
func (s *Sink) PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	return s.prepare(ctx, sdk.HostFrom(ctx), req)
}

func (s *Sink) prepare(ctx context.Context, h Host, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	if req.GetMode() == sinkv1.WriteMode_WRITE_MODE_CREATE {
		return s.prepareCreate(ctx, h, req)
	}
	if req.GetMode() == sinkv1.WriteMode_WRITE_MODE_REPLACE {
		return s.prepareReplace(ctx, h, req)
	}
	if !supported(req.GetMode()) {
		return nil, permanent(req.GetTable(), fmt.Errorf("write mode %s is not supported by the sink iceberg", req.GetMode()))
	}
	t, err := s.existing(ctx, h, req.GetTable())
	if err != nil {
		return nil, err
	}
	spec, err := writeSpec(t.Metadata, req)
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	return &sinkv1.PrepareWriteResponse{Spec: spec}, nil
}

// appendSpec is the write spec of an append to a table as it is.
func appendSpec(m *meta.Metadata) (*planv1.WriteSpec, error) {
	return writeSpec(m, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
}

// writeSpec is the write spec of a write to a table as it is.
func writeSpec(m *meta.Metadata, req *sinkv1.PrepareWriteRequest) (*planv1.WriteSpec, error) {
	if err := writable(m); err != nil {
		return nil, err
	}
	schema, err := m.CurrentSchema()
	if err != nil {
		return nil, err
	}
	spec, err := m.DefaultSpec()
	if err != nil {
		return nil, err
	}
	order, err := m.SortOrder()
	if err != nil {
		return nil, err
	}
	how, err := newIntent(m, schema, req)
	if err != nil {
		return nil, err
	}
	w, err := newSpec(layout{
		uuid: m.UUID, location: m.Location, version: m.FormatVersion, schema: schema, spec: spec, order: order, properties: m.Properties, intent: how,
	}, nil)
	if err != nil {
		return nil, err
	}
	id, err := m.BranchID(req.GetBranch())
	if id != nil {
		w.BaseVersion = strconv.FormatInt(*id, 10)
	}
	if b := req.GetBranch(); b != meta.MainBranch {
		w.Branch = b
	}
	if s := how.picked; s != nil { // it was made on its parent, and what has changed since is told from there
		w.Pick, w.BaseVersion = versionOf(s.ID), ""
		if s.ParentID != nil {
			w.BaseVersion = versionOf(*s.ParentID)
		}
	}
	if err == nil && req.GetWapId() != "" && strings.EqualFold(strings.TrimSpace(m.Properties[propWap]), "true") {
		w.WapId, err = req.GetWapId(), unstaged(m, req.GetWapId())
	}
	return w, err
}

// propWap lets engines stage writes that name a wap.id.
const propWap = "write.wap.enabled"

// unstaged refuses a wap.id that the table has had: of two snapshots with one, only one could ever be published.
func unstaged(m *meta.Metadata, id string) error {
	s, err := m.Summarized(evolve.SummaryWapID, id)
	if err == nil && s == nil {
		if s, err = m.Summarized(evolve.SummaryPublished, id); s != nil {
			return fmt.Errorf("wap.id %q has been published, by snapshot %d; choose another one", id, s.ID)
		}
	}
	if s != nil {
		return fmt.Errorf("snapshot %d is staged with the wap.id %q already, and only one could be published; choose another one", s.ID, id)
	}
	return err
}

// writable refuses tables that an append would damage.
func writable(m *meta.Metadata) error {
	head, err := m.Head()
	switch {
	case err != nil:
		return err
	case m.Encrypted || m.Properties[propEncryptionKey] != "" || head != nil && head.KeyID != "":
		return errors.New("it is encrypted, which is not supported")
	case head != nil && head.ManifestList == "":
		return fmt.Errorf("snapshot %d has no manifest list (a table of a very old version), which is not supported", head.ID)
	}
	return nil
}

// layout is what a write spec is made of, for a table that exists or that will be created.
type layout struct {
	uuid, location string
	version        int
	schema         *meta.Schema
	spec           *meta.Spec
	order          *meta.SortOrder
	properties     map[string]string
	intent         intent
}

func newSpec(l layout, create *creation) (*planv1.WriteSpec, error) {
	partition, err := l.spec.Partition(l.schema)
	if err != nil {
		return nil, err
	}
	if err := writableTypes(l.schema, l.version); err != nil {
		return nil, err
	}
	p := &properties{all: l.properties, warnings: l.intent.warnings}
	w := &planv1.WriteSpec{
		TableUuid: l.uuid, Schema: &planv1.Schema{Fields: l.schema.Fields}, SchemaId: l.schema.ID, SpecId: l.spec.ID, Partition: partition,
		Files: p.fileRules(), DataLocation: p.dataLocation(l.location), FormatVersion: int32(l.version), CreatesTable: create != nil,
		Distribution: p.distribution(), Scope: l.intent.scope, RowChanges: l.intent.changes,
		AddsFiles: l.intent.adds, Names: l.intent.names,
	}
	if err := l.order.Check(l.schema); err != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("sort order %d is not honoured: %v", l.order.ID, err))
	} else {
		w.SortOrderId, w.Sort = l.order.ID, l.order.Fields
	}
	w.Files.Metrics = p.metricsModes(l.schema, l.order)
	st := state{
		Location: l.location, SchemaJSON: l.schema.JSON, SpecJSON: l.spec.Document(), ManifestSize: p.positive(propManifestSize, defaultManifestSize), Create: create,
		Mode: modeState(l.intent.mode), Operation: l.intent.operation, Isolation: l.intent.isolation, BaseSequence: l.intent.sequence,
		CheckPaths: l.intent.checkPaths,
	}
	if w.SinkState, err = st.encode(); err != nil {
		return nil, err
	}
	p.positive(propMergeCount, defaultMergeCount)
	p.review()
	w.Warnings = p.warnings
	return w, nil
}

// writableTypes refuses columns of types that the table's version does not have.
func writableTypes(schema *meta.Schema, version int) error {
	var err error
	schema.Walk(func(n *meta.Node) {
		if v := meta.MinVersion(n.Field.GetType()); err == nil && n.Leaf() && v > version {
			err = fmt.Errorf("column %s: type %s needs table format version %d, and the table has %d", n.Path, meta.TypeName(n.Field.GetType()), v, version)
		}
	})
	return err
}
