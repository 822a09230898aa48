package delta

import (
	"context"
	"maps"
	"strconv"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/schema"
)

// DescribeTable implements sdk.TableDescriber. The properties tell the protocol, too, as Delta's own descriptions do.
func (s *Sink) DescribeTable(ctx context.Context, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	t, err := s.existing(ctx, req.GetTable())
	if err != nil {
		return nil, err
	}
	if err := log.CheckRead(t.Protocol, t.Metadata); err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	columns, err := schema.Parse(t.Metadata.SchemaString)
	if err != nil {
		return nil, permanent(req.GetTable(), err)
	}
	out := &sinkv1.DescribeTableResponse{
		Schema: schemaOf(columns), Properties: maps.Clone(t.Metadata.Configuration), TableUuid: t.Metadata.ID, Location: t.location, Version: versionOf(t.Version), FormatVersion: 1,
	}
	out.Partition = partitionFields(out.GetSchema(), t.Metadata.PartitionColumns)
	if out.Properties == nil {
		out.Properties = map[string]string{}
	}
	out.Properties["delta.minReaderVersion"] = strconv.Itoa(t.Protocol.MinReaderVersion)
	out.Properties["delta.minWriterVersion"] = strconv.Itoa(t.Protocol.MinWriterVersion)
	for _, f := range append(t.Protocol.ReaderFeatures[:len(t.Protocol.ReaderFeatures):len(t.Protocol.ReaderFeatures)], t.Protocol.WriterFeatures...) {
		out.Properties["delta.feature."+f] = "supported"
	}
	if d := t.Metadata.Description; d != nil && strings.TrimSpace(*d) != "" {
		out.Properties["comment"] = *d
	}
	return out, nil
}
