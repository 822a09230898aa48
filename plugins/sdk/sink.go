package sdk

import (
	"context"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// Sink is what every sink implements. Methods run concurrently, for different jobs and for the same one; requests belong to the SDK and
// must not be kept or changed after the return. Every context carries the call's deadline and its Host.
//
// Errors: return what a Host method returned, or Refuse(kind, ...) where the sink itself decides. Any other error reaches the user as a
// failure of the sink.
type Sink interface {
	// Describe names the sink, its commit point and the patterns of the objects that it creates. It must not depend on anything outside
	// the process. Capabilities that follow from the optional interfaces below are added by the SDK; name only the others.
	Describe() *sinkv1.DescribeResponse

	// PrepareWrite loads the table and says how its data files have to look. It changes nothing and may be called any number of times.
	// A table that does not exist is Refuse(NotFound), unless the mode is WRITE_MODE_CREATE.
	PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error)

	// Stage turns task manifests into references that Commit understands, and must read the source to its end. It may be called several
	// times for one job, again with the same manifests after a crash, and its result may never be used: so it writes only objects with
	// fresh names. Objects that a reference needs are named in it; the host deletes what no reference names.
	Stage(ctx context.Context, header *sinkv1.StageHeader, manifests *ManifestSource) (*sinkv1.StageResponse, error)

	// Commit makes all units visible at once or none. Before every attempt it looks for the units' markers in the table, and answers
	// ALREADY_COMMITTED where it finds them; after a definite conflict it reloads and tries again, at most req.MaxAttempts times in a row.
	// It never guesses: an answer that is not definite is returned as the error that it was.
	Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error)

	// Lookup tells whether a marker is in the table, and at which version it came in.
	Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error)
}

// TableCreator is CAPABILITY_CREATE_TABLE. An existing table is Refuse(Exists).
type TableCreator interface {
	CreateTable(ctx context.Context, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error)
}

// TableDropper is CAPABILITY_DROP_TABLE. Files stay; a missing table is Refuse(NotFound).
type TableDropper interface {
	DropTable(ctx context.Context, req *sinkv1.DropTableRequest) (*sinkv1.DropTableResponse, error)
}

// TableDescriber is CAPABILITY_DESCRIBE_TABLE.
type TableDescriber interface {
	DescribeTable(ctx context.Context, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error)
}

// ScanPlanner is CAPABILITY_PLAN_SCAN. The first message carries everything but the files; at most 1,000 files go into one message. An
// error of send ends the call and is returned as it is.
type ScanPlanner interface {
	PlanScan(ctx context.Context, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error
}

// TableAlterer is CAPABILITY_ALTER_TABLE: all changes of a request in one commit, or none. A table that is so already is Unchanged.
type TableAlterer interface {
	AlterTable(ctx context.Context, req *sinkv1.AlterTableRequest) (*sinkv1.AlterTableResponse, error)
}

// Historian is CAPABILITY_HISTORY: the table's commits, newest first, at most 1,000 in one message. An error of send ends the call and is returned as it is.
type Historian interface {
	History(ctx context.Context, req *sinkv1.HistoryRequest, send func(*sinkv1.HistoryResponse) error) error
}

// Maintainer is CAPABILITY_MAINTAIN: files that nothing needs any more, at most 1,000 in one message. The host checks each and deletes it. An error of send
// ends the call and is returned as it is.
type Maintainer interface {
	Maintain(ctx context.Context, req *sinkv1.MaintainRequest, send func(*sinkv1.MaintainResponse) error) error
}

// Aborter is CAPABILITY_ABORT: release what a job left outside the host's storage. It may be called for jobs that left nothing.
type Aborter interface {
	Abort(ctx context.Context, req *sinkv1.AbortRequest) (*sinkv1.AbortResponse, error)
}

// Manifest is one task manifest as it streams in. Read Files to its end before asking for the next one.
type Manifest struct {
	// Header names job, task and attempt, and the schema and spec that the files were written for.
	Header *planv1.ManifestHeader

	src      *ManifestSource
	replaced []*planv1.ReplacedFile
	trailer  *planv1.ManifestTrailer
}
