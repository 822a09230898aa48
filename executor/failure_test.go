package executor_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
	"github.com/signet-io/signet/executor/upload"
)

// brokenStore fails in the way that a test wants.
type brokenStore struct {
	upload.Local
	writer func(prefix string) (upload.Writer, error)
}

func (b brokenStore) Writer(_ context.Context, prefix string) (upload.Writer, error) {
	return b.writer(prefix)
}

// Numbers in docs/semantics.md: J7.
func TestExecutor_PanicEndsTaskNotProcess(t *testing.T) {
	g, _ := one(t, func(c *executor.Config) {
		first := true
		c.Slots = 1
		c.Store = brokenStore{writer: func(prefix string) (upload.Writer, error) {
			if first {
				first = false
				panic("a defect")
			}
			return upload.Local{}.Writer(context.Background(), prefix)
		}}
	})
	g.launch(writeTask(t, 1, "SELECT 1"))
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "a defect")
	g.launch(writeTask(t, 1, "SELECT 1")) // the slot is free again
	next(t, g.manifests, "manifest")
}

func TestExecutor_ClassesOfStoreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		class planv1.ErrorClass
	}{
		"no space":    {&upload.ResourceError{Dir: "/target", Err: syscall.ENOSPC, Hint: "free space"}, planv1.ErrorClass_ERROR_CLASS_RESOURCE},
		"bare ENOSPC": {syscall.ENOSPC, planv1.ErrorClass_ERROR_CLASS_RESOURCE},
		"input":       {syscall.EIO, planv1.ErrorClass_ERROR_CLASS_IO},
		"unknown":     {errors.New("what"), planv1.ErrorClass_ERROR_CLASS_INTERNAL},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := one(t, func(cfg *executor.Config) {
				cfg.Store = brokenStore{writer: func(string) (upload.Writer, error) { return nil, c.err }}
			})
			g.launch(writeTask(t, 1, "SELECT 1"))
			require.Equal(t, c.class, next(t, g.statuses, "status").GetError().GetClass())
		})
	}
}

// A source that changed since planning fails with its name (S73), before anything is uploaded.
func TestExecutor_MissingSource(t *testing.T) {
	g, _ := one(t, nil)
	task := writeTask(t, 1, "SELECT a FROM v")
	task.Sources = []*planv1.Source{{View: "v", Alias: "in.parquet", Kind: &planv1.Source_File{File: &planv1.FileSource{
		Function: "read_parquet", Files: []*planv1.PinnedFile{{Path: t.TempDir() + "/gone.parquet", Name: "gone.parquet", SizeBytes: 5}},
		Columns: []*planv1.Column{{Name: "a", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, EngineType: "BIGINT"}},
	}}}}
	g.launch(task)
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "gone.parquet")
	require.NoDirExists(t, dir(task))
}

// A scheduler that was away for long is found again soon.
func TestExecutor_ReconnectsSoonAfterLongOutage(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 1)
	board.up(t, g)
	start(t, board, nil)
	next(t, g.beats, "heartbeat")
	board.down(g)
	for range 50 { // so many refused connections, with pauses that would have grown
		next(t, board.refused, "connection attempt")
	}
	g2 := newGateway(t, 2)
	board.up(t, g2)
	begin := time.Now()
	next(t, g2.registers, "registration")
	require.Less(t, time.Since(begin), 5*time.Second)
}
