package journal_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/journal"
)

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// ballast leaves 40 MB of free space.
func ballast(t *testing.T, path string) {
	t.Helper()
	j := open(t, path)
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		for i := range int32(40) {
			if err := tx.PutTask(&planv1.Task{JobId: "ballast", Task: i, Sql: strings.Repeat("x", 1<<20)}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, j.Update(func(tx *journal.Tx) error { return tx.DropWork("ballast") }))
	require.NoError(t, j.Close())
}

func TestOpen_CompactsAFileThatIsMostlyFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	want := filled(t, path)
	ballast(t, path)
	before, report := size(t, path), checked(t, path)
	require.Greater(t, report.Free, int64(30<<20))
	require.NoError(t, os.WriteFile(path+".rewrite", []byte("what a crash left"), 0o600))
	var log bytes.Buffer
	j, err := journal.Open(path, journal.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.Contains(t, log.String(), "journal rewritten")
	require.Less(t, size(t, path), before/4)
	require.NoFileExists(t, path+".rewrite")
	require.Equal(t, report.Epoch+1, j.Epoch())
	same(t, j, want, true)
	_, err = journal.Open(path, journal.Options{})
	require.ErrorIs(t, err, journal.ErrLocked, "the new file is locked, too")
	_, err = journal.Check(path)
	require.ErrorIs(t, err, journal.ErrLocked)
	require.NoError(t, j.Update(func(tx *journal.Tx) error { return tx.PutJob(&journal.Job{ID: "job-new"}) }))
	require.NoError(t, j.Close())
	require.Equal(t, 201, checked(t, path).Records["jobs"])
}

// Where the copy cannot be made the journal is used as it is.
func TestOpen_CompactionThatFailsChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	want := filled(t, path)
	ballast(t, path)
	require.NoError(t, os.MkdirAll(filepath.Join(path+".rewrite", "in the way"), 0o700))
	var log bytes.Buffer
	j, err := journal.Open(path, journal.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.Contains(t, log.String(), "could not be compacted")
	same(t, j, want, true)
	require.NoError(t, j.Close())
}

func checked(t *testing.T, path string) *journal.Report {
	t.Helper()
	r, err := journal.Check(path)
	require.NoError(t, err)
	require.Zero(t, r.Damage, "%v", r.Problems)
	return r
}

// Format 1 had no checksums.
func TestOpen_MigratesFormat1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	job, err := json.Marshal(&journal.Job{ID: "old", Principal: "p", Key: "k", State: journal.StateSuccessful, SQL: "SELECT 1"})
	require.NoError(t, err)
	raw(t, path, func(tx *bolt.Tx) error {
		for name, records := range map[string]map[string][]byte{
			"meta":     {"format": binary.BigEndian.AppendUint64(nil, 1), "epoch": binary.BigEndian.AppendUint64(nil, 41)},
			"jobs":     {"old": job},
			"keys":     {"p\x00k": []byte("old")},
			"attempts": {},
		} {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			for k, v := range records {
				if err := b.Put([]byte(k), v); err != nil {
					return err
				}
			}
		}
		return nil
	})
	require.EqualValues(t, 1, checked(t, path).Format)
	j := open(t, path)
	require.EqualValues(t, 42, j.Epoch())
	same(t, j, map[string]string{"old": "SELECT 1"}, true)
	require.NoError(t, j.Close())
	require.EqualValues(t, journal.Format, checked(t, path).Format)
}

// After a loss the keys are bound to the jobs that hold them, and nothing is left of jobs that are gone.
func TestDropStrays_KeysFollowJobs(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		require.NoError(t, tx.PutJob(&journal.Job{ID: "a", Principal: "p", Key: "k", State: journal.StateOpen}))
		require.NoError(t, tx.PutJob(&journal.Job{ID: "b", Principal: "p", Key: "failed", State: journal.StateFailed}))
		require.NoError(t, tx.TakeKey("p", "failed", "b"))
		require.NoError(t, tx.TakeKey("p", "lost", "c"))
		for _, id := range []string{"a", "c"} {
			require.NoError(t, tx.PutTask(&planv1.Task{JobId: id}))
			require.NoError(t, tx.PutCommit(&journal.Commit{Job: id, Record: []byte("{}")}))
		}
		n, err := tx.DropStrays()
		require.NoError(t, err)
		require.Equal(t, 2, n)
		for key, want := range map[string]string{"k": "a", "failed": "", "lost": ""} {
			have, err := tx.KeyJob("p", key)
			require.NoError(t, err)
			require.Equal(t, want, have, key)
		}
		_, err = tx.Commit("c")
		require.ErrorIs(t, err, journal.ErrMissing)
		_, err = tx.Commit("a")
		return err
	}))
}
