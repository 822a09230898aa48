package sql_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
)

func TestFaulty_ConformsWithoutFaults(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Catalog { return catalogtest.NewFaulty(openSQLite(t, t.TempDir())) })
}

func TestFaulty_DoesWhatItSays(t *testing.T) {
	ctx := t.Context()
	f := catalogtest.NewFaulty(openSQLite(t, t.TempDir()))
	defer f.Close()
	require.NoError(t, f.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := f.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	landed := func(id int64) bool {
		now, err := f.Load(ctx, tbl.Ident)
		require.NoError(t, err)
		return now.Metadata.SnapshotByID(id) != nil
	}
	for i, tc := range []struct {
		fault  catalogtest.Fault
		err    error
		landed bool
	}{
		{catalogtest.LostReply, catalogtest.ErrLost, true},
		{catalogtest.Dropped, catalogtest.ErrLost, false},
		{catalogtest.Conflict, catalog.ErrConflict, false},
		{catalogtest.Refuse, catalog.ErrPermanent, false},
		{catalogtest.Late, catalogtest.ErrLost, false},
		{catalogtest.Pass, nil, true},
	} {
		now, err := f.Load(ctx, tbl.Ident)
		require.NoError(t, err)
		id := int64(100 + i)
		reqs, ups := catalogtest.Append(now, id)
		f.Next(tc.fault)
		_, err = f.Commit(ctx, tbl.Ident, reqs, ups)
		require.ErrorIs(t, err, tc.err)
		<-f.Arrived()
		assert.Equal(t, tc.landed, landed(id), tc.fault)
		if tc.fault == catalogtest.Late {
			require.NoError(t, f.Release(ctx))
			assert.True(t, landed(id), "after Release")
		}
	}
	now, err := f.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	reqs, ups := catalogtest.Append(now, 200)
	f.Next(catalogtest.Slow)
	done := make(chan error, 1)
	go func() {
		_, err := f.Commit(ctx, tbl.Ident, reqs, ups)
		done <- err
	}()
	<-f.Arrived()
	assert.False(t, landed(200))
	require.NoError(t, f.Release(ctx))
	require.NoError(t, <-done)
	assert.True(t, landed(200))
	assert.Len(t, f.Sent(), 7)
}
