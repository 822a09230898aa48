package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
)

// A full disk under an exchange's files is the machine's trouble, not the query's, nor a loss of what is fetched.
func TestExchange_DiskFull(t *testing.T) {
	producer, small := join(t, nil), join(t, onSmallDisk(t))
	sql := "SELECT (hash(i) >> 1)::BIGINT AS a FROM range(1000000) t(i)"
	noSpace := func(task *planv1.Task) {
		t.Helper()
		small.launch(task)
		st := statusOf(t, small.gateway, task)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_RESOURCE, st.GetError().GetClass(), "%v", st.GetError())
		require.Contains(t, st.GetError().GetMessage(), "bytes free")
	}
	noSpace(exchangeTask(sql, 1))
	noSpace(exchangeTask(sql, 20))
	noSpace(exchangeTask(sql, 100))
	task := exchangeTask(sql, 1)
	noSpace(resultTask("SELECT count(*) FROM v", source("v", producer.parts(task, producer.run(t, task)))))
	small.run(t, exchangeTask("SELECT 1::BIGINT AS a", 1)) // what failed has left no bytes
}

// With a check of free space, what does not fit is not begun.
func TestExchange_FetchChecksSpaceFirst(t *testing.T) {
	c := join(t, func(cfg *executor.Config) { cfg.MinFreeBytes = 1 })
	task := exchangeTask("SELECT 1::BIGINT AS a", 1)
	parts := c.parts(task, c.run(t, task))
	parts[0].Bytes = 1 << 60
	consumer := resultTask("SELECT * FROM v", source("v", parts))
	c.launch(consumer)
	st := statusOf(t, c.gateway, consumer)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_RESOURCE, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "1152921504606846977 needed")
}
