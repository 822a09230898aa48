package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// Remote is a place in an object store, or on a web server, that statements may read.
type Remote struct {
	// Prefix is s3://bucket/prefix, or http(s)://host/path. It covers what is below it, segment by segment.
	Prefix string
	// Open makes a client of a bucket. Web servers have none.
	Open func(bucket string) (objects.Client, error)
}

// remote is a Remote whose prefix is taken apart.
type remote struct {
	Remote
	spot
}

// remotes are the configured ones, and the places among them that hold restricted tables.
type remotes struct {
	roots  []remote
	tables []spot
	web    *objects.Web

	mu      sync.Mutex
	clients map[clientName]objects.Client
}

type clientName struct{ root, bucket string }

func newRemotes(list []Remote, tables []string) (*remotes, error) {
	out := &remotes{clients: map[clientName]objects.Client{}}
	for _, r := range list {
		at, err := parsePlace(r.Prefix)
		if err != nil {
			return nil, fmt.Errorf("sources.remote: %w", err)
		}
		if at.scheme == uri.S3 {
			if r.Open == nil {
				return nil, fmt.Errorf("sources.remote: %s: nothing opens it", r.Prefix)
			}
			if _, err := r.Open("a-bucket"); err != nil { // told now, not by the first statement
				return nil, fmt.Errorf("sources.remote: %s: %w", r.Prefix, err)
			}
		}
		out.roots = append(out.roots, remote{r, at})
	}
	for _, t := range tables {
		at, err := parsePlace(t)
		if err != nil {
			return nil, err
		}
		out.tables = append(out.tables, at)
	}
	out.web = objects.NewWeb(func(u *url.URL) error {
		at, err := parseWeb(u.String())
		if err != nil {
			return err
		}
		_, err = out.rootOf(at)
		return err
	})
	return out, nil
}

// isRemote tells names in object stores and on web servers from others.
func isRemote(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && slices.Contains([]string{"s3", "s3a", "s3n", "http", "https"}, strings.ToLower(scheme))
}

// rootOf is the prefix, the longest, that a file lies below.
func (r *remotes) rootOf(at spot) (*remote, error) {
	var best *remote
	for i := range r.roots {
		if c := &r.roots[i]; (c.holds(at) || mutant.On("sources/any-prefix")) && (best == nil || len(c.segments) > len(best.segments)) {
			best = c
		}
	}
	if best == nil {
		if len(r.roots) == 0 {
			return nil, fmt.Errorf("%w: sources.remote lists no place; the operator can list the prefix of this one", ErrDenied)
		}
		var known []string
		for _, c := range r.roots {
			known = append(known, c.Prefix)
		}
		return nil, fmt.Errorf("%w: it is below none of the prefixes of sources.remote (%s)", ErrDenied, strings.Join(known, ", "))
	}
	for _, t := range r.tables {
		if t.holds(at) {
			return nil, fmt.Errorf("%w: %s holds tables that not everybody may read; name the table instead", ErrDenied, t)
		}
	}
	return best, nil
}

// client reads a bucket as its root says.
func (r *remotes) client(root *remote, bucket string) (objects.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := clientName{root.Prefix, bucket}
	if c := r.clients[name]; c != nil {
		return c, nil
	}
	c, err := root.Open(bucket)
	if err == nil {
		r.clients[name] = c
	}
	return c, err
}

// resolveRemote pins the files that a name in a store or on a web server stands for.
func (r *Resolver) resolveRemote(ctx context.Context, name string, out map[string]*planv1.PinnedFile) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("%q: the name is not valid UTF-8: %w", name, ErrInvalid)
	}
	at, err := parseFile(name)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	root, err := r.remotes.rootOf(at) // before anything is looked at
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if at.scheme == uri.S3 {
		return r.resolveObjects(ctx, root, name, at, out)
	}
	return r.resolveWeb(ctx, name, at, out)
}

