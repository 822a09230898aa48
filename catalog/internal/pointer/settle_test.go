package pointer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/internal/request"
	"github.com/signet-io/signet/catalog/storage"
)

// scene is a table, a request for it, and that request's metadata, written and not yet swapped in.
type scene struct {
	*testing.T
	c          *Engine
	rows       *memory
	id         catalog.Ident
	req        *request.Request
	base, next *version
}

var errCut = errors.New("connection cut")

func newScene(t *testing.T) *scene {
	rows := &memory{rows: map[string]Row{}, warehouse: "file://" + t.TempDir() + "/wh"}
	c, err := New(t.Context(), Options{Name: "lake", Warehouse: rows.warehouse}, rows)
	require.NoError(t, err)
	tbl, err := c.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	s := &scene{T: t, c: c, rows: rows, id: tbl.Ident}
	reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
	s.req, err = request.Parse(reqs, ups)
	require.NoError(t, err)
	s.base, err = c.load(t.Context(), s.id)
	require.NoError(t, err)
	meta, err := applyTo(s.base, s.req)
	require.NoError(t, err)
	raw, err := encode(meta)
	require.NoError(t, err)
	s.next, err = c.writeVersion(t.Context(), meta, raw, s.base)
	require.NoError(t, err)
	return s
}

func (s *scene) swap() {
	moved, err := s.c.swap(s.Context(), s.id, s.base, s.next)
	require.NoError(s, err)
	require.True(s, moved)
}

func (s *scene) others(n int, property bool) {
	for range n {
		tbl, err := s.c.Load(s.Context(), s.id)
		require.NoError(s, err)
		reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
		if property {
			reqs, ups = catalogtest.SetProperties(tbl, map[string]string{"n": catalogtest.Spec().Location + tbl.MetadataLocation})
		}
		_, err = s.c.Commit(s.Context(), s.id, reqs, ups)
		require.NoError(s, err)
	}
}

func (s *scene) settle() (*version, error) {
	ctx, cancel := context.WithCancel(s.Context())
	cancel() // a caller who gave up does not keep the table from being looked at
	return s.c.settle(ctx, s.id, s.req, s.base, s.next, errCut)
}

func (s *scene) orphan() bool {
	path, err := storage.LocalPath(s.next.location)
	require.NoError(s, err)
	_, err = os.Stat(path)
	return err == nil
}

func (s *scene) unknown() {
	_, err := s.settle()
	require.ErrorIs(s, err, errCut)
	for _, definite := range []error{catalog.ErrConflict, catalog.ErrPermanent, catalog.ErrNotFound, catalog.ErrExists, catalog.ErrNotSent, errMoved} {
		require.NotErrorIs(s, err, definite)
	}
	assert.True(s, s.orphan(), "it may yet be needed")
}

// S67: what a commit's caller is told is what the table shows, whatever the error was.
func TestSettle(t *testing.T) {
	t.Run("Landed", func(t *testing.T) {
		s := newScene(t)
		s.swap()
		v, err := s.settle()
		require.NoError(t, err)
		assert.Equal(t, s.next.location, v.location)
	})
	t.Run("LandedAndOthersWentOn", func(t *testing.T) {
		s := newScene(t)
		s.swap()
		s.others(3, false)
		_, err := s.settle()
		require.NoError(t, err)
	})
	t.Run("NothingMovedIsUnknown", func(t *testing.T) {
		s := newScene(t)
		s.unknown()
		s.swap() // it arrives late
		_, err := s.settle()
		require.NoError(t, err)
	})
	t.Run("OthersTookTheBranchIsConflict", func(t *testing.T) {
		s := newScene(t)
		s.others(1, false)
		_, err := s.settle()
		require.ErrorIs(t, err, catalog.ErrConflict)
		assert.False(t, s.orphan())
		moved, err := s.c.swap(t.Context(), s.id, s.base, s.next)
		require.NoError(t, err)
		assert.False(t, moved, "definite: it cannot land any more")
	})
	t.Run("OthersChangedSomethingElseIsTriedAgain", func(t *testing.T) {
		s := newScene(t)
		s.others(1, true)
		_, err := s.settle()
		require.ErrorIs(t, err, errMoved)
		assert.False(t, s.orphan())
	})
	t.Run("LogTooShortToTellIsUnknown", func(t *testing.T) {
		s := newScene(t)
		tbl, err := s.c.Load(t.Context(), s.id)
		require.NoError(t, err)
		reqs, ups := catalogtest.SetProperties(tbl, map[string]string{"write.metadata.previous-versions-max": "1"})
		_, err = s.c.Commit(t.Context(), s.id, reqs, ups)
		require.NoError(t, err)
		s.others(2, true)
		s.unknown()
	})
	t.Run("DroppedIsUnknown", func(t *testing.T) {
		s := newScene(t)
		s.rows.drop(s.id)
		s.unknown()
	})
	t.Run("CatalogGoneIsUnknown", func(t *testing.T) {
		s := newScene(t)
		s.rows.down = errCut
		s.unknown()
	})
	t.Run("CreateWhoseNameIsTaken", func(t *testing.T) {
		s := newScene(t)
		s.base = nil
		reqs, ups := catalogtest.Staged("", "", 77)
		var err error
		s.req, err = request.Parse(reqs, ups)
		require.NoError(t, err)
		_, err = s.settle()
		require.ErrorIs(t, err, catalog.ErrConflict)
		assert.False(t, s.orphan())
	})
	t.Run("CreateThatIsNotThereIsUnknown", func(t *testing.T) {
		s := newScene(t)
		s.rows.drop(s.id)
		s.base = nil
		s.unknown()
	})
}

