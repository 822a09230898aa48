package sinktest

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// handshake: the start itself has been the check.
func handshake(b *bench) {
	b.that(b.desc.GetName() != "", "Describe must give a name")
	b.that(b.desc.GetVersion() != "", "Describe must give a version: plugins.lock and the log name it")
}

func describeStable(b *bench) {
	b.create0()
	for range 3 {
		again, err := b.sink.Describe(b.call(), &sinkv1.DescribeRequest{})
		b.ok(err, "Describe")
		b.that(proto.Equal(b.desc, again), "Describe must always answer the same; first it was\n%v\nand then\n%v", b.desc, again)
	}
}

// create0 makes a table if the sink can, so that what follows sees a sink that has worked.
func (b *bench) create0() {
	if b.has(sinkv1.Capability_CAPABILITY_CREATE_TABLE) {
		b.create()
	}
}

func describePatterns(b *bench) {
	d := b.desc
	for _, p := range slices.Concat(d.GetCreates(), d.GetCommitPoints(), d.GetHints()) {
		_, err := path.Match(p, "x")
		b.that(err == nil && fs.ValidPath(p), "%q is no relative pattern as Go's path.Match takes it", p)
	}
	switch d.GetCommitPoint() {
	case sinkv1.CommitPoint_COMMIT_POINT_STORAGE:
		b.that(len(d.GetCommitPoints()) > 0, "COMMIT_POINT_STORAGE without commit_points: no object could make a commit visible")
	case sinkv1.CommitPoint_COMMIT_POINT_CATALOG, sinkv1.CommitPoint_COMMIT_POINT_EXTERNAL:
		b.that(len(d.GetCommitPoints()) == 0, "commit_points are for COMMIT_POINT_STORAGE; this sink has %s", d.GetCommitPoint())
	default:
		b.fail("Describe must name a commit point")
	}
	for i, c := range d.GetCapabilities() {
		b.that(c != sinkv1.Capability_CAPABILITY_UNSPECIFIED && !slices.Contains(d.GetCapabilities()[:i], c), "capability %s is unknown, or named twice", c)
	}
}

// describeHonest calls each method that Describe says is there.
func describeHonest(b *bench) {
	ctx := b.call()
	stream := func(s interface{ RecvMsg(any) error }, m any, err error) error {
		if err != nil {
			return err
		}
		return s.RecvMsg(m)
	}
	for _, c := range b.desc.GetCapabilities() {
		var err error
		switch c {
		case sinkv1.Capability_CAPABILITY_CREATE_TABLE:
			_, err = b.sink.CreateTable(ctx, &sinkv1.CreateTableRequest{Lease: b.host.grant(reading), Table: b.ref, Definition: b.definition()})
		case sinkv1.Capability_CAPABILITY_DROP_TABLE:
			_, err = b.sink.DropTable(ctx, &sinkv1.DropTableRequest{Lease: b.host.grant(reading), Table: b.ref})
		case sinkv1.Capability_CAPABILITY_DESCRIBE_TABLE:
			_, err = b.sink.DescribeTable(ctx, &sinkv1.DescribeTableRequest{Lease: b.host.grant(reading), Table: b.ref})
		case sinkv1.Capability_CAPABILITY_ALTER_TABLE:
			_, err = b.sink.AlterTable(ctx, &sinkv1.AlterTableRequest{Lease: b.host.grant(reading), Table: b.ref, DryRun: true})
		case sinkv1.Capability_CAPABILITY_ABORT:
			_, err = b.sink.Abort(ctx, &sinkv1.AbortRequest{Lease: b.host.grant(staging), Table: b.ref, JobId: "none"})
		case sinkv1.Capability_CAPABILITY_PLAN_SCAN:
			s, e := b.sink.PlanScan(ctx, &sinkv1.PlanScanRequest{Lease: b.host.grant(reading), Table: b.ref})
			err = stream(s, &sinkv1.PlanScanResponse{}, e)
		case sinkv1.Capability_CAPABILITY_HISTORY:
			s, e := b.sink.History(ctx, &sinkv1.HistoryRequest{Lease: b.host.grant(reading), Table: b.ref})
			err = stream(s, &sinkv1.HistoryResponse{}, e)
		case sinkv1.Capability_CAPABILITY_MAINTAIN:
			s, e := b.sink.Maintain(ctx, &sinkv1.MaintainRequest{Lease: b.host.grant(reading), Table: b.ref})
			err = stream(s, &sinkv1.MaintainResponse{}, e)
		}
		b.that(status.Code(err) != codes.Unimplemented, "Describe has %s, but the method is not implemented: leave the capability out, or implement it", c)
	}
}

