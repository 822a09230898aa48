package journal_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/journal"
)

// crowd has updates wait behind one that is under way, and then run.
func crowd(t *testing.T, j *journal.Journal, updates ...func(*journal.Tx) error) (errs []error, panics []any) {
	t.Helper()
	held, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- j.Update(func(*journal.Tx) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	errs, panics = make([]error, len(updates)), make([]any, len(updates))
	var group sync.WaitGroup
	for i, f := range updates {
		group.Go(func() {
			defer func() { panics[i] = recover() }()
			errs[i] = j.Update(f)
		})
		require.Eventually(t, func() bool { return j.Waiting() == i+1 }, 10*time.Second, time.Millisecond)
	}
	close(release)
	group.Wait()
	require.NoError(t, <-first)
	return errs, panics
}

func jobs(t *testing.T, j *journal.Journal) (ids []string) {
	t.Helper()
	require.NoError(t, j.View(func(tx *journal.Tx) error {
		return tx.Jobs(func(r *journal.Job) error { ids = append(ids, r.ID); return nil })
	}))
	return ids
}

func TestUpdate_ThoseThatWaitShareATransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	j := open(t, path)
	var mu sync.Mutex
	txs, runs := map[int]int{}, 0
	var updates []func(*journal.Tx) error
	for i := range 100 {
		updates = append(updates, func(tx *journal.Tx) error {
			mu.Lock()
			defer mu.Unlock()
			txs[tx.ID()]++
			runs++
			return tx.PutJob(&journal.Job{ID: fmt.Sprintf("job-%03d", i)})
		})
	}
	errs, _ := crowd(t, j, updates...)
	require.NoError(t, errors.Join(errs...))
	require.Len(t, txs, 2, "100 updates, at most 64 of them in one")
	require.Equal(t, 100, runs)
	require.NoError(t, j.Close())
	require.Len(t, jobs(t, open(t, path)), 100)
}

// One that fails fails alone, whatever it shares a transaction with; nothing of it stays, and all of the others does.
func TestUpdate_FailsAlone(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j.db"))
	put := func(id string, after func(*journal.Tx) error) func(*journal.Tx) error {
		return func(tx *journal.Tx) error {
			if err := tx.PutJob(&journal.Job{ID: id}); err != nil || after == nil {
				return err
			}
			return after(tx)
		}
	}
	wrong := errors.New("wrong")
	errs, panics := crowd(t, j, put("a", nil), put("b", func(*journal.Tx) error { return wrong }), put("c", nil), put("d", func(*journal.Tx) error { panic("at the disco") }),
		put("e", func(tx *journal.Tx) error { // sees what came before it, and not what failed
			if _, err := tx.Job("a"); err != nil {
				return err
			}
			_, err := tx.Job("b")
			return err
		}), put("f", nil))
	require.Equal(t, []any{nil, nil, nil, "at the disco", nil, nil}, panics)
	require.NoError(t, errors.Join(errs[0], errs[2], errs[5]))
	require.ErrorIs(t, errs[1], wrong)
	require.ErrorIs(t, errs[4], journal.ErrMissing)
	require.Equal(t, []string{"a", "c", "f"}, jobs(t, j))
	require.NoError(t, j.Update(put("g", nil)), "the journal goes on")
}
