package scheduler

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
)

func secret(t *testing.T, text string) config.Secret {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return config.SecretFile(path)
}

func TestCheckListen_OpenAddressesNeedTLSAndTokens(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "localhost:7420", "[::1]:7420"} {
		require.NoError(t, checkListen(&config.Config{}, "listen", addr, true), addr)
	}
	full := config.Config{TLS: config.TLS{Cert: "c", Key: "k"}, Auth: config.Auth{JoinToken: secret(t, "j"), Tokens: []config.Token{{Principal: "p", Token: secret(t, "t")}}}}
	for _, addr := range []string{"0.0.0.0:7420", ":7420", "10.1.2.3:1", "host.example:1", "[::]:1"} {
		c := full
		c.Listen = addr
		require.NoError(t, checkListen(&c, "listen", c.Listen, true), addr)
		for name, without := range map[string]func(*config.Config){
			"tls.cert":        func(c *config.Config) { c.TLS = config.TLS{} },
			"auth.join_token": func(c *config.Config) { c.Auth.JoinToken = config.Secret{} },
			"auth.tokens":     func(c *config.Config) { c.Auth.Tokens = nil },
		} {
			c := full
			c.Listen = addr
			without(&c)
			err := checkListen(&c, "listen", c.Listen, true)
			require.ErrorIs(t, err, ErrOpenListener, addr)
			require.ErrorContains(t, err, name)
		}
	}
	require.ErrorContains(t, checkListen(&config.Config{}, "listen", "nonsense", true), "nonsense")
}

func TestGuard_TokensSeparateExecutorsFromClients(t *testing.T) {
	g, err := newGuard(&config.Config{Auth: config.Auth{JoinToken: secret(t, "join"), Tokens: []config.Token{
		{Principal: "ann", Token: secret(t, "a")}, {Principal: "bob", Token: secret(t, "b")},
	}}})
	require.NoError(t, err)
	const client, executor = "/signet.scheduler.v1.Scheduler/Submit", "/signet.executor.v1.ExecutorGateway/Session"
	try := func(method, header string) (string, codes.Code) {
		ctx := context.Background()
		if header != "" {
			ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", header))
		}
		ctx, err := g.authorize(ctx, method)
		if err != nil {
			return "", status.Code(err)
		}
		return principal(ctx), codes.OK
	}
	for header, want := range map[string]string{"Bearer a": "ann", "bearer b": "bob"} {
		who, code := try(client, header)
		require.Equal(t, codes.OK, code)
		require.Equal(t, want, who)
	}
	for _, c := range []struct{ method, header string }{
		{client, ""},
		{client, "Bearer "},
		{client, "Bearer join"},
		{client, "a"},
		{client, "Bearer x"},
		{executor, ""},
		{executor, "Bearer a"},
		{executor, "Bearer Join"},
	} {
		_, code := try(c.method, c.header)
		require.Equal(t, codes.Unauthenticated, code, c)
	}
	_, code := try(executor, "Bearer join")
	require.Equal(t, codes.OK, code)
}

func TestCommitKey_FollowsTheKeyNotTheJob(t *testing.T) { // S64
	k1, m1 := commitKey("c", "ann", "load-1", "job-1")
	k2, m2 := commitKey("c", "ann", "load-1", "job-2")
	require.Equal(t, k1, k2)
	require.Equal(t, m1, m2)
	require.Len(t, m1, 24)
	seen := map[string]bool{m1: true}
	for _, in := range [][4]string{
		{"d", "ann", "load-1", "job-1"}, {"c", "bob", "load-1", "job-1"}, {"c", "ann", "load-2", "job-1"}, {"c", "ann", "", "load-1"}, {"c", "annl", "oad-1", "job-1"}, {"c", "ann", "", "job-1"},
	} {
		_, m := commitKey(in[0], in[1], in[2], in[3])
		require.False(t, seen[m], "%v gives a marker that another one has", in)
		seen[m] = true
	}
}

func TestCheckSubmit_Refusals(t *testing.T) {
	require.NoError(t, checkSubmit(&schedulerv1.SubmitRequest{Sql: "SELECT 1"}))
	for _, r := range []*schedulerv1.SubmitRequest{
		{Sql: " \n"},
		{Sql: string(make([]byte, maxStatement+1))},
		{Sql: "SELECT 1", IdempotencyKey: string(make([]byte, maxKey+1))},
		{Sql: "SELECT 1", IdempotencyKey: "a\x00b"},
	} {
		require.Error(t, checkSubmit(r))
	}
}