func createTwice(b *bench) {
	b.create()
	before := b.host.Objects()
	b.refused(b.tryCreate(b.definition()), sdk.ErrExists, "CreateTable of a table that exists")
	b.that(slices.Equal(before, b.host.Objects()), "CreateTable of a table that exists must change nothing")
}

func missingTable(b *bench) {
	if b.desc.GetCommitPoint() == sinkv1.CommitPoint_COMMIT_POINT_EXTERNAL && !b.has(sinkv1.Capability_CAPABILITY_CREATE_TABLE) {
		b.skip(NotOffered, "the sink has no tables of its own")
	}
	_, err := b.tryPrepare()
	b.refused(err, sdk.ErrNotFound, "PrepareWrite of a table that does not exist")
	b.that(len(b.host.Objects()) == 0, "PrepareWrite of a table that does not exist must create nothing")
	if b.has(sinkv1.Capability_CAPABILITY_DESCRIBE_TABLE) {
		_, err = b.sink.DescribeTable(b.call(), &sinkv1.DescribeTableRequest{Lease: b.host.grant(reading), Table: b.ref})
		b.refused(err, sdk.ErrNotFound, "DescribeTable of a table that does not exist")
	}
	if b.has(sinkv1.Capability_CAPABILITY_PLAN_SCAN) {
		s, err := b.sink.PlanScan(b.call(), &sinkv1.PlanScanRequest{Lease: b.host.grant(reading), Table: b.ref})
		if err == nil {
			_, err = s.Recv()
		}
		b.refused(err, sdk.ErrNotFound, "PlanScan of a table that does not exist")
	}
	if b.has(sinkv1.Capability_CAPABILITY_DROP_TABLE) {
		_, err = b.sink.DropTable(b.call(), &sinkv1.DropTableRequest{Lease: b.host.grant(defining), Table: b.ref})
		b.refused(err, sdk.ErrNotFound, "DropTable of a table that does not exist")
	}
}

func prepareTwice(b *bench) {
	first := b.create()
	objects := b.host.Objects()
	for range 3 {
		b.that(proto.Equal(first, b.prepare()), "PrepareWrite of a table that did not change must always answer the same")
	}
	b.that(slices.Equal(objects, b.host.Objects()), "PrepareWrite changes nothing; afterwards there are %v", b.host.Objects())
	b.confined()
}

// prepareSpec looks at what the planner is told.
func prepareSpec(b *bench) {
	spec := b.create()
	b.that(spec.GetTableUuid() != "", "the write spec must name the table's UUID: a table that is dropped and made again is another one")
	location := spec.GetDataLocation()
	b.that(location == b.host.Location || strings.HasPrefix(location, b.host.Location+"/"), "data files would go to %s, which is not below the table at %s", location, b.host.Location)
	b.that(!strings.HasSuffix(location, "/"), "the data location %s ends with a slash", location)
	seen := map[int32]string{}
	var ids func(fields []*planv1.Field)
	ids = func(fields []*planv1.Field) {
		for _, f := range fields {
			if spec.GetFiles().GetNoFieldIds() && f.GetId() == 0 {
				continue
			}
			b.that(f.GetId() > 0 && seen[f.GetId()] == "", "field %q has the id %d, which is no id of its own", f.GetName(), f.GetId())
			seen[f.GetId()] = f.GetName()
			ids(f.GetType().GetFields())
		}
	}
	ids(spec.GetSchema().GetFields())
	want := b.definition().GetSchema().GetFields()
	b.that(len(spec.GetSchema().GetFields()) == len(want), "the table has %d columns; the write spec has %d", len(want), len(spec.GetSchema().GetFields()))
	for i, f := range spec.GetSchema().GetFields() {
		b.that(f.GetName() == want[i].GetName() && f.GetType().GetKind() == want[i].GetType().GetKind(), "column %d is %q %s; the write spec says %q %s", i,
			want[i].GetName(), want[i].GetType().GetKind(), f.GetName(), f.GetType().GetKind())
	}
	if b.has(sinkv1.Capability_CAPABILITY_DESCRIBE_TABLE) {
		d, err := b.sink.DescribeTable(b.call(), &sinkv1.DescribeTableRequest{Lease: b.host.grant(reading), Table: b.ref})
		b.ok(err, "DescribeTable")
		b.that(proto.Equal(d.GetSchema(), spec.GetSchema()) && d.GetTableUuid() == spec.GetTableUuid(), "DescribeTable and PrepareWrite must tell of the same schema and UUID")
	}
}

// confined: nothing was asked for beyond a lease.
func (b *bench) confined() {
	if beyond := b.host.Beyond(); len(beyond) > 0 {
		b.fail("the sink asked for what no lease allows, %d times; first: %s", len(beyond), beyond[0])
	}
}
