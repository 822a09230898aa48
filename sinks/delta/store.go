package delta

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
)

// store is a log.Store over the host: the objects below one table's location.
type store struct {
	host     *sdk.Host
	location string
}

var _ log.Store = (*store)(nil)

func (s *store) uri(name string) string { return s.location + "/" + name }

// named refuses what is no name of an object below the table.
func named(name string) error {
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("%q is no name of an object", name)
	}
	return nil
}

// storeError gives the errors that log.Store promises, and keeps the host's.
func storeError(ctx context.Context, what, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: %w: %w", what, name, ctx.Err(), err)
	case errors.Is(err, sdk.ErrNotFound):
		return fmt.Errorf("%s %s: %w: %w", what, name, fs.ErrNotExist, err)
	case errors.Is(err, sdk.ErrExists), errors.Is(err, sdk.ErrConflict):
		return fmt.Errorf("%s %s: %w: %w", what, name, fs.ErrExist, err)
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}

// Get implements log.Store.
func (s *store) Get(ctx context.Context, name string) ([]byte, error) {
	if err := named(name); err != nil {
		return nil, err
	}
	b, err := s.host.Get(ctx, s.uri(name))
	return b, storeError(ctx, "read", name, err)
}

// Open implements log.Store.
func (s *store) Open(ctx context.Context, name string) (log.Object, error) {
	if err := named(name); err != nil {
		return nil, err
	}
	o, err := s.host.Open(ctx, s.uri(name))
	if err != nil {
		return nil, storeError(ctx, "open", name, err)
	}
	return o, nil
}

// List implements log.Store.
func (s *store) List(ctx context.Context, dir, from string) ([]log.Info, error) {
	if err := named(dir); err != nil {
		return nil, err
	}
	all, err := s.host.List(ctx, s.uri(dir))
	if err != nil {
		return nil, storeError(ctx, "list", dir, err)
	}
	out := make([]log.Info, 0, len(all))
	for _, o := range all {
		name, ok := s.name(o)
		if rest, below := strings.CutPrefix(name, dir+"/"); ok && below && !strings.Contains(rest, "/") && name >= from {
			out = append(out, log.Info{Name: name, Size: o.GetSize(), Modified: time.UnixMilli(o.GetMtimeMillis())})
		}
	}
	slices.SortFunc(out, func(a, b log.Info) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// name of an object that the host has listed, as log.Store has it.
func (s *store) name(o *hostv1.ObjectInfo) (string, bool) {
	return strings.CutPrefix(o.GetUri(), s.location+"/")
}

// PutIfAbsent implements log.Store.
func (s *store) PutIfAbsent(ctx context.Context, name string, body io.Reader) error {
	if err := named(name); err != nil {
		return err
	}
	_, err := s.host.PutReader(ctx, s.uri(name), body)
	return storeError(ctx, "create", name, err)
}

// ReplaceHint implements log.Store.
func (s *store) ReplaceHint(ctx context.Context, old, body []byte) error {
	etag := ""
	head, err := s.host.Head(ctx, s.uri(log.Hint))
	switch {
	case errors.Is(err, sdk.ErrNotFound) && old == nil:
	case err != nil && !errors.Is(err, sdk.ErrNotFound):
		return storeError(ctx, "look at", log.Hint, err)
	case err != nil, old == nil:
		return fmt.Errorf("replace %s: %w", log.Hint, fs.ErrExist)
	default:
		etag = head.GetEtag()
		there, err := s.Get(ctx, log.Hint)
		if err != nil {
			return err
		}
		if !bytes.Equal(there, old) {
			return fmt.Errorf("replace %s: %w", log.Hint, fs.ErrExist)
		}
	}
	_, err = s.host.ReplaceIf(ctx, s.uri(log.Hint), etag, body)
	return storeError(ctx, "replace", log.Hint, err)
}

// tag tells the commit file of a version from any other that ever had its name.
func (s *store) tag(ctx context.Context, version int64) (string, error) {
	name := log.CommitName(version)
	head, err := s.host.Head(ctx, s.uri(name))
	if err != nil {
		return "", storeError(ctx, "look at", name, err)
	}
	return fmt.Sprintf("%d %d %s", head.GetSize(), head.GetMtimeMillis(), head.GetEtag()), nil
}
