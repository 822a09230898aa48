package log

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// parseParquet reads the actions of a checkpoint in Parquet, in the order of its rows. It reads columns as they are, rather than through Arrow: pqarrow decodes in goroutines,
// where nobody could recover.
func parseParquet(ctx context.Context, in readerAtSeeker, size int64) (out []Action, err error) {
	// arrow-go panics on some files that are not what they say, and the allocator on those that want more memory than a file of their size may need.
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("it is not what it says: %v", r)
		}
	}()
	props := parquet.NewReaderProperties(&boundedAllocator{left: 256<<20 + 64*size})
	f, err := file.NewParquetReader(in, file.WithReadProps(props))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	columns := map[string]int{}
	schema := f.MetaData().Schema
	var statistics []int
	for i := range schema.NumColumns() {
		p := schema.Column(i).ColumnPath()
		switch {
		case len(p) > 2 && p[0] == "add" && p[1] == "stats_parsed":
			statistics = append(statistics, i)
		case len(p) <= 5:
			columns[columnName(p)] = i
		}
	}
	for n := range f.NumRowGroups() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := &rowGroup{in: f.RowGroup(n), columns: columns, texts: map[string]string{}}
		if out, err = g.read(out, statistics); err != nil {
			return nil, fmt.Errorf("row group %d: %w", n, err)
		}
	}
	return out, nil
}

// columnName is what a column is asked for by. The groups inside maps and lists have several names among writers, so that they are left out: add.tags.key, protocol.readerFeatures[].
func columnName(p parquet.ColumnPath) string {
	last := len(p) - 1
	switch {
	case last >= 2 && (p[0] == "protocol" || p[1] == "partitionColumns"):
		return p[0] + "." + p[1] + "[]" // whatever it is called: a feature must not be overlooked
	case last >= 3 && (p[last] == "key" || p[last] == "value"):
		return strings.Join(p[:last-1], ".") + "." + p[last]
	case last >= 2 && p[0] == "add" && p[1] == "deletionVector", last >= 2 && p[0] == "remove" && p[1] == "deletionVector", last >= 2 && p[1] == "format":
		return strings.Join(p, ".")
	case last >= 2:
		return p[0] + "." + p[1] + "[]"
	}
	return strings.Join(p, ".")
}

type rowGroup struct {
	in      *file.RowGroupReader
	columns map[string]int
	texts   map[string]string // names and values that occur again and again share their bytes
	actions []Action          // by row
}

func (g *rowGroup) read(out []Action, statistics []int) ([]Action, error) {
	steps := []func() error{g.adds, g.removes, g.protocol, g.metadata, g.txns, g.domains, g.sidecars, g.versions}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := g.parsedStats(statistics); err != nil {
		return nil, err
	}
	for i := range g.actions {
		a := &g.actions[i]
		if *a == (Action{}) {
			continue
		}
		if a.Add != nil && a.Add.Size < 0 {
			return nil, fmt.Errorf("%.200q has a negative size", a.Add.Path)
		}
		out = append(out, *a)
	}
	return out, nil
}

// each visits the values of a column, if the file has it, with the action of their row.
func (g *rowGroup) each(name string, visit func(a *Action, c *cell) error) error {
	column, ok := g.columns[name]
	if !ok {
		return nil
	}
	rows := 0
	err := eachCell(g.in, column, func(c *cell) error {
		if rows = c.row + 1; rows > len(g.actions) {
			g.actions = append(g.actions, Action{})
		}
		if c.null {
			return nil
		}
		return visit(&g.actions[c.row], c)
	})
	if err == nil && int64(rows) != g.in.NumRows() {
		err = fmt.Errorf("%d rows of %d", rows, g.in.NumRows())
	}
	if err != nil {
		return fmt.Errorf("column %s: %w", name, err)
	}
	return nil
}

func (g *rowGroup) intern(b []byte) string {
	if s, ok := g.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	g.texts[s] = s
	return s
}

// field visits a column with the part of an action that it belongs to; rows in which that is null are left out.
func field[T any](g *rowGroup, name string, of func(*Action) *T, visit func(v *T, c *cell)) func() error {
	return func() error {
		return g.each(name, func(a *Action, c *cell) error {
			if v := of(a); v != nil {
				visit(v, c)
			}
			return nil
		})
	}
}

func run(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func text(c *cell) string { return string(c.bytes) }

func textPtr(c *cell) *string {
	s := text(c)
	return &s
}

func numberPtr(c *cell) *int64 {
	n := c.number
	return &n
}

func boolPtr(c *cell) *bool {
	b := c.number != 0
	return &b
}

// texts reads a map of strings. Its keys and values are two columns with as many places.
func (g *rowGroup) textMap(name string, set func(a *Action, m map[string]*string)) func() error {
	return func() error {
		keys, ok := g.columns[name+".key"]
		values, okValues := g.columns[name+".value"]
		if !ok || !okValues {
			return nil
		}
		type place struct {
			key string
			row int
			in  bool
		}
		var places []place
		err := eachCell(g.in, keys, func(c *cell) error {
			places = append(places, place{g.intern(c.bytesOrNil()), c.row, !c.null})
			return nil
		})
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		at, row := 0, -1
		var m map[string]*string
		err = eachCell(g.in, values, func(c *cell) error {
			if at >= len(places) || places[at].row != c.row || c.row >= len(g.actions) {
				return errors.New("keys and values of a map disagree")
			}
			p := places[at]
			at++
			if !p.in {
				return nil
			}
			if p.row != row {
				row, m = p.row, map[string]*string{}
				set(&g.actions[row], m)
			}
			if m[p.key] = nil; !c.null {
				s := g.intern(c.bytes)
				m[p.key] = &s
			}
			return nil
		})
		if err == nil && at != len(places) {
			err = errors.New("keys and values of a map disagree")
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		return nil
	}
}

func (c *cell) bytesOrNil() []byte {
	if c.null {
		return nil
	}
	return c.bytes
}

// textList reads a list of strings. An empty one is told from none by whoever asks: Parquet's levels would say it, and no feature hangs on it.
func (g *rowGroup) textList(name string, set func(a *Action, s string)) func() error {
	return func() error {
		return g.each(name+"[]", func(a *Action, c *cell) error {
			set(a, text(c))
			return nil
		})
	}
}

// boundedAllocator gives out no more than left bytes at a time.
type boundedAllocator struct{ left int64 }

func (b *boundedAllocator) Allocate(size int) []byte {
	if b.left -= int64(size); b.left < 0 {
		panic("it wants more memory than a file of its size may need")
	}
	return memory.DefaultAllocator.Allocate(size)
}

func (b *boundedAllocator) Reallocate(size int, old []byte) []byte {
	if b.left -= int64(size - len(old)); b.left < 0 {
		panic("it wants more memory than a file of its size may need")
	}
	return memory.DefaultAllocator.Reallocate(size, old)
}

func (b *boundedAllocator) Free(old []byte) {
	b.left += int64(len(old))
	memory.DefaultAllocator.Free(old)
}
