package executor_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/signed/signedtest"
)

const lakeData = "s3://lake/wh/t/data"

// remoteTask writes one BIGINT column into an object store.
func remoteTask(t *testing.T, epoch uint64, sql string) *planv1.Task {
	t.Helper()
	task := writeTask(t, epoch, sql)
	task.GetWrite().Spec.DataLocation = lakeData
	task.GetWrite().Prefix = lakeData + "/" + task.GetJobId() + "/1/2/" + task.GetAttemptId()
	return task
}

// granted answers with what the store signs for a task.
func granted(t *testing.T, s *signedtest.Store, prefix string) func(*executorv1.AccessRequest) *executorv1.Access {
	return func(r *executorv1.AccessRequest) *executorv1.Access {
		a := &signedtest.Attempt{Store: s, Prefix: prefix, Nonce: r.GetAttempt().GetAttemptId()}
		reads, err := a.Reads(t.Context(), r.GetReads())
		require.NoError(t, err)
		puts, err := a.Puts(t.Context(), r.GetPuts())
		require.NoError(t, err)
		return &executorv1.Access{Attempt: r.GetAttempt(), Reads: reads, Puts: puts, ValidMillis: 1000}
	}
}

// A task writes into an object store and the next one reads what it wrote, by the table's names of it, without any credential: what each does it has asked for.
func TestExecutor_ReadsAndWritesObjects(t *testing.T) {
	g, p := one(t, nil)
	s := signedtest.New(t)
	first := remoteTask(t, 1, "SELECT unnest([1, 2, 3])")
	g.onAccess = granted(t, s, first.GetWrite().GetPrefix())
	g.launch(first)
	files, err := next(t, g.manifests, "manifest").Files()
	require.NoError(t, err)
	require.Len(t, files, 1)
	written := files[0].GetPath()
	require.True(t, strings.HasPrefix(written, first.GetWrite().GetPrefix()+"/"))
	require.Len(t, s.Get(strings.TrimPrefix(written, "s3://lake/")), int(files[0].GetSizeBytes()))

	scan := &planv1.TableScan{
		Schema: first.GetWrite().GetSpec().GetSchema(), Table: "lake.s.t", Catalog: "lake", WithPositions: true,
		Files: []*planv1.PinnedFile{{Uri: written, Name: written, SizeBytes: files[0].GetSizeBytes(), RecordCount: 3}},
	}
	source := &planv1.Source{View: "v", Kind: &planv1.Source_Table{Table: scan}}
	second := remoteTask(t, 1, "SELECT x FROM v WHERE _file = '"+written+"' AND _pos > 0")
	second.Sources = []*planv1.Source{source}
	g.onAccess = granted(t, s, second.GetWrite().GetPrefix())
	g.launch(second)
	files, err = next(t, g.manifests, "manifest").Files()
	require.NoError(t, err)
	require.EqualValues(t, 2, files[0].GetRecordCount())

	g.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Analyze{Analyze: &executorv1.Analyze{
		RequestId: "q", Sql: "SELECT x + 1 FROM v", Sources: []*planv1.Source{source}, BindOnly: true,
	}}})
	res := next(t, g.analyzed, "analysis")
	require.Nil(t, res.GetError())
	require.Len(t, res.GetColumns(), 1)

	changed := proto.CloneOf(second)
	changed.AttemptId = first.GetAttemptId()
	changed.GetWrite().Prefix = lakeData + "/" + changed.GetJobId() + "/1/2/" + changed.GetAttemptId()
	changed.GetSources()[0].GetTable().GetFiles()[0].SizeBytes++
	g.launch(changed)
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "data file "+written+" of the table has")
	require.NoError(t, p.stop())
	left, err := os.ReadDir(p.dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, left)
}

// A request for access is repeated in the next session, and under it.
func TestExecutor_AsksAgainInTheNextSession(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 1)
	asked := make(chan *executorv1.AccessRequest, 10)
	g.onAccess = func(r *executorv1.AccessRequest) *executorv1.Access { asked <- r; return nil }
	board.up(t, g)
	start(t, board, nil)
	next(t, g.registers, "registration")
	task := remoteTask(t, 1, "SELECT 1")
	g.launch(task)
	before := next(t, asked, "request for access")
	board.down(g)

	again := newGateway(t, 1)
	again.onAccess = granted(t, signedtest.New(t), task.GetWrite().GetPrefix())
	board.up(t, again)
	reg := next(t, again.registers, "registration")
	require.Len(t, reg.GetAttempts(), 1)
	files, err := next(t, again.manifests, "manifest").Files()
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, task.GetAttemptId(), before.GetAttempt().GetAttemptId())
}

// A refusal ends the attempt; it is not asked for again and again, unless the scheduler says that it may be.
func TestExecutor_AccessThatIsRefused(t *testing.T) {
	g, _ := one(t, nil)
	n := 0
	refuse := func(class planv1.ErrorClass) {
		n = 0
		g.onAccess = func(*executorv1.AccessRequest) *executorv1.Access {
			n++
			return &executorv1.Access{Error: &planv1.Error{Class: class, Message: "not today"}}
		}
		task := remoteTask(t, 1, "SELECT 1")
		g.launch(task)
		st := next(t, g.statuses, "status")
		for st.GetAttempt().GetAttemptId() != task.GetAttemptId() { // of the one before, repeated
			st = next(t, g.statuses, "status")
		}
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_IO, st.GetError().GetClass())
		require.Contains(t, st.GetError().GetMessage(), "not today")
	}
	refuse(planv1.ErrorClass_ERROR_CLASS_INTERNAL)
	require.Equal(t, 1, n)
	refuse(planv1.ErrorClass_ERROR_CLASS_IO)
	require.Equal(t, 8, n)
}
