package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/signet-io/signet/internal/fault"
)

// image is the verified copy that runs. The original may change between hash and exec, so it is never run.
type image struct {
	path   string
	sealed *os.File // keeps a sealed copy in memory alive; nil for a copy in the run directory
}

func (i *image) close() {
	if i.sealed != nil {
		_ = i.sealed.Close()
	}
}

// load copies the plugin while hashing it and compares the sum. Binaries are copied into sealed memory, which nobody can change any more;
// scripts, which their interpreter opens by name, into the private directory.
func load(c *Config, run *runDir) (*image, error) {
	src, err := os.OpenFile(c.Path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &Error{Kind: ErrConfig, Plugin: c.Name, Path: c.Path, Cause: err, Hint: "make it readable for the scheduler"}
	}
	defer src.Close()
	img, sum, err := copyImage(src, filepath.Base(c.Path), run.Path)
	if err != nil {
		return nil, &Error{Kind: ErrStart, Plugin: c.Name, Path: c.Path, Detail: "copy it before the start", Cause: err, Hint: "check space and permissions of " + c.Dir}
	}
	if err := fault.Hit("plugins.start.after-copy"); err != nil {
		img.close()
		return nil, &Error{Kind: ErrStart, Plugin: c.Name, Path: c.Path, Cause: err}
	}
	if c.SHA256 != "" && !strings.EqualFold(sum, c.SHA256) {
		img.close()
		return nil, &Error{
			Kind: ErrChecksum, Plugin: c.Name, Path: c.Path, Detail: fmt.Sprintf("its SHA-256 is %s, plugins.lock has %s", sum, strings.ToLower(c.SHA256)),
			Hint: "if you replaced the file on purpose, write plugins.lock again; if not, restore the file and find out who changed it",
		}
	}
	return img, nil
}

func copyImage(src *os.File, name, dir string) (*image, string, error) {
	var magic [4]byte
	if _, err := io.ReadFull(src, magic[:]); err != nil {
		return nil, "", fmt.Errorf("too short to be a program: %w", err)
	}
	hash := sha256.New()
	from := io.TeeReader(io.MultiReader(bytes.NewReader(magic[:]), src), hash)
	sum := func() string { return hex.EncodeToString(hash.Sum(nil)) }
	if string(magic[:]) == "\x7fELF" {
		img, err := sealedCopy(from, name)
		if img != nil || err != nil {
			return img, sum(), err
		}
	}
	path := filepath.Join(dir, name)
	dst, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o500)
	if err != nil {
		return nil, "", err
	}
	if _, err := io.Copy(dst, from); err != nil {
		_ = dst.Close()
		return nil, "", err
	}
	return &image{path: path}, sum(), dst.Close()
}

// fileSum hashes a plugin for plugins.lock.
func fileSum(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
