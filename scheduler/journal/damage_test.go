package journal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/journal"
)

// filled writes a journal of many pages and returns its jobs by id.
func filled(t *testing.T, path string) map[string]string {
	t.Helper()
	j := open(t, path)
	want := map[string]string{} // SQL by job
	for i := range 200 {
		require.NoError(t, j.Update(func(tx *journal.Tx) error {
			id := fmt.Sprintf("job-%03d", i)
			want[id] = "SELECT " + strings.Repeat("x", 10*i%5000)
			if i%10 == 0 {
				if err := tx.PutTask(&planv1.Task{JobId: id, Sql: strings.Repeat("y", 9000)}); err != nil {
					return err
				}
			}
			if err := tx.TakeKey("p", id, id); err != nil {
				return err
			}
			return tx.PutJob(&journal.Job{ID: id, SQL: want[id], State: journal.StateSuccessful, Key: id, Principal: "p"})
		}))
	}
	require.NoError(t, j.Close())
	return want
}

// check opens a journal that may be damaged: every record is what was written, or it is refused. It returns whether it was opened.
func check(t *testing.T, path string, want map[string]string, torn bool) bool {
	t.Helper()
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		require.ErrorIs(t, err, journal.ErrDamaged)
		require.ErrorContains(t, err, "signet journal salvage")
		return false
	}
	defer func() { require.NoError(t, j.Close()) }()
	if n := same(t, j, want, false); torn {
		require.GreaterOrEqual(t, n, len(want)-1, "the transaction before")
	} else {
		require.Equal(t, len(want), n)
	}
	return true
}

func same(t *testing.T, j *journal.Journal, want map[string]string, all bool) int {
	t.Helper()
	n := 0
	require.NoError(t, j.View(func(tx *journal.Tx) error {
		return tx.Jobs(func(rec *journal.Job) error {
			n++
			require.Equal(t, want[rec.ID], rec.SQL)
			holder, err := tx.KeyJob("p", rec.Key)
			if err == nil && all {
				require.Equal(t, rec.ID, holder)
			}
			return err
		})
	}))
	if all {
		require.Equal(t, len(want), n)
	}
	return n
}

// Whatever happens to the file, opening it is an error that says what to do, or nothing is lost; and what can be read is saved.
func TestOpen_EveryDamageIsFoundAndTheRestIsSaved(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	want := filled(t, whole)
	content, err := os.ReadFile(whole)
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	damage := map[string]func([]byte) []byte{}
	page := os.Getpagesize()
	for i := range len(content) / page {
		if i > 3 && i%11 != 0 {
			continue // there are many
		}
		damage[fmt.Sprintf("page %d zeroed", i)] = func(b []byte) []byte { clear(b[i*page : (i+1)*page]); return b }
		damage[fmt.Sprintf("page %d torn", i)] = func(b []byte) []byte {
			for k := i*page + page/2; k < (i+1)*page; k++ {
				b[k] = byte(rnd.Uint32())
			}
			return b
		}
		damage[fmt.Sprintf("page %d in place of another", i)] = func(b []byte) []byte {
			first := 0
			if i < 2 { // one meta page for the other is the whole and sound state before the last commit: nothing tells that there was one
				first = 2
			}
			copy(b[i*page:(i+1)*page], b[(first+rnd.IntN(len(b)/page-first))*page:])
			return b
		}
		damage[fmt.Sprintf("cut off at page %d", i)] = func(b []byte) []byte { return b[:i*page+rnd.IntN(page)] }
	}
	for i := range 40 {
		at, bit := rnd.IntN(len(content)), rnd.IntN(8)
		damage[fmt.Sprintf("%d: bit %d of byte %d flipped", i, bit, at)] = func(b []byte) []byte { b[at] ^= 1 << bit; return b }
	}
	opened, saved := 0, 0
	for name, f := range damage {
		path, to := filepath.Join(dir, "damaged.db"), filepath.Join(dir, "saved.db")
		require.NoError(t, os.WriteFile(path, f(append([]byte(nil), content...)), 0o600))
		if info, err := os.Stat(path); err == nil && info.Size() == 0 {
			continue // as good as new
		}
		ok := t.Run(name, func(t *testing.T) {
			report, err := journal.Check(path)
			require.NoError(t, err)
			if strings.Contains(name, "zeroed") && report.Damage > 0 {
				require.NotEmpty(t, report.Summary())
			}
			defer os.Remove(to)
			_, err = journal.Salvage(path, to)
			require.NoError(t, err)
			j, err := journal.Open(to, journal.Options{})
			require.NoError(t, err)
			saved += same(t, j, want, false)
			require.NoError(t, j.Close())
			if check(t, path, want, report.Torn) {
				opened++
			} else {
				require.Positive(t, report.Damage)
			}
		})
		require.True(t, ok)
	}
	t.Logf("%d kinds of damage, %d that nobody needs, %.1f of 200 jobs saved on the average", len(damage), opened, float64(saved)/float64(len(damage)))
	require.Less(t, opened, len(damage)*2/3)
	require.Greater(t, saved/len(damage), 100)
}

