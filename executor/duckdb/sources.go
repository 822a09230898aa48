package duckdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// boundSource is one source with its view.
type boundSource struct {
	src *planv1.Source
}

func (b *boundSource) files() []*planv1.PinnedFile {
	if t := b.src.GetTable(); t != nil {
		return t.GetFiles()
	}
	return b.src.GetFile().GetFiles()
}

func (b *boundSource) checkPins() error {
	var last string
	for _, f := range b.files() {
		if f.GetPath() == last { // several row ranges of one file
			continue
		}
		last = f.GetPath()
		check := checkPin
		if b.src.GetTable() != nil {
			check = checkTableFile
		}
		if err := check(f); err != nil {
			return err
		}
		if err := checkDeletes(f); err != nil {
			return err
		}
	}
	return nil
}

// display is the name that the user knows a source by.
func (b *boundSource) display() string {
	switch {
	case b.src.GetTable().GetTable() != "":
		return b.src.GetTable().GetTable()
	case b.src.GetAlias() != "":
		return b.src.GetAlias()
	case b.src.GetExchange() != nil:
		return fmt.Sprintf("output of stage %d", b.src.GetExchange().GetStage())
	case len(b.files()) > 0:
		return displayName(b.files()[0])
	default:
		return b.src.GetView()
	}
}

