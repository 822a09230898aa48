package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/signed/signedtest"
	"github.com/signet-io/signet/executor/splice"
	"github.com/signet-io/signet/executor/upload"
)

// stored is an object that pieces are of, which counts what is read of it.
type stored struct {
	*bytes.Reader
	read    int64
	changed error
}

func (s *stored) ReadAt(p []byte, off int64) (int, error) {
	if s.changed != nil {
		return 0, s.changed
	}
	s.read += int64(len(p))
	return s.Reader.ReadAt(p, off)
}

type making struct {
	*signedtest.Store
	attempt *signedtest.Attempt
	from    map[string]*splice.Object
	maker   splice.Maker
}

// makes is a store with objects to copy from, each of a size.
func makes(t *testing.T, sizes map[string]int) *making {
	t.Helper()
	s := signedtest.New(t)
	m := &making{Store: s, attempt: &signedtest.Attempt{Store: s, Prefix: remotePrefix, Nonce: "attempt", Pinned: map[string]string{}}, from: map[string]*splice.Object{}}
	for name, size := range sizes {
		b := append([]byte("PAR1"), bytes.Repeat(body(65_521), size/65_521+1)[:size-4]...) // a prime, so that no two parts are equal
		s.Put(name, b)
		uri := "s3://lake/" + name
		m.from[name] = &splice.Object{ReaderAt: &stored{Reader: bytes.NewReader(b)}, URI: uri, Size: int64(size)}
		o, err := s.Backend.HeadObject(signedtest.Bucket, name)
		require.NoError(t, err)
		m.attempt.Pinned[uri] = fmt.Sprintf("%q", fmt.Sprintf("%x", o.Hash))
	}
	w := writerOf(t, m.attempt)
	m.maker, _ = w.(splice.Maker)
	require.NotNil(t, m.maker)
	return m
}

func (m *making) piece(name string, off, n int64) splice.Piece {
	return splice.Piece{Path: "/footers/" + name, From: m.from[name], Offset: off, Length: n}
}

func (m *making) want(t *testing.T, pieces []splice.Piece) []byte {
	t.Helper()
	var out []byte
	for n := range pieces {
		if p := &pieces[n]; p.From != nil {
			_, name, _ := bytes.Cut([]byte(p.From.URI), []byte("s3://lake/"))
			out = append(out, m.Get(string(name))[p.Offset:p.Offset+p.Length]...)
		} else {
			b, err := p.Read()
			require.NoError(t, err)
			out = append(out, b...)
		}
	}
	return out
}

func (m *making) made() []byte { return m.Get("wh/t/data/job/0/1/attempt/x.parquet") }

const mib = 1 << 20

// Whatever pieces a file is of, it is these bytes; and what is long enough to be a part of an upload is copied by the store.
func TestMake_Pieces(t *testing.T) {
	magic, end := splice.Piece{Data: []byte("PAR1")}, splice.Piece{Data: body(1000)}
	for name, c := range map[string]struct {
		pieces func(m *making) []splice.Piece
		copied int64
		parts  int // that are sent
	}{
		"a whole body, right behind the magic": {func(m *making) []splice.Piece { return []splice.Piece{magic, m.piece("a", 4, 7*mib), end} }, 7*mib + 4, 1},
		"a body from the middle on":            {func(m *making) []splice.Piece { return []splice.Piece{magic, m.piece("a", 100, 11*mib), end} }, 6*mib + 4, 2},
		"two bodies": {func(m *making) []splice.Piece {
			return []splice.Piece{magic, m.piece("a", 4, 6*mib), m.piece("b", 4, 5*mib), end}
		}, 11*mib + 4, 1},
		"a gap that is too short": {func(m *making) []splice.Piece {
			return []splice.Piece{magic, m.piece("a", 4, 6*mib), m.piece("b", 4, mib), m.piece("a", 7*mib, 10*mib), end}
		}, 12*mib + 4, 2},
		"short runs only": {func(m *making) []splice.Piece {
			return []splice.Piece{magic, m.piece("a", 4, mib), m.piece("b", 4, mib), end}
		}, 0, 1},
		"many short runs": {func(m *making) []splice.Piece {
			out := []splice.Piece{magic}
			for n := range int64(12) {
				out = append(out, m.piece("a", 4+n*mib, mib-1))
			}
			return append(out, end)
		}, 0, 3},
		"what is left of a run would be too short": {func(m *making) []splice.Piece {
			return []splice.Piece{magic, m.piece("b", 4, mib), m.piece("a", 4, 8*mib), end}
		}, 0, 2},
		"longer than one request copies": {func(m *making) []splice.Piece {
			return []splice.Piece{magic, m.piece("long", 4, 66*mib), m.piece("long", 67*mib, 70*mib), end}
		}, 136*mib + 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			sizes := map[string]int{"a": 20 * mib, "b": 10 * mib}
			if c.copied > 100*mib {
				sizes = map[string]int{"long": 140 * mib}
			}
			m := makes(t, sizes)
			pieces := c.pieces(m)
			var traffic signed.Traffic
			require.NoError(t, m.maker.Make(signed.Counted(t.Context(), &traffic), pieces, "x.parquet"))
			require.True(t, bytes.Equal(m.want(t, pieces), m.made()))
			require.Equal(t, c.copied, traffic.Copied.Load())
			require.Equal(t, c.parts, m.Counted("part"))
			require.Zero(t, m.Uploads())
			for _, puts := range m.Asked {
				for _, p := range puts {
					if size := p.GetCopy().GetSizeBytes(); p.GetCopy() != nil {
						require.GreaterOrEqual(t, size, int64(splice.LeastCopied))
						require.Less(t, size, int64(70*mib))
					}
				}
			}
		})
	}
}

