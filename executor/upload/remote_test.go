package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/signed/signedtest"
	"github.com/signet-io/signet/executor/upload"
)

const remotePrefix = "s3://lake/wh/t/data/job/0/1/attempt"

var quick = signed.Retry{Min: time.Millisecond, Max: 2 * time.Millisecond}

// remote is a store whose files are in parts from 10 KiB on.
func remote(t *testing.T) (*signedtest.Store, upload.Writer) {
	t.Helper()
	s := signedtest.New(t)
	return s, writerOf(t, &signedtest.Attempt{Store: s, Prefix: remotePrefix, Nonce: "attempt"})
}

func writerOf(t *testing.T, a *signedtest.Attempt) upload.Writer {
	t.Helper()
	client := signed.New()
	t.Cleanup(client.Close)
	w, err := (&upload.Remote{Signer: a, Client: client, Retry: quick, Whole: 10 << 10, Part: 4 << 10}).Writer(t.Context(), remotePrefix)
	require.NoError(t, err)
	return w
}

func body(n int) []byte {
	out := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

func local(t *testing.T, b []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "f.parquet")
	require.NoError(t, os.WriteFile(p, b, 0o600))
	return p
}

const small, large = 5_000, 30_000 // one request; eight parts

// Whatever a store does to one request of an upload, the file is there, whole, and once; or there is an error, and nothing is there.
func TestRemote_FaultAtEveryRequest(t *testing.T) {
	for _, size := range []int{0, small, large} {
		kinds := []string{"PUT"}
		if size == large {
			kinds = []string{"begin", "part", "complete"}
		}
		for _, kind := range kinds {
			for fault := signedtest.Before500; fault <= signedtest.Conflict; fault++ {
				if fault == signedtest.Body500 && kind != "complete" || fault == signedtest.HalfBody && (kind == "PUT" || kind == "part") {
					continue // stores answer so nowhere else
				}
				t.Run(fmt.Sprintf("%d/%s/%d", size, kind, fault), func(t *testing.T) {
					s, w := remote(t)
					s.Meet = func(k string, n int) signedtest.Fault {
						if k == kind && n == 0 {
							return fault
						}
						return signedtest.None
					}
					want := body(size)
					uri, n, err := w.Place(t.Context(), local(t, want), "x.parquet")
					require.NoError(t, err)
					require.Equal(t, remotePrefix+"/x.parquet", uri)
					require.EqualValues(t, size, n)
					require.NoError(t, w.Finish(t.Context()))
					require.True(t, bytes.Equal(want, s.Get("wh/t/data/job/0/1/attempt/x.parquet")))
					if kind != "begin" { // one whose answer was lost is the sweep's
						require.Zero(t, s.Uploads())
					}
				})
			}
		}
	}
}

// An upload goes on when the signatures that it began with have run out: twice here, because parts that are under way together are denied together, and a request
// gives up when it is denied for the third time.
func TestRemote_OutlivesItsSignatures(t *testing.T) {
	s, w := remote(t)
	s.Meet = func(kind string, n int) signedtest.Fault {
		if kind == "part" && (n == 1 || n == 6) || kind == "complete" && n == 0 {
			s.Expire()
		}
		return signedtest.None
	}
	want := body(large)
	_, _, err := w.Place(t.Context(), local(t, want), "x.parquet")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, s.Get("wh/t/data/job/0/1/attempt/x.parquet")))
}

// C13: what another has written is never replaced, and is not taken for one's own, although an answer was lost.
func TestRemote_NeverOverwrites(t *testing.T) {
	for _, fault := range []signedtest.Fault{signedtest.None, signedtest.Before500, signedtest.CutBefore} {
		s, w := remote(t)
		s.Meet = func(kind string, n int) signedtest.Fault {
			if kind == "PUT" && n == 0 {
				return fault
			}
			return signedtest.None
		}
		s.Put("wh/t/data/job/0/1/attempt/x.parquet", []byte("theirs"))
		_, _, err := w.Place(t.Context(), local(t, body(6)), "x.parquet") // of the same size
		require.ErrorIs(t, err, fs.ErrExist)
		require.Equal(t, "theirs", string(s.Get("wh/t/data/job/0/1/attempt/x.parquet")))
	}
	_, w := remote(t)
	_, _, err := w.Place(t.Context(), local(t, body(small)), "x.parquet")
	require.NoError(t, err)
	_, _, err = w.Place(t.Context(), local(t, body(small)), "x.parquet")
	require.ErrorIs(t, err, fs.ErrExist)
}

