package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/signet-io/signet/plugins/protocol"
)

// Discover lists the sink plugins of a directory by name, sorted. There is no search path, and links do not count.
func Discover(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), protocol.FilePrefix)
		if ok && nameRule.MatchString(name) && e.Type().IsRegular() {
			names = append(names, name)
		}
	}
	return names, nil
}

func pathOf(dir, name string) string { return filepath.Join(dir, protocol.FilePrefix+name) }

// Find gives the Config of a plugin in a directory: name, path and checksum. The caller fills in the rest. With unlocked a plugin that
// plugins.lock does not name is allowed; one that it names must match in any case.
func Find(dir, name string, unlocked bool) (Config, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Config{}, err
	}
	cfg := Config{Name: name, Path: pathOf(dir, name), Unlocked: unlocked}
	if !nameRule.MatchString(name) {
		return cfg, cfg.check()
	}
	lock, err := ReadLock(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		lock = &Lock{}
	case err != nil:
		return cfg, &Error{Kind: ErrConfig, Plugin: name, Path: cfg.Path, Cause: err}
	}
	p, ok := lock.Find(name)
	if !ok {
		return cfg, cfg.check()
	}
	if cfg.SHA256, ok = p.SHA256[Platform()]; !ok {
		return cfg, notForHere(p, cfg.Path)
	}
	if p.Protocol != protocol.Version {
		return cfg, &Error{
			Kind: ErrProtocol, Plugin: name, Path: cfg.Path, Detail: fmt.Sprintf("plugins.lock says sink protocol %d, this host speaks %d", p.Protocol, protocol.Version),
			Hint: "install a version of the plugin for this Signet",
		}
	}
	return cfg, cfg.check()
}

// description is what WriteLock needs of `<plugin> describe`.
type description struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
}

// errMisnamed: no host starts such a plugin.
var errMisnamed = errors.New("its name is not that of its file")

const (
	describeWithin = 10 * time.Second
	maxDescription = 1 << 20
)

// capped keeps a plugin from filling the memory with its description.
type capped struct {
	buf  bytes.Buffer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		return 0, errors.New("the description is larger than a megabyte")
	}
	return c.buf.Write(p)
}

// askDescription runs `<plugin> describe` as isolated as the plugin itself would run, on the copy that was hashed.
func askDescription(path, name, sum string) (d description, err error) {
	cfg := Config{Name: name, Path: path, SHA256: sum}
	if err := cfg.complete(); err != nil {
		return d, err
	}
	run, err := newRunDir(cfg.Dir)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, run.remove()) }()
	img, err := load(&cfg, run)
	if err != nil {
		return d, err
	}
	defer img.close()
	ctx, cancel := context.WithTimeout(context.Background(), describeWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, img.path)
	cmd.Args, cmd.Env, cmd.Dir = []string{path, "describe"}, environment(&cfg, run.tmp()), run.Path
	cmd.SysProcAttr, cmd.WaitDelay = attributes(cfg.Isolation), time.Second
	out := &capped{left: maxDescription}
	cmd.Stdout = out
	err = onOwnThread(func() error {
		if err := confine(&cfg, run); err != nil {
			return err
		}
		return cmd.Run()
	})
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(out.buf.Bytes(), &d); err != nil {
		return d, err
	}
	if d.Name != name {
		return d, &Error{
			Kind: errMisnamed, Plugin: name, Path: path, Detail: fmt.Sprintf("it calls itself %q", d.Name),
			Hint: fmt.Sprintf("rename the file to %s%s, or have the sink's Describe say %q", protocol.FilePrefix, d.Name, name),
		}
	}
	return d, nil
}