// Whatever a store does to one request, the file is there, whole, and once.
func TestMake_FaultAtEveryRequest(t *testing.T) {
	for _, kind := range []string{"begin", "copy", "part", "complete", "HEAD"} {
		for fault := signedtest.Before500; fault <= signedtest.NotKnown; fault++ {
			body := fault == signedtest.Body500 || fault == signedtest.HalfBody
			if body && (kind == "part" || kind == "HEAD") || fault == signedtest.Body500 && kind == "begin" || fault == signedtest.NotKnown && kind != "copy" {
				continue // stores answer so nowhere else
			}
			t.Run(fmt.Sprintf("%s/%d", kind, fault), func(t *testing.T) {
				m := makes(t, map[string]int{"a": 12 * mib})
				m.Meet = func(k string, n int) signedtest.Fault {
					if k == kind && n == 0 {
						return fault
					}
					return signedtest.None
				}
				pieces := []splice.Piece{{Data: []byte("PAR1")}, m.piece("a", 4, 11*mib), {Data: []byte("end")}}
				require.NoError(t, m.maker.Make(t.Context(), pieces, "x.parquet"))
				require.True(t, bytes.Equal(m.want(t, pieces), m.made()))
			})
		}
	}
}

// A store that does not copy gets the bytes.
func TestMake_AStoreThatDoesNotCopy(t *testing.T) {
	for _, fault := range []signedtest.Fault{signedtest.NotKnown, signedtest.NotAllowed} {
		m := makes(t, map[string]int{"a": 12 * mib})
		m.Meet = func(kind string, _ int) signedtest.Fault {
			if kind == "copy" {
				return fault
			}
			return signedtest.None
		}
		pieces := []splice.Piece{{Data: []byte("PAR1")}, m.piece("a", 4, 11*mib), {Data: []byte("end")}}
		var traffic signed.Traffic
		require.NoError(t, m.maker.Make(signed.Counted(t.Context(), &traffic), pieces, "x.parquet"))
		require.True(t, bytes.Equal(m.want(t, pieces), m.made()))
		require.Zero(t, traffic.Copied.Load())
		require.Greater(t, traffic.Sent.Load(), int64(11*mib))
	}
}

// S73: what has changed since it was planned for is not copied, also by a store that does not heed the condition; nor is a file there that is not what was to be made.
func TestMake_NothingOfAnotherVersion(t *testing.T) {
	gone := errors.New("another object has its name now")
	for name, bend := range map[string]func(m *making) error{
		"changed before": func(m *making) error {
			m.Put("a", body(12*mib))
			return nil
		},
		"changed, and copied all the same": func(m *making) error {
			m.Careless = true
			from, _ := m.from["a"].ReaderAt.(*stored)
			m.Meet = func(kind string, _ int) signedtest.Fault {
				if kind == "copy" {
					m.Put("a", body(12*mib))
					from.changed = gone
				}
				return signedtest.None
			}
			return gone
		},
		"more than was asked for": func(m *making) error {
			m.Careless, m.Ranges = true, func(b []byte, _, _ int) []byte { return b }
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := makes(t, map[string]int{"a": 12 * mib})
			want := bend(m)
			err := m.maker.Make(t.Context(), []splice.Piece{{Data: []byte("PAR1")}, m.piece("a", 4, 11*mib), {Data: []byte("end")}}, "x.parquet")
			require.Error(t, err)
			if want != nil {
				require.ErrorIs(t, err, want)
				require.Nil(t, m.made())
			}
			require.Zero(t, m.Uploads())
		})
	}
}

// What the scheduler refuses to sign is not gone around.
func TestMake_RefusedCopies(t *testing.T) {
	m := makes(t, map[string]int{"a": 12 * mib})
	refused := errors.New("none of the files that this may copy from")
	m.Reply = func(p *executorv1.PutRequest) error {
		if p.GetCopy() != nil {
			return refused
		}
		return nil
	}
	err := m.maker.Make(t.Context(), []splice.Piece{{Data: []byte("PAR1")}, m.piece("a", 4, 11*mib), {Data: []byte("end")}}, "x.parquet")
	require.ErrorIs(t, err, refused)
	require.Nil(t, m.made())
	require.Zero(t, m.Uploads())
	for _, name := range []string{"", "..", "a/b"} {
		require.ErrorIs(t, m.maker.Make(t.Context(), nil, name), upload.ErrPrefix, name)
	}
}
