package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/plugins/sdk/sdktest"
	"github.com/signet-io/signet/plugins/sinktest"
)

// inner runs f as the inside of a Lookup call and returns its error's text.
type inner struct {
	sdk.Sink
	f func(ctx context.Context, h *sdk.Host) error
}

func (inner) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{Name: "inner", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE}
}

func (i inner) Lookup(ctx context.Context, _ *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	return &sinkv1.LookupResponse{}, i.f(ctx, sdk.HostFrom(ctx))
}

func (i inner) Commit(ctx context.Context, _ *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	return nil, i.f(ctx, sdk.HostFrom(ctx))
}

func inside(t *testing.T, register func(grpc.ServiceRegistrar), lease string, f func(context.Context, *sdk.Host) error) error {
	t.Helper()
	c := sdktest.NewTestConn(t, inner{f: f}, register)
	_, err := c.Lookup(t.Context(), &sinkv1.LookupRequest{Lease: lease})
	return sdk.FromStatus(err)
}

func TestHost_Storage(t *testing.T) {
	h := sinktest.NewHost("file:///w/t")
	big := bytes.Repeat([]byte("0123456789abcdef"), 5*rpc.Chunk/32) // two and a half chunks
	err := inside(t, h.Register, h.Lease, func(ctx context.Context, h *sdk.Host) error {
		loc, err := h.Location(ctx)
		require.NoError(t, err)
		for name, body := range map[string][]byte{"empty": nil, "small": []byte("x"), "chunk": big[:rpc.Chunk], "big": big} {
			resp, err := h.PutIfAbsent(ctx, loc+"/"+name, body)
			require.NoError(t, err)
			require.EqualValues(t, len(body), resp.GetSize())
			got, err := h.Get(ctx, loc+"/"+name)
			require.NoError(t, err)
			require.Equal(t, string(body), string(got))
			_, err = h.PutIfAbsent(ctx, loc+"/"+name, []byte("other"))
			require.ErrorIs(t, err, sdk.ErrExists)
		}
		_, err = h.Get(ctx, loc+"/none")
		require.ErrorIs(t, err, sdk.ErrNotFound)
		_, err = h.Get(ctx, "file:///w/other")
		require.ErrorIs(t, err, sdk.ErrPermanent)
		objects, err := h.List(ctx, loc)
		require.NoError(t, err)
		require.Len(t, objects, 4)
		checkObject(ctx, t, h, loc+"/big", big)

		require.NoError(t, h.PutJSON(ctx, loc+"/json", map[string]int{"a": 1}))
		var m map[string]int
		require.NoError(t, h.GetJSON(ctx, loc+"/json", &m))
		require.Equal(t, map[string]int{"a": 1}, m)
		require.ErrorContains(t, h.GetJSON(ctx, loc+"/small", &m), loc+"/small")
		return nil
	})
	require.NoError(t, err)
}

func checkObject(ctx context.Context, t *testing.T, h *sdk.Host, uri string, want []byte) {
	o, err := h.Open(ctx, uri)
	require.NoError(t, err)
	require.EqualValues(t, len(want), o.Size())
	got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	p := make([]byte, 10)
	n, err := o.ReadAt(p, o.Size()-4)
	require.Equal(t, 4, n)
	require.Equal(t, io.EOF, err)
	_, err = o.ReadAt(p, o.Size())
	require.Equal(t, io.EOF, err)
	_, err = o.ReadAt(p, -1)
	require.Error(t, err)
	require.NoError(t, o.Close())
}

func TestHost_NothingExistsBeforeTheEnd(t *testing.T) {
	h := sinktest.NewHost("file:///w/t")
	boom := errors.New("boom")
	err := inside(t, h.Register, h.Lease, func(ctx context.Context, h *sdk.Host) error {
		_, err := h.PutReader(ctx, "file:///w/t/a", io.MultiReader(strings.NewReader(strings.Repeat("x", 3<<20)), iotest.ErrReader(boom)))
		require.ErrorIs(t, err, boom)
		w, err := h.Create(ctx, "file:///w/t/b")
		require.NoError(t, err)
		_, err = w.Write(make([]byte, 3<<20))
		require.NoError(t, err)
		w.Abort()
		w.Abort()
		_, err = w.Write([]byte("x"))
		require.Error(t, err)
		require.Error(t, w.Close(), "what was aborted is not there")
		w, err = h.Create(ctx, "file:///w/t/c")
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, w.Close())
		w.Abort()
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"file:///w/t/c"}, h.Objects())
}

