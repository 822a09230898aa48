package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/signet-io/signet/internal/fault"
)

// rewriteSuffix of the new file while it is written. One that a crash has left is not complete, or the old one is as good: it goes.
const rewriteSuffix = ".rewrite"

// batchBytes of one transaction of a rewrite.
const batchBytes = 8 << 20

// rewrite puts a copy without free space, in today's format, in the place of the file, and returns it, open and locked. The old one stays locked
// until the new one has its name, so that no other process can have either. Where the copy cannot be made, a file of today's format is used as it is.
func rewrite(old *bolt.DB, path string, r *Report, log *slog.Logger) (*bolt.DB, error) {
	begun := time.Now()
	db, err := replace(old, path, r.Format)
	if err != nil {
		_ = os.Remove(path + rewriteSuffix)
		if r.Format == Format && !errors.Is(err, errReplaced) {
			log.Warn("the journal is mostly free space and could not be compacted; it is used as it is", "journal", path, "bytes", r.Bytes, "free", r.Free, "error", err)
			return old, nil
		}
		return nil, errors.Join(fmt.Errorf("rewriting it in format %d: %w", Format, err), old.Close())
	}
	if err := old.Close(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	size := int64(0)
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	log.Info("journal rewritten", "journal", path, "format", Format, "was", r.Format, "bytes", size, "before", r.Bytes, "millis", time.Since(begun).Milliseconds())
	return db, nil
}

// errReplaced is a failure after the new file took the old one's name.
var errReplaced = errors.New("the rewritten file is in place")

func replace(old *bolt.DB, path string, format uint64) (db *bolt.DB, err error) {
	next := path + rewriteSuffix
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := fault.Hit("journal.rewrite.before-copy"); err != nil {
		return nil, err
	}
	w, err := create(next)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.abandon())
		}
	}()
	if err := copyRecords(old, w, format); err != nil {
		return nil, err
	}
	if err := fault.Hit("journal.rewrite.before-sync"); err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	if err := fault.Hit("journal.rewrite.before-rename"); err != nil {
		return nil, err
	}
	if err := os.Rename(next, path); err != nil {
		return nil, err
	}
	if err := fault.Hit("journal.rewrite.after-rename"); err != nil {
		return nil, errors.Join(errReplaced, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(errReplaced, err)
	}
	return w.db, nil
}

func copyRecords(old *bolt.DB, w *writer, format uint64) error {
	return old.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				switch {
				case string(name) == string(bucketMeta) && string(k) == string(keyFormat):
					return nil
				case format == 1:
					return w.put(name, k, v)
				}
				content, err := unseal(name, k, v)
				if err != nil {
					return err
				}
				return w.put(name, k, content)
			})
		})
	})
}

// writer fills a new journal. Nothing of it is synced before finish.
type writer struct {
	db   *bolt.DB
	tx   *bolt.Tx
	size int
}

func create(path string) (*writer, error) {
	var file *os.File
	db, err := openBolt(path, 0, &file)
	if err != nil {
		return nil, err
	}
	db.NoSync, db.NoGrowSync = true, true
	w := &writer{db: db}
	if w.tx, err = db.Begin(true); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	for _, name := range buckets {
		if _, err := w.tx.CreateBucket(name); err != nil {
			return nil, errors.Join(err, w.abandon())
		}
	}
	if err := w.tx.Bucket(bucketMeta).Put(keyFormat, be.AppendUint64(nil, Format)); err != nil {
		return nil, errors.Join(err, w.abandon())
	}
	return w, nil
}

func (w *writer) abandon() error {
	if w.tx != nil {
		_ = w.tx.Rollback()
	}
	return w.db.Close()
}

func (w *writer) put(bucket, key, content []byte) error {
	if w.size > batchBytes {
		if err := w.commit(); err != nil {
			return err
		}
		tx, err := w.db.Begin(true)
		if err != nil {
			return err
		}
		w.tx, w.size = tx, 0
	}
	b, err := w.tx.CreateBucketIfNotExists(bucket)
	if err != nil {
		return err
	}
	w.size += len(key) + len(content)
	return b.Put(key, seal(bucket, key, content))
}

func (w *writer) commit() error {
	tx := w.tx
	w.tx = nil
	return tx.Commit()
}

func (w *writer) finish() error {
	if err := w.commit(); err != nil {
		return err
	}
	w.db.NoSync, w.db.NoGrowSync = false, false
	return w.db.Sync()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
