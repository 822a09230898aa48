package iceberg

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/google/uuid"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// CreateTable implements sdk.TableCreator.
func (s *Sink) CreateTable(ctx context.Context, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error) {
	return s.createTable(ctx, sdk.HostFrom(ctx), req)
}

func (s *Sink) createTable(ctx context.Context, h Host, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error) {
	d, err := define(req.GetDefinition())
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	create := &hostv1.CreateTableRequest{
		Schema: d.schema.JSON, PartitionSpec: d.spec.Document(), SortOrder: d.order.JSON, Location: d.location, Properties: map[string]string{},
	}
	maps.Copy(create.Properties, d.properties)
	create.Properties[propFormatVersion] = strconv.Itoa(d.version)
	if err := hit("iceberg.create.before-send"); err != nil {
		return nil, err
	}
	_, raw, err := h.CreateTable(ctx, create)
	if err != nil {
		return nil, err
	}
	if err := fault.Hit("iceberg.create.after-send"); err != nil {
		return nil, err
	}
	m, err := s.created(ctx, h, req.GetTable(), raw)
	if err != nil {
		return nil, err
	}
	// What is honoured is read from the table as the catalog made it; some give another version than was asked for.
	spec, err := appendSpec(m)
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	warnings := append(d.warnings, spec.GetWarnings()...)
	if m.FormatVersion == 1 {
		warnings = append(warnings, "format version 1: rows are only added; statements that remove or change them need version 2")
	}
	if m.FormatVersion != d.version {
		warnings = append(warnings, "the catalog made a table of format version "+strconv.Itoa(m.FormatVersion)+", not "+strconv.Itoa(d.version))
	}
	return &sinkv1.CreateTableResponse{TableUuid: m.UUID, Location: m.Location, Warnings: warnings}, nil
}

// created reads the metadata of the table that was just made; a host may leave it out.
func (s *Sink) created(ctx context.Context, h Host, ref *sinkv1.TableRef, raw []byte) (*meta.Metadata, error) {
	if len(raw) == 0 {
		t, err := s.existing(ctx, h, ref)
		if err != nil {
			return nil, err
		}
		return t.Metadata, nil
	}
	m, err := meta.Parse(raw)
	if err != nil {
		return nil, permanent(ref, err)
	}
	return m, nil
}

// prepareCreate plans the table that a CREATE TABLE AS SELECT will create with its first snapshot.
func (s *Sink) prepareCreate(ctx context.Context, h Host, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	t, err := s.load(ctx, h, req.GetTable(), true)
	if err != nil {
		return nil, err
	}
	if !t.missing {
		return nil, sdk.Refuse(sdk.Exists, "table %s exists already", tableName(req.GetTable()))
	}
	d, err := define(req.GetDefinition())
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	if d.location != "" && !sameLocation(d.location, t.defaultLocation) { // better now than after the rows have been written
		return nil, sdk.Refuse(sdk.Permanent, "table %s: location %s: the host creates it at %s only", tableName(req.GetTable()), d.location, t.defaultLocation)
	}
	if d.location = t.defaultLocation; d.location == "" {
		return nil, sdk.Refuse(sdk.Permanent, "table %s: the host does not say where it should be", tableName(req.GetTable()))
	}
	if d.uuid, err = newUUID(d.location, req.GetTable().GetName()); err != nil {
		return nil, err
	}
	spec, err := newSpec(d.layout, &creation{SortOrder: d.order.JSON, Properties: d.properties})
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	spec.Warnings = append(d.warnings, spec.GetWarnings()...)
	return &sinkv1.PrepareWriteResponse{Spec: spec}, nil
}

// newUUID is that of a new table. A catalog may have put it into the place that it offers for the table (…/name-UUID), and knows its offer again by it alone: SeaweedFS vends
// credentials for another place to a table whose UUID is not the one it was staged with. No such place is offered twice. A UUID that belongs to the
// table's name says nothing, since a name can be used again: like all others, the table gets a random one.
func newUUID(location, name string) (string, error) {
	if n := len(location) - 36; n > 0 && (location[n-1] == '-' || location[n-1] == '_' || location[n-1] == '/') {
		if id, err := uuid.Parse(location[n:]); err == nil && id != uuid.Nil && !strings.HasSuffix(name, location[n:]) {
			return id.String(), nil
		}
	}
	id, err := uuid.NewRandom()
	return id.String(), err
}

// sameLocation takes the spellings of one place for the same: a local path and its URI, s3a:// and s3://.
func sameLocation(a, b string) bool {
	return uri.Key(strings.TrimRight(a, "/")) == uri.Key(strings.TrimRight(b, "/"))
}

// DropTable implements sdk.TableDropper.
func (s *Sink) DropTable(ctx context.Context, req *sinkv1.DropTableRequest) (*sinkv1.DropTableResponse, error) {
	if err := hit("iceberg.drop.before-send"); err != nil {
		return nil, err
	}
	s.tables.drop(tableName(req.GetTable()))
	return &sinkv1.DropTableResponse{}, sdk.HostFrom(ctx).DropTable(ctx)
}
