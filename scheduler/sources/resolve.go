package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/pin"
)

// Resolver resolves names under one set of rules. It is safe for concurrent use.
type Resolver struct {
	rules   rules
	remotes *remotes
}

// New checks and resolves the rules.
func New(r Rules) (*Resolver, error) {
	compiled, err := compile(r)
	if err != nil {
		return nil, err
	}
	remotes, err := newRemotes(r.Remote, r.RemoteTables)
	if err != nil {
		return nil, err
	}
	return &Resolver{rules: compiled, remotes: remotes}, nil
}

// Resolve pins the files that the names and patterns stand for: local ones, and those below the prefixes in object stores and on web servers. Relative names are relative to baseDir, which must be absolute if
// there are any. A name that exists is taken as it is; others are patterns in DuckDB's syntax: * ? [a-z] [!a] and **.
// Each of them must yield a file.
func (r *Resolver) Resolve(ctx context.Context, baseDir string, names []string) ([]*planv1.PinnedFile, error) {
	if err := fault.Hit("sources.resolve.before"); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("an empty list of files: %w", ErrNotFound)
	}
	byPath := map[string]*planv1.PinnedFile{}
	for _, name := range names {
		if err := r.resolve(ctx, baseDir, name, byPath); err != nil {
			return nil, err
		}
	}
	out := make([]*planv1.PinnedFile, 0, len(byPath))
	for _, f := range byPath {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *planv1.PinnedFile) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return out, nil
}

func (r *Resolver) resolve(ctx context.Context, baseDir, name string, out map[string]*planv1.PinnedFile) error {
	if isRemote(name) {
		return r.resolveRemote(ctx, name, out)
	}
	local, err := localName(name)
	if err != nil {
		return err
	}
	path, err := absolute(baseDir, local)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	// Before anything is looked at: whether there is a file where the rules deny the place is nobody's business.
	if err := r.permit(path, local); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	// Not cleaned: a/link/.. is the parent of what link leads to.
	_, err = os.Stat(path)
	switch {
	case err == nil:
		return r.add(name, path, out)
	case !isAbsent(err):
		return fmt.Errorf("%q: %w", name, plainError(err))
	case !hasMeta(local):
		return fmt.Errorf("%q: no such file: %w; for several files write a pattern, like %q", name, ErrNotFound,
			filepath.Join(filepath.Dir(name), "*"+filepath.Ext(name)))
	}
	return r.expand(ctx, baseDir, name, local, out)
}

func (r *Resolver) expand(ctx context.Context, baseDir, name, pattern string, out map[string]*planv1.PinnedFile) error {
	if err := checkPattern(pattern); err != nil {
		return fmt.Errorf("%q: no file has this name, and as a pattern it is broken: %w", name, ErrNotFound)
	}
	found := 0
	g := &globber{ctx: ctx, name: name, rules: &r.rules, emit: func(shown, path string) error {
		found++
		return r.add(shown, path, out)
	}}
	if err := g.run(baseDir, pattern); err != nil {
		return err
	}
	if found == 0 {
		return fmt.Errorf("%q: no file has this name, and none matches it as a pattern (* ? [ ] and ** stand for other characters): %w", name, ErrNotFound)
	}
	return nil
}

// permit checks the place of a name, and where a pattern begins: one that begins above the roots would have to look around there.
func (r *Resolver) permit(path, local string) error {
	if hasMeta(local) {
		if err := r.rules.check(realPath(fixedPrefix(path))); err != nil {
			return err
		}
	}
	return r.rules.check(realPath(path))
}

// add checks one file and pins it. shown is its name for messages: as written, or as the pattern found it.
func (r *Resolver) add(shown, path string, out map[string]*planv1.PinnedFile) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		if isAbsent(err) {
			return fmt.Errorf("%q: a symbolic link that leads to nothing: %w", shown, ErrNotFound)
		}
		return fmt.Errorf("%q: %w", shown, plainError(err))
	}
	if err := r.rules.check(real); err != nil {
		return fmt.Errorf("%q: %w", shown, err)
	}
	if !utf8.ValidString(real) || !utf8.ValidString(shown) {
		return fmt.Errorf("%q: the name is not valid UTF-8; rename the file: %w", shown, ErrInvalid)
	}
	fi, err := os.Lstat(real)
	if err != nil {
		return fmt.Errorf("%q: %w", shown, plainError(err))
	}
	if err := checkKind(shown, fi); err != nil {
		return err
	}
	if _, known := out[real]; !known && len(out) >= r.rules.max {
		return tooMany(shown, r.rules.max)
	} else if !known {
		out[real] = &planv1.PinnedFile{Path: real, SizeBytes: fi.Size(), MtimeNanos: fi.ModTime().UnixNano(), Name: shown}
		out[real].Inode, out[real].CtimeNanos = pin.Of(fi)
	}
	return nil
}