func (r *Resolver) resolveWeb(ctx context.Context, name string, at spot, out map[string]*planv1.PinnedFile) error {
	info, err := r.remotes.web.Head(ctx, at.url())
	switch {
	case errors.Is(err, objects.ErrNotFound) && hasMeta(name):
		return fmt.Errorf("%q: no such file: %w; a web server does not list its files, so that there are no patterns there: name each file, [\"…\", \"…\"]", name, ErrNotFound)
	case errors.Is(err, objects.ErrNotFound):
		return fmt.Errorf("%q: no such file: %w; the server answered that it has none", name, ErrNotFound)
	case err != nil:
		return fmt.Errorf("%q: cannot look at it: %w", name, err)
	}
	found, err := parseWeb(info.URL.String()) // as it was before it was asked for
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return r.pin(name, found.url().String(), info.Size, info.Version, out)
}

// pin adds one remote file.
func (r *Resolver) pin(shown, file string, size int64, version string, out map[string]*planv1.PinnedFile) error {
	switch {
	case !utf8.ValidString(file):
		return fmt.Errorf("%q: the name is not valid UTF-8; rename the file: %w", shown, ErrInvalid)
	case size == 0 && isParquetName(file):
		return emptyParquet(shown)
	case out[file] != nil:
		return nil
	case len(out) >= r.rules.max:
		return tooMany(shown, r.rules.max)
	}
	out[file] = &planv1.PinnedFile{Uri: file, SizeBytes: size, Etag: version, Name: shown}
	return nil
}

// Sign presigns the read of a remote source, which is looked up among the prefixes again. Of a web server it is the plain request.
func (r *Resolver) Sign(ctx context.Context, file string, s objects.Signing) (objects.Signed, error) {
	at, err := parseFile(file)
	if err != nil {
		return objects.Signed{}, err
	}
	root, err := r.remotes.rootOf(at)
	if err != nil {
		return objects.Signed{}, fmt.Errorf("%q: %w", file, err)
	}
	if at.scheme != uri.S3 {
		return objects.Signed{Method: s.Method, URL: at.url().String()}, nil
	}
	c, err := r.remotes.client(root, at.authority)
	if err != nil {
		return objects.Signed{}, err
	}
	s.Key = at.key()
	return c.Sign(ctx, s)
}

// Object is a remote source, which is looked up among the prefixes again, as the client of its store knows it. Files of web servers are none.
func (r *Resolver) Object(file string) (objects.Client, string, error) {
	at, err := parseFile(file)
	if err != nil {
		return nil, "", err
	}
	root, err := r.remotes.rootOf(at)
	if err != nil {
		return nil, "", fmt.Errorf("%q: %w", file, err)
	}
	if at.scheme != uri.S3 {
		return nil, "", fmt.Errorf("%q: %w: it is on a web server", file, objects.ErrElsewhere)
	}
	c, err := r.remotes.client(root, at.authority)
	return c, at.key(), err
}

// changedRemote says whether a pinned file is not what it was, by name. Other errors say that it could not be seen.
func (r *Resolver) changedRemote(ctx context.Context, f *planv1.PinnedFile) error {
	at, err := parseFile(f.GetUri())
	if err != nil {
		return err
	}
	root, err := r.remotes.rootOf(at)
	if err != nil {
		return fmt.Errorf("%q: %w", f.GetName(), err)
	}
	var size int64
	var version string
	if at.scheme == uri.S3 {
		var c objects.Client
		var info objects.Info
		if c, err = r.remotes.client(root, at.authority); err == nil {
			info, err = c.Head(ctx, at.key())
		}
		size, version = info.Size, info.ETag
	} else {
		var info objects.WebInfo
		info, err = r.remotes.web.Head(ctx, at.url())
		size, version = info.Size, info.Version
	}
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return fmt.Errorf("%q: %w: it is gone", f.GetName(), ErrChanged)
	case err != nil:
		return fmt.Errorf("%q: %w", f.GetName(), err)
	case size != f.GetSizeBytes():
		return fmt.Errorf("%q: %w since the statement was planned: %d bytes then, %d now; run it again", f.GetName(), ErrChanged, f.GetSizeBytes(), size)
	case !objects.SameVersion(version, f.GetEtag()) && !mutant.On("sources/object-change-unnoticed"):
		return fmt.Errorf("%q: %w since the statement was planned: another object has its name now; run it again", f.GetName(), ErrChanged)
	}
	return nil
}

// sortKey orders files of all kinds.
func sortKey(f *planv1.PinnedFile) string { return cmp.Or(f.GetUri(), f.GetPath()) }
