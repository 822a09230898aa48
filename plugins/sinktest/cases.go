package sinktest

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

const (
	committed = sinkv1.Outcome_OUTCOME_COMMITTED
	already   = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED
)

func describeIsStable(b *bench) {
	first, err := b.sink.Describe(b.Context(), &sinkv1.DescribeRequest{})
	require.NoError(b, err)
	second, err := b.sink.Describe(b.Context(), &sinkv1.DescribeRequest{})
	require.NoError(b, err)
	require.True(b, proto.Equal(first, second))
	require.NotEmpty(b, first.GetName())
	require.Equal(b, sinkv1.CommitPoint_COMMIT_POINT_STORAGE, first.GetCommitPoint())
	for _, p := range first.GetCommitPoints() {
		require.Contains(b, first.GetCreates(), p, "a commit point is an object that the sink creates")
	}
}

func createTwice(b *bench) {
	b.create()
	before := b.host.Objects()
	_, err := b.sink.CreateTable(b.Context(), &sinkv1.CreateTableRequest{Lease: b.host.Lease, Table: b.ref, Definition: Definition()})
	b.refused(err, sdk.ErrExists)
	require.Equal(b, before, b.host.Objects())
	require.True(b, proto.Equal(b.prepare(), b.prepare()), "PrepareWrite changes nothing")
}

func missingTable(b *bench) {
	_, err := b.sink.PrepareWrite(b.Context(), &sinkv1.PrepareWriteRequest{Lease: b.host.Lease, Table: b.ref, Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
	b.refused(err, sdk.ErrNotFound)
	require.Empty(b, b.host.Objects())
}

func stageTwice(b *bench) {
	b.create()
	spec := b.prepare()
	b.unit(spec, "job") // as if it was lost in a crash
	u := b.unit(spec, "job")
	require.Empty(b, b.files(""), "staging shows nothing")
	r := b.commit(spec, u)
	require.Equal(b, committed, r.GetOutcome(), r.GetMessage())
	require.Len(b, b.files(""), 4)
}

func commitTwice(b *bench) {
	b.create()
	spec := b.prepare()
	u := b.unit(spec, "job")
	first := b.commit(spec, u)
	require.Equal(b, committed, first.GetOutcome(), first.GetMessage())
	require.NotEmpty(b, first.GetVersion())
	again := b.commit(spec, u)
	require.Equal(b, already, again.GetOutcome(), again.GetMessage())
	require.Equal(b, first.GetVersion(), again.GetVersion())
	require.Len(b, b.host.Commits(), 1)
	require.Equal(b, []string{u.GetMarker()}, b.host.Commits()[0].GetMarkers())
	found := b.lookup(u.GetMarker())
	require.True(b, found.GetFound())
	require.Equal(b, first.GetVersion(), found.GetVersion())
	second := b.commit(spec, b.unit(spec, "job2"))
	require.Equal(b, committed, second.GetOutcome())
	require.Len(b, b.files(""), 8)
	require.Len(b, b.files(first.GetVersion()), 4, "an old version stays readable")
	require.Equal(b, first.GetVersion(), b.host.Commits()[1].GetParent())
}

// commitConflict lets other jobs commit in the moment before each try.
func commitConflict(b *bench) {
	b.create()
	spec := b.prepare()
	var others []*sinkv1.Unit
	for i := range 6 {
		others = append(others, b.unit(spec, fmt.Sprint("other", i)))
	}
	u, inside := b.unit(spec, "job"), false
	rival := func(times int) {
		b.host.BeforeCommit(func(int) {
			if inside || times == 0 {
				return
			}
			inside = true
			times--
			assert.Equal(b, committed, b.commit(spec, others[0]).GetOutcome()) // in a goroutine of the host
			others, inside = others[1:], false
		})
	}
	rival(2)
	r := b.commit(spec, u)
	require.Equal(b, committed, r.GetOutcome(), r.GetMessage())
	require.EqualValues(b, 3, r.GetAttempts())
	require.Len(b, b.files(""), 12)
	rival(4)
	r = b.commit(spec, b.unit(spec, "job2"))
	require.Equal(b, sinkv1.Outcome_OUTCOME_CONFLICT, r.GetOutcome(), "after max_attempts it gives up")
	require.Len(b, b.files(""), 28)
}

func commitLostReply(b *bench) {
	b.create()
	spec := b.prepare()
	u := b.unit(spec, "job")
	b.host.LoseReply()
	require.Equal(b, sinkv1.Outcome_OUTCOME_UNKNOWN, b.commit(spec, u).GetOutcome(), "what is not known is never guessed")
	require.Equal(b, already, b.commit(spec, u).GetOutcome())
	require.Len(b, b.files(""), 4)
}

func commitFenced(b *bench) {
	b.create()
	spec := b.prepare()
	u := b.unit(spec, "job")
	b.host.Fence(true)
	r := b.commit(spec, u)
	require.NotContains(b, []sinkv1.Outcome{committed, already, sinkv1.Outcome_OUTCOME_UNKNOWN}, r.GetOutcome())
	require.Empty(b, b.files(""))
	b.host.Fence(false)
	require.Equal(b, committed, b.commit(spec, u).GetOutcome())
}

func commitAfterRecreate(b *bench) {
	b.create()
	spec := b.prepare()
	u := b.unit(spec, "job")
	spec = proto.CloneOf(spec)
	spec.TableUuid = "another"
	r := b.commit(spec, u)
	require.Equal(b, sinkv1.Outcome_OUTCOME_PERMANENT, r.GetOutcome(), r.GetMessage())
	require.Empty(b, b.host.Commits())
}

// damagedManifests: S66 at the sink. Cut, reordered, doubled and changed streams are refused.
func damagedManifests(b *bench) {
	b.create()
	good := b.stream(b.prepare(), "job")
	for name, msgs := range map[string][]*sinkv1.StageRequest{
		"cut":            good[:len(good)-1],
		"cut inside":     good[:3],
		"chunk lost":     slices.Delete(slices.Clone(good), 2, 3),
		"chunk doubled":  slices.Insert(slices.Clone(good), 2, good[2]),
		"manifest lost":  slices.Concat(good[:1], good[5:]),
		"no header":      good[1:],
		"swapped chunks": slices.Concat(good[:2], []*sinkv1.StageRequest{good[3], good[2]}, good[4:]),
	} {
		resp, err := b.send(msgs)
		require.Error(b, err, "%s: %v", name, resp)
	}
}

func lookupUnknown(b *bench) {
	b.create()
	require.False(b, b.lookup("0123456789abcdef01234567").GetFound())
	spec := b.prepare()
	require.Equal(b, committed, b.commit(spec, b.unit(spec, "job")).GetOutcome())
	require.False(b, b.lookup("0123456789abcdef01234567").GetFound())
}