// ReadFiles lists all files that reading the sources opens, each once, for Access.ReadFiles: their own, and the delete files of tables.
func ReadFiles(sources []*planv1.Source) []string {
	out := FilesOf(sources)
	seen := map[string]bool{}
	for _, s := range sources {
		for _, f := range s.GetTable().GetFiles() {
			for _, d := range f.GetDeletes() {
				if p := d.GetPath(); p != "" && !seen[p] {
					seen[p] = true
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// FilesOf lists the files that hold the sources' rows, each once.
func FilesOf(sources []*planv1.Source) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range sources {
		for _, f := range (&boundSource{s}).files() {
			if p := f.GetPath(); !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// BindSources checks the pins of the sources and creates a temporary view for each, by the name that the query uses. The view has the bound column
// names and types, whatever the share of files in this source is.
func (i *Instance) BindSources(ctx context.Context, sources []*planv1.Source) error {
	for _, src := range sources {
		b := i.meet(src)
		if err := b.checkPins(); err != nil {
			return err
		}
		query, err := i.sourceQuery(ctx, src)
		if err != nil {
			return i.inSource(b, err)
		}
		if _, err := i.conn.ExecContext(ctx, "CREATE TEMP VIEW "+Ident(src.GetView())+" AS "+query); err != nil {
			return i.inSource(b, err)
		}
	}
	return nil
}

// Rebind lets the view of a bound source read a part of its rows. The pins of all of them are still checked.
func (i *Instance) Rebind(ctx context.Context, part *planv1.Source) error {
	query, err := i.sourceQuery(ctx, part)
	if err != nil {
		return i.inSource(&boundSource{part}, err)
	}
	if _, err := i.conn.ExecContext(ctx, "CREATE OR REPLACE TEMP VIEW "+Ident(part.GetView())+" AS "+query); err != nil {
		return i.inSource(&boundSource{part}, err)
	}
	return nil
}

// meet remembers a source, for CheckPins and for the names in messages.
func (i *Instance) meet(src *planv1.Source) *boundSource {
	for _, b := range i.sources {
		if b.src == src {
			return b
		}
	}
	b := &boundSource{src}
	i.sources = append(i.sources, b)
	return b
}

func (i *Instance) sourceQuery(ctx context.Context, src *planv1.Source) (string, error) {
	switch {
	case src.GetView() == "":
		return "", errors.New("source without a view name")
	case src.GetTable() != nil:
		return i.tableQuery(ctx, src.GetTable())
	case src.GetFile() != nil:
		return i.fileQuery(ctx, src.GetFile())
	case src.GetExchange() != nil:
		return i.exchangeQuery(ctx, src.GetExchange())
	default:
		return "", fmt.Errorf("source %s: neither files, a table nor an exchange", src.GetView())
	}
}

// inSource names the source in errors that do not name a file by themselves.
func (i *Instance) inSource(b *boundSource, err error) error {
	if de := (*duckdb.Error)(nil); errors.As(err, &de) {
		for _, f := range b.files() {
			if strings.Contains(de.Msg, f.GetPath()) {
				return err
			}
		}
		prefix, rest, ok := strings.Cut(de.Msg, ": ")
		if ok {
			return &duckdb.Error{Type: de.Type, Msg: prefix + ": source " + b.display() + ": " + rest}
		}
	}
	if ue := (*UserError)(nil); errors.As(err, &ue) {
		return err
	}
	return fmt.Errorf("source %s: %w", b.display(), err)
}

// PlanError is the package's PlanError with the user's names of tables and files in place of views and absolute paths.
func (i *Instance) PlanError(err error) *planv1.Error {
	out := PlanError(err)
	if out == nil {
		return nil
	}
	if gone := i.changedSource(out, err); gone != nil {
		return gone
	}
	i.blame(out)
	for _, s := range i.sources {
		names := s.userNames(out.GetMessage() + out.GetHint())
		out.Message, out.Hint = names.Replace(out.GetMessage()), names.Replace(out.GetHint())
	}
	return out
}

// changedSource is the reason of a failed read that a file which changed under it is: DuckDB says only what it could not do with it (S73).
func (i *Instance) changedSource(e *planv1.Error, err error) *planv1.Error {
	if de := (*duckdb.Error)(nil); !errors.As(err, &de) {
		return nil
	}
	switch e.GetClass() {
	case planv1.ErrorClass_ERROR_CLASS_KILLED, planv1.ErrorClass_ERROR_CLASS_RESOURCE:
		return nil
	}
	var ue *UserError
	if !errors.As(i.CheckPins(), &ue) {
		return nil
	}
	return PlanError(ue)
}

// damaged are what DuckDB says of footers that it cannot decode, without the file.
var damaged = []string{"TProtocolException", "don't know what type", "invalid TType", "Invalid unicode"}

// blame names the file where DuckDB's message does not: a footer that cannot be decoded gives "TProtocolException: Invalid data" and nothing else (X8).
func (i *Instance) blame(e *planv1.Error) {
	if !slices.ContainsFunc(damaged, func(s string) bool { return strings.Contains(e.GetMessage(), s) }) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, s := range i.sources {
		if parquet, _ := IsParquetReader(s.src.GetFile().GetFunction()); !parquet && s.src.GetTable() == nil {
			continue
		}
		for _, f := range s.files() {
			if strings.Contains(e.GetMessage(), f.GetPath()) {
				return
			}
			pattern, err := globEscape(f.GetPath())
			if err != nil {
				continue
			}
			if _, err := i.conn.ExecContext(ctx, "SELECT count(*) FROM parquet_schema("+Literal(pattern)+")"); err != nil && ctx.Err() == nil {
				e.Class = planv1.ErrorClass_ERROR_CLASS_USER
				e.Message = f.GetPath() + ": its Parquet footer cannot be read: " + e.GetMessage()
				e.Hint = "the file is damaged or was not written to its end; leave it out or write it again"
				return
			}
		}
	}
}

// userNames replaces what occurs in text.
func (b *boundSource) userNames(text string) *strings.Replacer {
	pairs := []string{b.src.GetView(), b.display()}
	for _, f := range b.files() {
		if !strings.Contains(text, f.GetPath()) && !strings.ContainsAny(f.GetPath(), "*?[") {
			continue
		}
		pairs = append(pairs, displayName(f), displayName(f)) // which may end with the path
		if pattern, err := globEscape(f.GetPath()); err == nil && pattern != f.GetPath() {
			pairs = append(pairs, pattern, displayName(f))
		}
		pairs = append(pairs, f.GetPath(), displayName(f))
	}
	return strings.NewReplacer(pairs...)
}
