package host

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/signet-io/signet/internal/lockdir"
)

const (
	runPrefix  = "run-"
	sockPrefix = "signet-sock-"
	sockLink   = "sockets"
	// maxSock leaves room below it for the names that go-plugin adds: a socket's path may have 107 bytes.
	maxSock = 60
)

// runDir is one plugin's private directory.
type runDir struct {
	*lockdir.Dir
	sock string // where sockets live: below Path, or in the temporary directory where Path is too long for a socket
}

// newRunDir sweeps what dead hosts left in dir and makes a new directory there. What cannot be removed stays for the next sweep.
func newRunDir(dir string) (*runDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	_ = Sweep(dir)
	id := rand.Text()[:10]
	d, err := lockdir.Make(dir, runPrefix+id)
	if err != nil {
		return nil, err
	}
	r := &runDir{d, filepath.Join(d.Path, "s")}
	if err := r.makeSockets(id); err != nil {
		return nil, errors.Join(err, r.remove())
	}
	return r, os.Mkdir(r.tmp(), 0o700)
}

// Sweep removes from dir, a Config.Dir, what the plugins of hosts that are gone have left. Every start of a plugin does so, too.
func Sweep(dir string) error { return lockdir.Sweep(dir, runPrefix, removeSockets) }

func (r *runDir) tmp() string { return filepath.Join(r.Path, "tmp") }

func (r *runDir) makeSockets(id string) error {
	if len(r.sock) <= maxSock {
		return os.Mkdir(r.sock, 0o700)
	}
	base := os.TempDir()
	if len(base)+len(sockPrefix)+12 > maxSock {
		base = "/tmp" // TMPDIR is too long as well
	}
	r.sock = filepath.Join(base, sockPrefix+id)
	if err := os.Symlink(r.sock, filepath.Join(r.Path, sockLink)); err != nil { // first, so that a sweep finds it
		return err
	}
	if err := os.Mkdir(r.sock, 0o700); err != nil {
		return fmt.Errorf("%w; sockets need a short path: set TMPDIR to a short directory", err)
	}
	return nil
}

func (r *runDir) remove() error {
	return errors.Join(removeSockets(r.Path), r.Remove())
}

func removeSockets(run string) error {
	target, err := os.Readlink(filepath.Join(run, sockLink))
	if err != nil {
		return nil //nolint:nilerr // no link: they are below
	}
	if !strings.HasPrefix(filepath.Base(target), sockPrefix) {
		return fmt.Errorf("%s points at %s, which is not ours", filepath.Join(run, sockLink), target)
	}
	return os.RemoveAll(target)
}
