package broker

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
)

// bodies are files with commit objects that are too large for the journal. A file is complete and synced before the seal that refers to it by name and digest,
// and stays until the outcome is journalled: no sooner is the identical request not needed any more.
type bodies struct{ dir string }

// body is a commit object on its way: in memory, or in a file.
type body struct {
	data  []byte
	apart *coordinator.Apart
	lacks []string // markers that it does not contain
}

// size is in bytes.
func (b *body) size() int64 {
	if b.apart != nil {
		return b.apart.Size
	}
	return int64(len(b.data))
}

// read takes a commit object in: into memory up to coordinator.MaxBody bytes, and otherwise into a file, of which no more than a buffer is in memory.
func (b *bodies) read(r io.Reader, markers []string) (*body, error) {
	data, err := io.ReadAll(io.LimitReader(r, coordinator.MaxBody+1))
	if err != nil {
		return nil, err
	}
	if len(data) <= coordinator.MaxBody {
		return &body{data: data, lacks: slices.DeleteFunc(slices.Clone(markers), func(m string) bool { return containsMarker(data, m) })}, nil
	}
	if b.dir == "" {
		return nil, invalid("a commit object of more than %d bytes, and this host keeps none beside its journal", coordinator.MaxBody)
	}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	if err := fault.Hit("broker.body.before-create"); err != nil {
		return nil, err
	}
	out := &body{apart: &coordinator.Apart{File: rand.Text() + ".body"}, lacks: slices.Clone(markers)}
	err = b.create(out, io.MultiReader(bytes.NewReader(data), r))
	if err == nil {
		err = fault.Hit("broker.body.after-create")
	}
	if err != nil {
		return nil, errors.Join(err, b.remove(out.apart))
	}
	return out, nil
}

// create writes and syncs the file, and its name.
func (b *bodies) create(out *body, r io.Reader) error {
	f, err := os.OpenFile(b.path(out.apart), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := &summed{hash: sha256.New(), body: out}
	_, err = io.Copy(io.MultiWriter(f, sum), io.LimitReader(r, coordinator.MaxApart+1))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if out.apart.Size > coordinator.MaxApart {
		return invalid("a commit object of more than %d bytes", coordinator.MaxApart)
	}
	out.apart.SHA256 = sum.hash.Sum(nil)
	return errors.Join(syncDir(b.dir), syncDir(filepath.Dir(b.dir)))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// summed hashes what is written to it, and looks for markers, which may lie across two writes.
type summed struct {
	hash hash.Hash
	body *body
	tail []byte
}

func (s *summed) Write(p []byte) (int, error) {
	s.body.apart.Size += int64(len(p))
	longest := 0
	for _, m := range s.body.lacks {
		longest = max(longest, len(m))
	}
	if longest > 0 {
		seen := append(s.tail, p[:min(len(p), longest-1)]...)
		s.body.lacks = slices.DeleteFunc(s.body.lacks, func(m string) bool { return containsMarker(seen, m) || containsMarker(p, m) })
		if len(p) >= longest {
			seen = p
		}
		s.tail = slices.Clone(seen[len(seen)-min(len(seen), longest-1):])
	}
	return s.hash.Write(p)
}

func (b *bodies) path(a *coordinator.Apart) string { return filepath.Join(b.dir, a.File) }

// open opens a body that is as it was sealed. An error wraps errNoBody: nothing can be sent, and only a look at the store says what has become of the attempt.
func (b *bodies) open(a *coordinator.Apart) (*os.File, error) {
	f, err := os.Open(b.path(a))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoBody, err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, a.Size+1))
	if err == nil && (n != a.Size || !bytes.Equal(sum.Sum(nil), a.SHA256)) {
		err = fmt.Errorf("%s is damaged: it is not the file of %d bytes with SHA-256 %x that was sealed", f.Name(), a.Size, a.SHA256)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNoBody, err), f.Close())
	}
	return f, nil
}

// errNoBody: the file of a sealed commit object is not there, or not as it was.
var errNoBody = errors.New("the commit object cannot be sent again: put its file back as it was; until then the attempt ends only when its version is seen to be taken")

// remove forgets a body; nil: there is none.
func (b *bodies) remove(a *coordinator.Apart) error {
	if a == nil {
		return nil
	}
	if err := fault.Hit("broker.body.before-remove"); err != nil {
		return err
	}
	if err := os.Remove(b.path(a)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Forget removes the file that has an attempt's commit object, once its outcome is journalled.
func (b *Broker) Forget(a *coordinator.Attempt) {
	if err := b.bodies.remove(a.Apart); err != nil {
		b.log.Warn("the file of a commit object is left", "file", a.Apart.File, "error", err)
	}
}

// KeepBodies removes the files of commit objects that no open attempt needs: crashes have left them. Call it before anything commits.
func (b *Broker) KeepBodies(open []*coordinator.Attempt) error {
	if b.bodies.dir == "" {
		return nil
	}
	entries, err := os.ReadDir(b.bodies.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		needed := slices.ContainsFunc(open, func(a *coordinator.Attempt) bool { return a.Apart != nil && a.Apart.File == e.Name() })
		if !needed {
			err = errors.Join(err, os.Remove(filepath.Join(b.bodies.dir, e.Name())))
		}
	}
	return err
}