func tooMany(shown string, limit int) error {
	return fmt.Errorf("%q: more than %d files in one statement: %w; use a narrower pattern and several statements, or raise limits.max_source_files", shown, limit, ErrTooMany)
}

func checkKind(shown string, fi fs.FileInfo) error {
	switch {
	case fi.IsDir():
		return fmt.Errorf("%q: a directory: %w; write %q for its files, or %q for those below it too", shown, ErrInvalid,
			filepath.Join(shown, "*.parquet"), filepath.Join(shown, "**", "*.parquet"))
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%q: not a regular file: %w", shown, ErrInvalid)
	case fi.Size() == 0 && isParquetName(fi.Name()):
		return emptyParquet(shown)
	}
	return nil
}

func isParquetName(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".parquet", ".parq", ".pq":
		return true
	}
	return false
}

func emptyParquet(shown string) error {
	return fmt.Errorf("%q: 0 bytes, which is no Parquet file; whoever writes it may have failed or not finished: %w", shown, ErrInvalid)
}

// RefuseEmpty refuses files of 0 bytes, for those who read Parquet from names that do not say so.
func RefuseEmpty(files []*planv1.PinnedFile) error {
	for _, f := range files {
		if f.GetSizeBytes() == 0 {
			return emptyParquet(f.GetName())
		}
	}
	return nil
}

// localName strips file:// and refuses what is elsewhere. Nothing is decoded: %20 in a name is three characters.
func localName(name string) (string, error) {
	switch scheme, rest, ok := strings.Cut(name, "://"); {
	case name == "":
		return "", fmt.Errorf("an empty file name: %w", ErrNotFound)
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%q: a NUL character in a file name: %w", name, ErrNotFound)
	case ok && strings.EqualFold(scheme, "file"):
		host, path, _ := strings.Cut(rest, "/")
		if host != "" && host != "localhost" {
			return "", fmt.Errorf("%q: a file on the host %q: %w; write file:///path", name, host, ErrUnsupported)
		}
		return "/" + path, nil
	case ok && isScheme(scheme):
		return "", fmt.Errorf("%q: %s:// is not supported so far: %w; sources are local files (a path, a pattern, or file:///path), s3:// and https://", name, scheme, ErrUnsupported)
	}
	return name, nil
}

func isScheme(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '+' && r != '-' && r != '.'
	})
}

func absolute(baseDir, name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return name, nil
	}
	if !filepath.IsAbs(baseDir) {
		return "", fmt.Errorf("a relative name, and there is no directory that it is relative to; write an absolute path: %w", ErrNotFound)
	}
	return strings.TrimRight(baseDir, "/") + "/" + name, nil
}

// plainError drops the path of a file error: the message has the name already.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	}
	return err
}

// Changed says whether a pinned file is not what it was, by name: ErrChanged. Of a remote one it may not be possible to tell.
func (r *Resolver) Changed(ctx context.Context, f *planv1.PinnedFile) error {
	if f.GetUri() != "" {
		return r.changedRemote(ctx, f)
	}
	fi, err := os.Lstat(f.GetPath())
	switch {
	case err != nil && isAbsent(err):
		return fmt.Errorf("%q: %w: it is gone", f.GetName(), ErrChanged)
	case err != nil:
		return fmt.Errorf("%q: %w: %w", f.GetName(), ErrChanged, plainError(err))
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%q: %w: it is no regular file any more", f.GetName(), ErrChanged)
	case fi.Size() != f.GetSizeBytes():
		return fmt.Errorf("%q: %w since the statement was planned: %d bytes then, %d now; run it again", f.GetName(), ErrChanged, f.GetSizeBytes(), fi.Size())
	case fi.ModTime().UnixNano() != f.GetMtimeNanos() && !mutant.On("sources/change-unnoticed"):
		return fmt.Errorf("%q: %w since the statement was planned: it was written again at %s; run it again", f.GetName(), ErrChanged,
			fi.ModTime().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return nil
}
