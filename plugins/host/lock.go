package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/signet-io/signet/plugins/protocol"
)

// LockFile is the name of the lock in a plugin directory.
const LockFile = "plugins.lock"

const lockVersion = 1

// Lock is plugins.lock: what may run, by name.
type Lock struct {
	Version int      `json:"version"`
	Plugins []Locked `json:"plugins"`
}

// Locked is one plugin. SHA256 is by platform, as in "linux_amd64".
type Locked struct {
	Name     string            `json:"name"`
	Version  string            `json:"version,omitempty"`
	Protocol int               `json:"protocol"`
	SHA256   map[string]string `json:"sha256"`
}

// Platform is the key of this system in Locked.SHA256.
func Platform() string { return runtime.GOOS + "_" + runtime.GOARCH }

// Find gives the entry of a name.
func (l *Lock) Find(name string) (Locked, bool) {
	i := slices.IndexFunc(l.Plugins, func(p Locked) bool { return p.Name == name })
	if i < 0 {
		return Locked{}, false
	}
	return l.Plugins[i], true
}

// ReadLock reads the lock of a plugin directory. A missing one is an error that wraps fs.ErrNotExist.
func ReadLock(dir string) (*Lock, error) {
	path := filepath.Join(dir, LockFile)
	if err := ownOnly(dir, path); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	l := &Lock{}
	if err := dec.Decode(l); err != nil {
		return nil, fmt.Errorf("%w: %s: %w; write it again with WriteLock", ErrConfig, path, err)
	}
	if l.Version != lockVersion {
		return nil, fmt.Errorf("%w: %s has version %d, this host knows %d", ErrConfig, path, l.Version, lockVersion)
	}
	return l, l.check(path)
}

func (l *Lock) check(path string) error {
	seen := map[string]bool{}
	for _, p := range l.Plugins {
		if !nameRule.MatchString(p.Name) || seen[p.Name] {
			return fmt.Errorf("%w: %s: the name %q is invalid or there twice", ErrConfig, path, p.Name)
		}
		seen[p.Name] = true
		for platform, sum := range p.SHA256 {
			if len(sum) != 64 || strings.Trim(strings.ToLower(sum), "0123456789abcdef") != "" {
				return fmt.Errorf("%w: %s: %s for %s is no SHA-256: %q", ErrConfig, path, p.Name, platform, sum)
			}
		}
	}
	return nil
}

// ownOnly refuses what any user of the system may replace.
func ownOnly(paths ...string) error {
	for _, p := range paths {
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("%w: everybody may write to %s; chmod o-w it", ErrConfig, p)
		}
	}
	return nil
}

// WriteLock locks every signet-sink-* in a directory as it is now: it hashes each and asks it for its version. Sums of other platforms stay
// where the version is the same.
func WriteLock(dir string) error {
	old, err := ReadLock(dir)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = &Lock{}, nil
	}
	if err != nil {
		return err
	}
	names, err := Discover(dir)
	if err != nil {
		return err
	}
	l := &Lock{Version: lockVersion, Plugins: []Locked{}}
	for _, name := range names {
		p, err := lockOne(pathOf(dir, name), name)
		if err != nil {
			return err
		}
		if was, ok := old.Find(name); ok && was.Version == p.Version && was.Protocol == p.Protocol {
			for platform, sum := range was.SHA256 {
				if platform != Platform() {
					p.SHA256[platform] = sum
				}
			}
		}
		l.Plugins = append(l.Plugins, p)
	}
	return l.write(dir)
}

func lockOne(path, name string) (Locked, error) {
	sum, err := fileSum(path)
	if err != nil {
		return Locked{}, err
	}
	p := Locked{Name: name, Protocol: protocol.Version, SHA256: map[string]string{Platform(): sum}}
	// A plugin in another language need not know `describe`; its entry then has no version.
	switch d, err := askDescription(path, name, sum); {
	case errors.Is(err, errMisnamed):
		return Locked{}, err
	case err == nil:
		p.Version, p.Protocol = d.Version, d.Protocol
	}
	return p, nil
}

func (l *Lock) write(dir string) error {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, LockFile+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, LockFile))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Verify compares every locked plugin with its file, and names all that differ.
func (l *Lock) Verify(dir string) error {
	var errs []error
	for _, p := range l.Plugins {
		path := pathOf(dir, p.Name)
		want, ok := p.SHA256[Platform()]
		if !ok {
			errs = append(errs, notForHere(p, path))
			continue
		}
		got, err := fileSum(path)
		switch {
		case err != nil:
			errs = append(errs, &Error{Kind: ErrConfig, Plugin: p.Name, Path: path, Cause: err, Hint: "install it again, or take it out of plugins.lock"})
		case !strings.EqualFold(got, want):
			errs = append(errs, &Error{Kind: ErrChecksum, Plugin: p.Name, Path: path, Detail: fmt.Sprintf("its SHA-256 is %s, plugins.lock has %s", got, want)})
		}
	}
	return errors.Join(errs...)
}

func notForHere(p Locked, path string) error {
	return &Error{
		Kind: ErrNotLocked, Plugin: p.Name, Path: path, Detail: "plugins.lock has no checksum for " + Platform(),
		Hint: "install it for this platform and write plugins.lock again",
	}
}
