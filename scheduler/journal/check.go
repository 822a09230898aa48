package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Report is what a check of a whole file has found.
type Report struct {
	Path    string         `json:"path"`
	Format  uint64         `json:"format"` // 0: the file was just made, or its format cannot be read
	Epoch   uint64         `json:"epoch"`
	Bytes   int64          `json:"bytes"`
	Free    int64          `json:"free_bytes"` // no record needs them
	Records map[string]int `json:"records"`    // by bucket, those that are whole
	// Torn: one of the two pages that say where everything is was not whole. A crash leaves that; the last transaction is not there then.
	Torn     bool     `json:"torn,omitempty"`
	Damage   int      `json:"damage"` // how much is wrong
	Problems []string `json:"problems,omitempty"`
}

// crowded tells whether rewriting the file is worth it: bbolt gives nothing back.
func (r *Report) crowded() bool { return r.Free > compactBytes && r.Free > r.Bytes/2 }

// compactBytes of free space are worth a rewrite.
const compactBytes = 16 << 20

// Err is ErrDamaged if anything is wrong.
func (r *Report) Err() error {
	if r.Damage == 0 {
		return nil
	}
	more := ""
	if r.Damage > 1 {
		more = fmt.Sprintf(" (%d problems in all)", r.Damage)
	}
	return fmt.Errorf("%w: %s%s; %s", ErrDamaged, r.Problems[0], more, wayOut)
}

// listedProblems is how many of them a report says.
const listedProblems = 20

// Check reads a journal that no scheduler has open, and changes nothing. Damage is in the report, not in the error.
func Check(path string) (*Report, error) {
	f, release, err := lockRead(path)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	defer release()
	r := &Report{Path: path, Records: map[string]int{}}
	if err := r.read(f, nil); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return r, nil
}

// read checks the file and gives every whole record to keep.
func (r *Report) read(f *os.File, keep func(bucket, key, content []byte) error) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r.Bytes = info.Size()
	p, err := newPages(f, info.Size())
	if err != nil {
		r.Damage, r.Problems = 1, []string{errNoMeta.Error()}
		return nil //nolint:nilerr // it is the report's
	}
	r.Torn = p.torn
	// The format decides how the others are read, and lies in a bucket among them.
	if r.Format, err = formatOf(f, info.Size()); err != nil {
		return err
	}
	err = p.records(func(bucket, key, value []byte) error {
		content := value
		if string(bucket) == string(bucketMeta) && string(key) == string(keyFormat) {
			return nil
		}
		var err error
		if r.Format == 1 {
			err = plausible(bucket, key, value)
		} else {
			content, err = unseal(bucket, key, value)
		}
		if err != nil {
			p.problem("%s record %q is not what was written", bucket, clipped(key))
			return nil //nolint:nilerr // it is the report's
		}
		if string(bucket) == string(bucketMeta) && string(key) == string(keyEpoch) && len(content) == 8 {
			r.Epoch = be.Uint64(content)
		}
		r.Records[string(bucket)]++
		if keep != nil {
			return keep(bucket, key, content)
		}
		return nil
	})
	r.Damage, r.Problems = p.count, p.problems
	if r.Format == 0 && len(r.Records) > 0 {
		r.Damage++
		r.Problems = append(r.Problems, "its format is not there")
	}
	used := int64(len(p.seen)+2) * p.page
	r.Free = max(r.Bytes-used, 0)
	return err
}

// plausible is all that can be said of a record without a checksum.
func plausible(bucket, key, value []byte) error {
	switch string(bucket) {
	case string(bucketTasks), string(bucketMeta), string(bucketKeys):
		return nil
	}
	if !json.Valid(value) {
		return fmt.Errorf("%w: %s record %q", ErrDamaged, bucket, key)
	}
	return nil
}

// formatOf is 0 if it cannot be read.
func formatOf(f *os.File, size int64) (uint64, error) {
	p, err := newPages(f, size)
	if err != nil {
		return 0, nil //nolint:nilerr // said elsewhere
	}
	format := uint64(0)
	found := errors.New("found")
	err = p.tree(p.meta.root, 0, span{}, func(e element) error {
		if !e.bucket || len(e.value) < 16 || string(e.key) != string(bucketMeta) {
			return nil
		}
		take := func(r element) error {
			if string(r.key) == string(keyFormat) && len(r.value) == 8 {
				format = be.Uint64(r.value)
				return found
			}
			return nil
		}
		if root := le.Uint64(e.value); root != 0 {
			return p.tree(root, 1, span{}, take)
		}
		if len(e.value) < 16+headerSize {
			return nil
		}
		return p.visit("meta", e.value[16:], 1, span{}, take)
	})
	if err != nil && !errors.Is(err, found) {
		return 0, err
	}
	if format > Format {
		return 0, fmt.Errorf("%w (its format is %d, this one knows %d): start the newer signet again, or move the file away to begin without it: tables keep their rows and markers, "+
			"what ran is forgotten", ErrNewer, format, Format)
	}
	return format, nil
}

// lockRead opens a journal that no scheduler has open, and keeps it so until release.
func lockRead(path string) (*os.File, func(), error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if err := flock(f, false); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, func() { _ = f.Close() }, nil
}

// openChecked reads the whole file under the lock that bbolt takes as well, and lets bbolt have it only if nothing is wrong.
func openChecked(path string, wait time.Duration) (*bolt.DB, *Report, error) {
	for {
		var file *os.File
		r := &Report{Path: path, Records: map[string]int{}}
		if err := precheck(path, wait, r); err != nil {
			return nil, nil, err
		}
		db, err := openBolt(path, wait, &file)
		if err != nil {
			return nil, nil, err
		}
		same, err := isAt(file, path)
		if err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
		if same {
			return db, r, nil
		}
		if err := db.Close(); err != nil { // another process has put a rewritten file in its place
			return nil, nil, err
		}
	}
}

func precheck(path string, wait time.Duration, r *Report) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := flockWait(f, wait); err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Size() == 0 { // made, and never written
		return err
	}
	if err := r.read(f, nil); err != nil {
		return err
	}
	return r.Err()
}

func isAt(f *os.File, path string) (bool, error) {
	have, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(have, there), nil
}

func openBolt(path string, wait time.Duration, file **os.File) (db *bolt.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v; %s", ErrDamaged, r, wayOut)
		}
	}()
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout: max(wait, time.Millisecond), FreelistType: bolt.FreelistMapType, NoFreelistSync: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			f, err = os.OpenFile(name, flag, mode)
			*file = f
			return f, err
		},
	})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w; %s", ErrDamaged, err, wayOut)
	}
	return nil, err
}

// Summary is the report in words.
func (r *Report) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: format %d, epoch %d, %d bytes, %d of them free\n", r.Path, r.Format, r.Epoch, r.Bytes, r.Free)
	names := make([]string, 0, len(r.Records))
	for name := range r.Records {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != string(bucketMeta) {
			fmt.Fprintf(&b, "  %-10s %d\n", name, r.Records[name])
		}
	}
	if r.Torn {
		b.WriteString("  the newest transaction was not whole, which is what a crash leaves; the journal is that of the one before\n")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  damaged: %s\n", p)
	}
	if more := r.Damage - len(r.Problems); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}
