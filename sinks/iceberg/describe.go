package iceberg

import (
	"context"
	"maps"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// DescribeTable implements sdk.TableDescriber.
func (s *Sink) DescribeTable(ctx context.Context, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	return s.describe(ctx, sdk.HostFrom(ctx), req)
}

func (s *Sink) describe(ctx context.Context, h Host, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	t, err := s.existing(ctx, h, req.GetTable())
	if err != nil {
		return nil, err
	}
	schema, err := t.CurrentSchema()
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	out := &sinkv1.DescribeTableResponse{
		Schema: schemaOf(schema), Properties: maps.Clone(t.Properties), TableUuid: t.UUID, Location: t.Location, FormatVersion: int32(t.FormatVersion),
	}
	maps.DeleteFunc(out.Properties, func(k, _ string) bool { return strings.HasPrefix(k, "signet.landed.") }) // bookkeeping, and long
	if id := t.HeadID(); id != nil {
		out.Version = versionOf(*id)
	}
	spec, err := t.DefaultSpec()
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	out.Partition = spec.Describe(schema)
	order, err := t.SortOrder()
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	if order.Check(schema) == nil {
		out.Sort = order.Fields
	}
	return out, nil
}