func TestInlineResult_RowsAndTypes(t *testing.T) { // S25, S30
	b, err := inlineResult([]string{"n:int", "s", "ok:bool"}, []row{{int64(1), "a", true}, {nil, nil, nil}})
	require.NoError(t, err)
	r, err := ipc.NewReader(newReader(b))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	require.EqualValues(t, 2, r.RecordBatch().NumRows())
	require.Equal(t, "n", r.Schema().Field(0).Name)
	_, err = inlineResult([]string{"n:int"}, []row{{"text"}})
	require.ErrorContains(t, err, "n")
}

func newReader(b []byte) io.Reader { return &sliceReader{b} }

type sliceReader struct{ b []byte }

func (r *sliceReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

func TestReaderFor_ByName(t *testing.T) {
	for name, want := range map[string]string{
		"a.parquet": "read_parquet", "A.PARQUET": "read_parquet", "x/*.csv": "read_csv", "x.csv.gz": "read_csv", "y.tsv": "read_csv",
		"z.json": "read_json", "z.ndjson.zst": "read_json", "z.jsonl": "read_json", "plain": "", "a.txt": "", "parquet": "",
	} {
		require.Equal(t, want, readerFor(name), name)
	}
}

func TestOutput_FirstCompleteAttemptWins(t *testing.T) {
	o := &output{dir: filepath.Join(t.TempDir(), "out")}
	a, err := o.begin("a")
	require.NoError(t, err)
	b, err := o.begin("b")
	require.NoError(t, err)
	_, err = a.Write([]byte("from a"))
	require.NoError(t, err)
	_, err = b.Write([]byte("from b"))
	require.NoError(t, err)
	require.ErrorIs(t, o.read(func(*os.File, int64) error { return nil }), errOutputGone)
	require.True(t, b.complete())
	require.False(t, a.complete())
	a.drop()
	require.FileExists(t, filepath.Join(o.dir, "b.arrow"), "under its name until it is freed")
	require.NoFileExists(t, filepath.Join(o.dir, "a.arrow"))
	require.NoError(t, o.read(func(f *os.File, n int64) error {
		buf := make([]byte, n)
		_, err := f.ReadAt(buf, 0)
		require.Equal(t, "from b", string(buf))
		return err
	}))
	late, n, err := o.open()
	require.NoError(t, err)
	defer late.Close()
	o.free()
	require.NoDirExists(t, o.dir)
	require.ErrorIs(t, o.read(nil), errOutputGone)
	buf := make([]byte, n)
	_, err = late.ReadAt(buf, 0)
	require.NoError(t, err, "who has it open reads on")
	require.Equal(t, "from b", string(buf))
}

// Results that wait for their clients hold no descriptors, however many there are.
func TestOutput_WaitingHoldsNoDescriptor(t *testing.T) {
	dir := t.TempDir()
	open := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("cannot list descriptors here:", err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
				n++
			}
		}
		return n
	}
	for i := range 20 {
		o := &output{dir: filepath.Join(dir, strconv.Itoa(i)), pipelined: i%2 == 0}
		sp, err := o.begin("a")
		require.NoError(t, err)
		_, err = sp.Write([]byte("rows"))
		require.NoError(t, err)
		require.Equal(t, 1, open(), "the one that is being written")
		require.True(t, sp.complete())
		require.NoError(t, o.read(func(*os.File, int64) error { require.Equal(t, 1, open()); return nil }))
		if o.pipelined {
			require.NoError(t, o.follow(nil, func([]byte) error { require.Equal(t, 1, open()); return nil }))
		}
		require.Zero(t, open())
	}
}

// A want of descriptors or of room is no fault of the statement.
func TestSpoolError_WantsAreResources(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC} {
		err = &os.PathError{Op: "open", Path: "x", Err: err}
		require.Equal(t, codes.ResourceExhausted, status.Code(spoolError(err)))
		require.Equal(t, codeResource, asFailure(sourceFailure(fmt.Errorf("%q: %w", "x", err))).Code)
	}
	require.Equal(t, codes.Internal, status.Code(spoolError(os.ErrNotExist)))
	require.Equal(t, codeUser, asFailure(sourceFailure(os.ErrPermission)).Code)
}

// Numbers in docs/semantics.md: J1.
func TestJob_TerminalStateNeverChanges(t *testing.T) {
	j := newJob(context.Background(), journal.Job{ID: "j", State: journal.StateSuccessful, Submitted: time.Now()})
	j.setPhase(jobRunning, "stages", "")
	snap, _ := j.snapshot()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, snap.State)
	require.Empty(t, snap.Phase)
}

func TestClip_CutsAtRunes(t *testing.T) {
	require.Equal(t, "abc", clip("abc", 3))
	require.Equal(t, "ü…", clip("üü", 3))
}