// Damage under a running scheduler: pages that were read well before are bad now, or are not there any more.
func TestView_DamageWhileRunningIsAnErrorAndStopsWrites(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, f *os.File, size int64){
		"zeroed": func(t *testing.T, f *os.File, size int64) {
			_, err := f.WriteAt(make([]byte, size-int64(2*os.Getpagesize())), int64(2*os.Getpagesize()))
			require.NoError(t, err)
		},
		"random": func(t *testing.T, f *os.File, size int64) {
			b := make([]byte, size-int64(2*os.Getpagesize()))
			rnd := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			_, err := f.WriteAt(b, int64(2*os.Getpagesize()))
			require.NoError(t, err)
		},
		"cut off": func(t *testing.T, f *os.File, _ int64) { require.NoError(t, f.Truncate(int64(2*os.Getpagesize()))) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			filled(t, path)
			j, err := journal.Open(path, journal.Options{})
			require.NoError(t, err)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			info, err := f.Stat()
			require.NoError(t, err)
			harm(t, f, info.Size())
			require.NoError(t, f.Close())
			read := func() error {
				return j.View(func(tx *journal.Tx) error { return tx.Jobs(func(*journal.Job) error { return nil }) })
			}
			err = read()
			require.ErrorIs(t, err, journal.ErrDamaged)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "signet journal check")
			require.ErrorIs(t, j.Err(), journal.ErrDamaged)
			for range 2 { // and the lock is not held by what failed
				require.ErrorIs(t, j.Update(func(tx *journal.Tx) error { return tx.PutJob(&journal.Job{ID: "new"}) }), journal.ErrDamaged)
			}
			_ = j.Close()
		})
	}
}

// Damage that a write meets first.
func TestUpdate_DamageIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	filled(t, path)
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(2*os.Getpagesize())))
	err = j.Update(func(tx *journal.Tx) error { return tx.PutJob(&journal.Job{ID: "job-100"}) })
	require.ErrorIs(t, err, journal.ErrDamaged)
	require.ErrorIs(t, j.Update(func(*journal.Tx) error { return nil }), journal.ErrDamaged)
	_ = j.Close()
}

// A panic of the caller's own is no damage.
func TestUpdate_OtherPanicsGoOn(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	var none *journal.Job
	for _, f := range []func(*journal.Tx) error{
		func(*journal.Tx) error { panic("mine") },
		func(tx *journal.Tx) error { return tx.PutJob(&journal.Job{ID: none.ID}) },
	} {
		require.Panics(t, func() { _ = j.Update(f) })
		require.Panics(t, func() { _ = j.View(f) })
	}
	require.NoError(t, j.Err())
	require.NoError(t, j.Update(func(tx *journal.Tx) error { return tx.PutJob(&journal.Job{ID: "a"}) }))
}

// A record that stands where another was written is damage, though its checksum was right there.
func TestTx_RecordInPlaceOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	filled(t, path)
	raw(t, path, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("jobs"))
		return b.Put([]byte("job-007"), b.Get([]byte("job-008")))
	})
	_, err := journal.Open(path, journal.Options{})
	require.ErrorIs(t, err, journal.ErrDamaged)
	require.ErrorContains(t, err, `jobs record "job-007"`)
}

func TestOpen_NewerFormatIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	filled(t, path)
	raw(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), binary.BigEndian.AppendUint64(nil, journal.Format+1))
	})
	for _, f := range []func() error{
		func() error { _, err := journal.Open(path, journal.Options{}); return err },
		func() error { _, err := journal.Check(path); return err },
		func() error { _, err := journal.Salvage(path, path+".new"); return err },
	} {
		err := f()
		require.ErrorIs(t, err, journal.ErrNewer)
		require.ErrorContains(t, err, "start the newer signet again")
	}
	require.NoFileExists(t, path+".new")
}

func raw(t *testing.T, path string, f func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, errors.Join(db.Update(f), db.Close()))
}