// A store that stays broken is given up, with an error that names the object and no signature; parts that were written are taken back.
func TestRemote_GivesUp(t *testing.T) {
	for _, kind := range []string{"PUT", "begin", "part", "complete"} {
		for _, fault := range []signedtest.Fault{signedtest.Before500, signedtest.CutBefore, signedtest.NotAllowed} {
			s, w := remote(t)
			s.Meet = func(k string, n int) signedtest.Fault {
				if k == kind && (n > 2 || kind != "part") {
					return fault
				}
				return signedtest.None
			}
			size := large
			if kind == "PUT" {
				size = small
			}
			_, _, err := w.Place(t.Context(), local(t, body(size)), "x.parquet")
			require.Error(t, err, "%s %d", kind, fault)
			require.Contains(t, err.Error(), remotePrefix+"/x.parquet")
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "token=")
			require.Nil(t, s.Get("wh/t/data/job/0/1/attempt/x.parquet"))
			if kind != "complete" || fault == signedtest.NotAllowed {
				require.Zero(t, s.Uploads(), "%s %d", kind, fault)
			}
			if fault == signedtest.NotAllowed {
				// Three times each request; of parts, three are taken, and four are under way when the first of them gives up.
				require.LessOrEqual(t, s.Counted(kind), 3+4*3, "%s: a refusal is not asked for again and again", kind)
			}
		}
	}
}

func TestRemote_Cancelled(t *testing.T) {
	s, w := remote(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("the job was cancelled")
	s.Meet = func(kind string, n int) signedtest.Fault {
		if kind == "part" && n == 3 {
			cancel(over)
		}
		return signedtest.None
	}
	_, _, err := w.Place(ctx, local(t, body(large)), "x.parquet")
	require.Error(t, err)
	require.Zero(t, s.Uploads(), "the upload is aborted")
}

// What is asked for says what is sent: names, sizes and checksums, part by part.
func TestRemote_AsksForWhatItSends(t *testing.T) {
	s := signedtest.New(t)
	w := writerOf(t, &signedtest.Attempt{Store: s, Prefix: remotePrefix, Nonce: "attempt"})
	_, _, err := w.Place(t.Context(), local(t, body(large)), "x.parquet")
	require.NoError(t, err)
	var sum int64
	for _, batch := range s.Asked {
		for _, p := range batch {
			require.Equal(t, "x.parquet", p.GetName())
			if p.GetPart() > 0 {
				require.Len(t, p.GetCrc32C(), 4)
				sum += p.GetSizeBytes()
			}
		}
	}
	require.EqualValues(t, large, sum)

	refusal := errors.New("the attempt is over")
	s.Reply = func(*executorv1.PutRequest) error { return refusal }
	_, _, err = w.Place(t.Context(), local(t, body(small)), "y.parquet")
	require.ErrorIs(t, err, refusal)
}

func TestRemote_RefusesPlaces(t *testing.T) {
	for _, prefix := range []string{"", "/a/b", "file:///a/b", "s3://", "s3://lake", "s3://lake/", "s3://lake/a/", "s3://lake//a", "s3://lake/../a", "s3://lake/a/./b", "s3://lake/a\x00", "s3://lake/a\n"} {
		_, err := (&upload.Remote{}).Writer(t.Context(), prefix)
		require.ErrorIs(t, err, upload.ErrPrefix, "%q", prefix)
	}
	_, w := remote(t)
	for _, name := range []string{"", ".", "..", "a/b", strings.Repeat("x", 256)} {
		_, _, err := w.Place(t.Context(), local(t, nil), name)
		require.ErrorIs(t, err, upload.ErrPrefix, name)
	}
	n, err := (&upload.Remote{}).RemovePrefix(t.Context(), remotePrefix)
	require.NoError(t, err)
	require.Zero(t, n)
}
