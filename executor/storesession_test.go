package executor_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// An executor whose clock is so wrong that the store takes none of its own signatures goes on with those of the scheduler, which knows the store's time.
func TestExecutor_WithAWrongClockTheSchedulerSigns(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"slow": 40 * time.Minute, "fast": -40 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			g, _ := one(t, nil)
			store := objectstest.Start(t)
			store.Ahead(ahead)
			store.Demand(objectstest.Account{Key: "canary-key", Secret: "canary-secret"})
			scheduler := store.Client(t)
			_, err := scheduler.Head(t.Context(), "none") // learns the time
			require.ErrorIs(t, err, objects.ErrNotFound)
			task := remoteTask(t, 1, "SELECT 1")
			prefix := task.GetWrite().GetPrefix()
			var sessions, signed atomic.Int64
			g.onAccess = func(r *executorv1.AccessRequest) *executorv1.Access {
				if r.GetWrite() {
					sessions.Add(1)
					return &executorv1.Access{Attempt: r.GetAttempt(), ValidMillis: time.Hour.Milliseconds(), Write: &executorv1.StoreAccess{Prefix: prefix, Properties: store.Props()}}
				}
				out := &executorv1.Access{Attempt: r.GetAttempt(), ValidMillis: 1000}
				for _, p := range r.GetPuts() {
					f := objects.FilePut{Name: p.GetName(), Size: p.GetSizeBytes(), CRC32C: p.GetCrc32C(), Head: p.GetHead()}
					what := f.Signing(r.GetAttempt().GetAttemptId())
					what.Key, what.For = strings.TrimPrefix(prefix, "s3://lake/")+"/"+f.Name, time.Minute
					q, err := scheduler.Sign(t.Context(), what)
					if err != nil {
						return &executorv1.Access{Attempt: r.GetAttempt(), Error: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: err.Error()}}
					}
					one := &executorv1.SignedRequest{Uri: prefix + "/" + f.Name, Method: q.Method, Url: q.URL, Headers: map[string]string{}}
					for name, values := range q.Header {
						one.Headers[name] = strings.Join(values, ",")
					}
					out.Puts = append(out.Puts, one)
					signed.Add(1)
				}
				return out
			}
			g.launch(task)
			files, err := next(t, g.manifests, "manifest").Files()
			require.NoError(t, err)
			require.Len(t, files, 1)
			require.EqualValues(t, 1, sessions.Load())
			require.Positive(t, signed.Load())
			require.Equal(t, []string{strings.TrimPrefix(files[0].GetPath(), "s3://lake/")}, store.Keys())
		})
	}
}

// What no executor can be given fails the job at once, with the reason.
func TestExecutor_NoAccessForAnybody(t *testing.T) {
	g, _ := one(t, nil)
	var asked atomic.Int64
	g.onAccess = func(r *executorv1.AccessRequest) *executorv1.Access {
		asked.Add(1)
		return &executorv1.Access{Attempt: r.GetAttempt(), Error: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: "assume role r: " + http.StatusText(http.StatusForbidden)}}
	}
	g.launch(remoteTask(t, 1, "SELECT 1"))
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "assume role r: Forbidden")
	require.EqualValues(t, 1, asked.Load())
}