func TestHost_LeaseAndNoHost(t *testing.T) {
	h := sinktest.NewHost("file:///w/t")
	err := inside(t, h.Register, "wrong", func(ctx context.Context, h *sdk.Host) error {
		_, err := h.Location(ctx)
		return err
	})
	require.ErrorIs(t, err, sdk.ErrFenced)
	_, err = sdk.HostFrom(t.Context()).Get(t.Context(), "file:///x")
	require.ErrorIs(t, err, sdk.ErrNoHost)
	_, _, err = sdk.HostFrom(t.Context()).CommitTable(t.Context(), nil, nil)
	require.ErrorIs(t, err, sdk.ErrNoHost)
}

// catalog keeps what it was sent.
type catalog struct {
	hostv1.UnimplementedCatalogServer
	meta       []byte
	reqs, upds []byte
	largest    int
	refuse     error
}

func (c *catalog) register(r grpc.ServiceRegistrar) { hostv1.RegisterCatalogServer(r, c) }

func (c *catalog) LoadTable(r *hostv1.LoadTableRequest, out hostv1.Catalog_LoadTableServer) error {
	if r.GetKnownLocation() == "m1" {
		return out.Send(&hostv1.LoadTableResponse{Unchanged: true})
	}
	for i := 0; i < len(c.meta); i += rpc.Chunk {
		m := &hostv1.LoadTableResponse{Metadata: c.meta[i:min(i+rpc.Chunk, len(c.meta))]}
		if i == 0 {
			m.Location = "m1"
		}
		if err := out.Send(m); err != nil {
			return err
		}
	}
	return nil
}

func (c *catalog) CommitTable(in hostv1.Catalog_CommitTableServer) error {
	for {
		m, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		c.largest = max(c.largest, len(m.GetRequirements())+len(m.GetUpdates()))
		c.reqs, c.upds = append(c.reqs, m.GetRequirements()...), append(c.upds, m.GetUpdates()...)
	}
	if c.refuse != nil {
		return c.refuse
	}
	return in.SendAndClose(&hostv1.CommitTableResponse{Location: "m2", Version: "42"})
}

// X18: large metadata travels in chunks, both ways.
func TestHost_CatalogStreams(t *testing.T) {
	c := &catalog{meta: []byte(`{"location":"file:///w/t","pad":"` + strings.Repeat("x", 12<<20) + `"}`)}
	reqs, upds := bytes.Repeat([]byte("r"), rpc.Chunk+7), bytes.Repeat([]byte("u"), 2*rpc.Chunk)
	err := inside(t, c.register, "l", func(ctx context.Context, h *sdk.Host) error {
		loc, meta, missing, _, err := h.LoadTable(ctx, "")
		require.NoError(t, err)
		require.Equal(t, "m1", loc)
		require.False(t, missing)
		require.True(t, bytes.Equal(c.meta, meta))
		loc, meta, _, _, err = h.LoadTable(ctx, "m1")
		require.NoError(t, err)
		require.Equal(t, "m1", loc)
		require.Nil(t, meta)
		where, err := h.Location(ctx)
		require.NoError(t, err)
		require.Equal(t, "file:///w/t", where)
		loc, version, err := h.CommitTable(ctx, reqs, upds)
		require.NoError(t, err)
		require.Equal(t, "m2 42", loc+" "+version)
		return nil
	})
	require.NoError(t, err)
	require.True(t, bytes.Equal(reqs, c.reqs))
	require.True(t, bytes.Equal(upds, c.upds))
	require.LessOrEqual(t, c.largest, rpc.Chunk)
}

func TestCommit_OutcomeOfTheHostWins(t *testing.T) {
	for _, c := range []struct {
		refuse error
		after  error // what the sink returns after a success
		want   sinkv1.Outcome
	}{
		{nil, errors.New("tidy up"), sinkv1.Outcome_OUTCOME_COMMITTED},
		{sdk.Refuse(sdk.Unknown, "5xx"), nil, sinkv1.Outcome_OUTCOME_UNKNOWN},
		{sdk.Refuse(sdk.Conflict, "head moved"), nil, sinkv1.Outcome_OUTCOME_CONFLICT},
		{io.ErrUnexpectedEOF, nil, sinkv1.Outcome_OUTCOME_UNKNOWN},
	} {
		cat := &catalog{refuse: c.refuse}
		client := sdktest.NewTestConn(t, inner{f: func(ctx context.Context, h *sdk.Host) error {
			if _, _, err := h.CommitTable(ctx, []byte("[]"), []byte("[]")); err != nil {
				return err
			}
			return c.after
		}}, cat.register)
		resp, err := client.Commit(t.Context(), &sinkv1.CommitRequest{Lease: "l"})
		require.NoError(t, err)
		require.Equal(t, c.want, resp.GetOutcome(), resp.GetMessage())
		if c.refuse == nil {
			require.Equal(t, "42", resp.GetVersion())
		}
	}
}