// A catalog that counts changes of a row refuses one that it has counted past, whatever changed: alone, such an answer says nothing.
func TestSettle_Stale(t *testing.T) {
	stale := fmt.Errorf("%w: another version", ErrStale)
	settle := func(s *scene) (*version, error) { return s.c.settle(s.Context(), s.id, s.req, s.base, s.next, stale) }
	t.Run("NothingMovedIsUnknown", func(t *testing.T) {
		s := newScene(t)
		_, err := settle(s)
		require.ErrorIs(t, err, ErrStale)
		require.False(t, errors.Is(err, errMoved) || errors.Is(err, catalog.ErrConflict))
		assert.True(t, s.orphan(), "it may yet be needed")
	})
	t.Run("AnotherChangeOfTheRowIsTriedAgain", func(t *testing.T) {
		s := newScene(t)
		s.rows.touch(s.id)
		_, err := settle(s)
		require.ErrorIs(t, err, errMoved)
		assert.False(t, s.orphan())
	})
	t.Run("LostAnswersAreNotThat", func(t *testing.T) {
		s := newScene(t)
		s.rows.touch(s.id)
		s.unknown()
	})
	t.Run("LandedIfTheTableSaysSo", func(t *testing.T) {
		s := newScene(t)
		s.swap()
		_, err := settle(s)
		require.NoError(t, err)
	})
}

// What was refused for good, or never sent, leaves no metadata behind, and says which it was.
func TestCommit_Refused(t *testing.T) {
	for _, want := range []error{catalog.ErrPermanent, catalog.ErrNotSent} {
		s := newScene(t)
		s.c.discard(t.Context(), s.next.location)
		tbl, err := s.c.Load(t.Context(), s.id)
		require.NoError(t, err)
		reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
		s.rows.swapErr = fmt.Errorf("no: %w", want)
		_, err = s.c.Commit(t.Context(), s.id, reqs, ups)
		require.ErrorIs(t, err, want)
		st, err := s.c.Store(t.Context(), s.id, tbl.Location)
		require.NoError(t, err)
		n := 0
		require.NoError(t, st.List(t.Context(), tbl.Location, func(storage.Info) error { n++; return nil }))
		require.Equal(t, 1, n)
		s.rows.swapErr = nil
		_, err = s.c.Commit(t.Context(), s.id, reqs, ups)
		require.NoError(t, err)
	}
}

func TestKeyLocks_GiveUp(t *testing.T) {
	var k keyLocks
	unlock, err := k.lock(t.Context(), "a")
	require.NoError(t, err)
	other, err := k.lock(t.Context(), "b")
	require.NoError(t, err)
	other()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = k.lock(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	unlock()
	unlock, err = k.lock(t.Context(), "a")
	require.NoError(t, err)
	unlock()
	assert.Empty(t, k.held)
}

func TestCache_IsBounded(t *testing.T) {
	c := newCache(100)
	for i := range 10 {
		c.put(&version{location: string(rune('a' + i)), etag: "1", raw: make([]byte, 30)})
	}
	assert.LessOrEqual(t, c.bytes, int64(100))
	assert.Nil(t, c.get("a", "1"))
	assert.NotNil(t, c.get("j", "1"))
	assert.Nil(t, c.get("j", "2"), "another file by now")
	c.put(&version{location: "big", etag: "1", raw: make([]byte, 1000)})
	assert.NotNil(t, c.get("big", "1"), "the newest always fits")
	assert.Equal(t, 1, c.order.Len())
}
