// Command signet-sink-hive commits to a directory of Parquet files with a list of those that count. A table is a directory:
//
//	_schema.json                          the table as CREATE TABLE made it, written once
//	_success/00000000000000000000.json    one for each commit, numbered without gaps: every file of the table as of then, with its partition
//	_SUCCESS                              says which of them is the newest; may be some behind, since it is written after the commit
//	data/<job>/<stage>/<task>/<attempt>/  Parquet files, written by executors
//
// What Hive and Spark mean by _SUCCESS, "all of it is there", cannot be said by a marker beside the files once there is a second writer. Here the creation
// of the next number says it: the host makes that atomic and lets one writer through. Partitions are k=v text as in Hive, but in the list and not in
// the paths: executors write below a prefix that belongs to their attempt alone.
package main

import (
	"context"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func main() { sdk.Serve(hive{}) }

type hive struct{}

// Describe names what the sink makes: the host lets it create nothing else, and the commit points only with the seal.
func (hive) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "hive", Version: "0.1.0", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE,
		Creates: []string{"_schema.json", "_success/*.json"}, CommitPoints: []string{"_success/*.json"}, Hints: []string{"_SUCCESS"},
		Capabilities: []sinkv1.Capability{sinkv1.Capability_CAPABILITY_OVERWRITE},
		Summary:      "partitioned Parquet files, committed by numbered lists of them",
	}
}

// PrepareWrite says how data files have to look. Partition columns stay in them, so that a reader needs nothing but the files.
func (hive) PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	if req.GetScope().GetFilter() != nil {
		return nil, sdk.Refuse(sdk.Permanent, "the hive sink replaces whole partitions or everything: write INSERT OVERWRITE PARTITIONS or INSERT OVERWRITE")
	}
	t, head, err := load(ctx, req.GetTable())
	if err != nil {
		return nil, err
	}
	return &sinkv1.PrepareWriteResponse{Spec: &planv1.WriteSpec{
		TableUuid: t.GetTableUuid(), Schema: t.GetSchema(), Partition: t.GetPartition(), DataLocation: t.GetLocation() + "/data", BaseVersion: head.Version,
		FormatVersion: 1, Files: &planv1.FileRules{Codec: "zstd"},
	}}, nil
}
