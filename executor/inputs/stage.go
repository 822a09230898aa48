package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// filesAtATime bounds the files that one task fetches side by side.
const filesAtATime = 8

// Access gets reads of the task's files signed. What it gets are credentials.
type Access interface {
	Reads(ctx context.Context, uris []string) ([]*executorv1.SignedRequest, error)
}

// Error says that the files are not what was planned; another try would find the same.
type Error struct{ Message, Hint string }

func (e *Error) Error() string { return e.Message }

const (
	againHint   = "run the statement again; it will read the files as they are then"
	missingHint = "run the statement again, in case the table has been written anew meanwhile; otherwise the table is damaged: restore the file, or read another version of it"
)

// file is one object as it was planned for.
type file struct {
	uri, etag string
	size      int64
	name      string // for messages
	table     bool   // no writer changes it
	parquet   bool   // it is read as a Parquet file
	deletes   bool   // it holds deletes
	deleted   bool   // rows of it are deleted
	once      string // set where its version cannot be told: what is fetched is for nobody else
	footer    bool   // of a Parquet file is wanted, and not more
}

// Need is what of the files is wanted.
type Need int

const (
	All     Need = iota // the files, and what says which of their rows are deleted
	Schemas             // what binds a query over them, for which no row is read
	footers             // what says which row groups of large files can be copied, and all of the others
)

// Any tells whether some file of the sources is in an object store.
func Any(sources []*planv1.Source) bool {
	found := false
	each(sources, func(*file, func(string)) { found = true })
	return found
}

// each calls f for every remote file of the sources, with what sets its local path.
func each(sources []*planv1.Source, f func(file *file, at func(path string))) {
	for _, src := range sources {
		table := src.GetTable() != nil
		parquet := table || parquetReader(src.GetFile().GetFunction())
		files := src.GetFile().GetFiles()
		if table {
			files = src.GetTable().GetFiles()
		}
		for _, p := range files {
			name := p.GetName()
			if name == "" {
				name = p.GetUri()
			}
			if p.GetUri() != "" {
				f(&file{uri: p.GetUri(), etag: p.GetEtag(), size: p.GetSizeBytes(), name: name, table: table, parquet: parquet, deleted: len(p.GetDeletes()) > 0}, func(path string) { p.Path = path })
			}
			for _, d := range p.GetDeletes() {
				if d.GetUri() != "" {
					f(&file{uri: d.GetUri(), etag: d.GetEtag(), size: d.GetSizeBytes(), name: name, table: table, deletes: true}, func(path string) { d.Path = path })
				}
			}
		}
	}
}

// Stage fetches the remote files of the sources, names them below dir, and answers copies of the sources that say where they are. What is not needed is left where it is.
func (c *Cache) Stage(ctx context.Context, access Access, sources []*planv1.Source, dir string, need Need) ([]*planv1.Source, error) {
	out, wanted, err := named(sources, dir, need)
	if err != nil {
		return nil, err
	}
	return out, c.fetchAll(ctx, newSigner(access, wanted), wanted)
}

// named are copies of the sources that say where their files will be, and the files by where that is.
func named(sources []*planv1.Source, dir string, need Need) ([]*planv1.Source, map[string]*file, error) {
	out := make([]*planv1.Source, len(sources))
	for n, src := range sources {
		out[n] = proto.CloneOf(src)
	}
	wanted := map[string]*file{} // by local path
	unpinned := uuid.NewString()
	var err error
	each(out, func(f *file, at func(string)) {
		if f.deletes && need == Schemas {
			return
		}
		path, perr := pathOf(dir, f)
		if perr != nil && err == nil {
			err = perr
		}
		at(path)
		f.footer = f.parquet && (need == Schemas && f.size >= wholeBelow || need == footers && f.size >= leastLeft && !f.deleted)
		if f.etag == "" && !f.table { // what was fetched before may be another version
			f.once = unpinned
		}
		if before := wanted[path]; before != nil && (before.etag != f.etag || before.size != f.size) && err == nil {
			err = fmt.Errorf("%s is wanted in two versions", f.name)
		}
		wanted[path] = f
	})
	return out, wanted, err
}

func newSigner(access Access, wanted map[string]*file) *signer {
	reads := &signer{access: access, next: make([]string, 0, len(wanted)), have: map[string]*executorv1.SignedRequest{}}
	for _, f := range wanted {
		reads.next = append(reads.next, f.uri)
	}
	return reads
}

func (c *Cache) fetchAll(ctx context.Context, reads *signer, wanted map[string]*file) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtATime)
	for path, f := range wanted {
		group.Go(func() error { return c.place(ctx, reads, f, path) })
	}
	return group.Wait()
}

// pathOf is where a file is named below dir.
func pathOf(dir string, f *file) (string, error) {
	if f.table {
		return Path(dir, f.uri)
	}
	return SourcePath(dir, f.uri)
}

// parquetReader: as duckdb.IsParquetReader, which the package of a cache need not know.
func parquetReader(function string) bool {
	function = strings.ToLower(function)
	return function == "read_parquet" || function == "parquet_scan"
}

// SourcePath is where a source of an object store or a web server is named below dir: by its scheme, host or bucket, and key. A part of the key that no local file can be
// called gets another name; then a number that no other key has stands in front.
func SourcePath(dir, uri string) (string, error) {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || !strings.Contains(rest, "/") || strings.ContainsRune(rest, 0) {
		return "", fmt.Errorf("%q is no URI of an object", uri)
	}
	segments, odd := strings.Split(rest, "/"), false
	for n, s := range segments {
		switch {
		case s == "" || s == "." || s == "..":
			segments[n], odd = "_"+s, true
		case len(s) > maxName:
			sum := sha256.Sum256([]byte(s))
			segments[n], odd = hex.EncodeToString(sum[:])+filepath.Ext(s)[:min(len(filepath.Ext(s)), len(".parquet"))], true
		}
	}
	if odd {
		sum := sha256.Sum256([]byte(uri))
		scheme += "-" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(dir, scheme, strings.Join(segments, "/")), nil
}

// maxName is how long a name of a local file can be, in bytes.
const maxName = 255

// Path is where the object of a URI is named below dir: by its bucket and key, so that what names and directories say is kept.
func Path(dir, uri string) (string, error) {
	_, rest, ok := strings.Cut(uri, "://")
	for s := range strings.SplitSeq(rest, "/") {
		if s == "" || s == "." || s == ".." || len(s) > maxName || strings.ContainsRune(s, 0) {
			return "", &Error{
				Message: fmt.Sprintf("%s: part %q of its name cannot be the name of a local file or directory", uri, bounded(s)),
				Hint:    "copy the object to a key whose parts between slashes are neither empty, . nor .., and at most 255 bytes long",
			}
		}
	}
	if !ok || !strings.Contains(rest, "/") {
		return "", fmt.Errorf("%q is no URI of an object", uri)
	}
	return filepath.Join(dir, rest), nil
}

func bounded(s string) string {
	const long = 100
	if len(s) > long {
		return strings.ToValidUTF8(s[:long], "") + "…"
	}
	return s
}

// link names a cached file. One that is named already is of the same task.
func link(cached, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Link(cached, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
