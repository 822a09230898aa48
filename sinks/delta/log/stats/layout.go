package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// The table properties that say of which columns statistics are written, and how long strings in them are.
const (
	numIndexed   = "delta.dataSkippingNumIndexedCols"
	statsColumns = "delta.dataSkippingStatsColumns"
	prefixLength = "delta.dataSkippingStringPrefixLength"
)

const (
	defaultIndexed = 32 // leaves
	defaultPrefix  = 32 // characters
)

// ErrProperty is wrapped by errors of table properties that cannot be understood.
var ErrProperty = errors.New("table property")

// Layout says which columns the statistics of a table's files have. It is immutable and safe for concurrent use.
type Layout struct {
	leaves []schema.Leaf
	tree   []node
	prefix int
}

// node is a member of the nested objects.
type node struct {
	name string
	text []byte // the name as JSON, and a colon
	leaf int    // index into the leaves; -1: a struct
	sub  []node
}

// File is what statistics say of one file.
type File struct {
	Records int64    // rows, deleted ones included; -1: unknown
	Columns []Column // by the leaves of the layout
	Loose   bool     // the bounds may be wider than the rows that are left, since some are deleted
}

// Column is what statistics say of one column. The zero Column says that it has no NULLs and nothing of its values.
type Column struct {
	Nulls    int64       // -1: unknown
	Min, Max value.Value // of all values that are not NULL; NULL: unknown, or there are none
	NaNFree  bool        // it is known that no value of a float or double is NaN; without it their bounds are not written
}

// NewLayout gives the layout by which files of a table are written: the columns of delta.dataSkippingStatsColumns, else the first 32 leaves or as many as
// delta.dataSkippingNumIndexedCols says (-1: all), partition columns not counted; and the columns of always, by their paths, which clustering needs.
func NewLayout(s *schema.Schema, partitionColumns []string, configuration map[string]string, always ...[]string) (*Layout, error) {
	prefix, err := number(configuration, prefixLength, defaultPrefix)
	if err != nil {
		return nil, err
	}
	count, err := number(configuration, numIndexed, defaultIndexed)
	if err != nil {
		return nil, err
	}
	var named [][]string
	names, byName := configuration[statsColumns]
	if byName {
		if named, err = parseNames(names); err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrProperty, statsColumns, err)
		}
	}
	n := 0
	return build(s, partitionColumns, prefix, func(l schema.Leaf) bool {
		n++
		if byName {
			return covered(l.Path, named) || covered(l.Path, always)
		}
		return count < 0 || n <= count || covered(l.Path, always)
	}), nil
}

// All is the layout by which statistics of whatever writer are read: it has every column.
func All(s *schema.Schema, partitionColumns []string) *Layout {
	return build(s, partitionColumns, defaultPrefix, func(schema.Leaf) bool { return true })
}

// Some is All with no more than those columns, by their paths, which is faster for readers that compare few.
func Some(s *schema.Schema, partitionColumns []string, paths [][]string) *Layout {
	return build(s, partitionColumns, defaultPrefix, func(l schema.Leaf) bool {
		return slices.ContainsFunc(paths, func(p []string) bool { return slices.Equal(p, l.Path) })
	})
}

func build(s *schema.Schema, partitionColumns []string, prefix int, has func(schema.Leaf) bool) *Layout {
	l := &Layout{prefix: prefix}
	for _, leaf := range s.Leaves() {
		if len(leaf.Path) == 1 && slices.Contains(partitionColumns, leaf.Path[0]) || !has(leaf) {
			continue
		}
		l.leaves = append(l.leaves, leaf)
		at := &l.tree
		for i, name := range leaf.Path {
			// Leaves come depth first, so that a struct is the last of its siblings while its members come.
			if last := len(*at) - 1; i < len(leaf.Path)-1 && last >= 0 && (*at)[last].name == name && (*at)[last].leaf < 0 {
				at = &(*at)[last].sub
				continue
			}
			n := node{name: name, text: append(appendString(nil, name), ':'), leaf: -1}
			if i == len(leaf.Path)-1 {
				n.leaf = len(l.leaves) - 1
			}
			*at = append(*at, n)
			at = &(*at)[len(*at)-1].sub
		}
	}
	return l
}

// Leaves are the columns of the layout, in the order of File.Columns. It must not be changed.
func (l *Layout) Leaves() []schema.Leaf { return l.leaves }

func number(configuration map[string]string, key string, absent int) (int, error) {
	text, ok := configuration[key]
	if !ok {
		return absent, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < -1 {
		return 0, fmt.Errorf("%w %s is %q, which is no number from -1", ErrProperty, key, text)
	}
	return n, nil
}

// covered reports whether a path is one of the list, or lies within one.
func covered(path []string, list [][]string) bool {
	return slices.ContainsFunc(list, func(of []string) bool {
		return len(of) <= len(path) && slices.EqualFunc(of, path[:len(of)], strings.EqualFold)
	})
}

// parseNames reads a list of columns as SQL has it: a, b.c, `d,e`.f.
func parseNames(text string) ([][]string, error) {
	var out [][]string
	var path []string
	for rest := strings.TrimSpace(text); ; {
		var name string
		if quoted, ok := strings.CutPrefix(rest, "`"); ok {
			var part strings.Builder
			for {
				before, after, closed := strings.Cut(quoted, "`")
				if !closed {
					return nil, fmt.Errorf("a backquote is not closed in %.200q", text)
				}
				part.WriteString(before)
				if quoted, ok = strings.CutPrefix(after, "`"); !ok {
					name, rest = part.String(), strings.TrimSpace(after)
					break
				}
				part.WriteByte('`')
			}
		} else {
			end := strings.IndexAny(rest, ".,`")
			if end < 0 {
				end = len(rest)
			}
			name, rest = strings.TrimSpace(rest[:end]), rest[end:]
		}
		if name == "" {
			if text == "" {
				return nil, nil
			}
			return nil, fmt.Errorf("a name is missing in %.200q", text)
		}
		path = append(path, name)
		if rest == "" {
			return append(out, path), nil
		}
		switch rest[0] {
		case '.':
		case ',':
			out, path = append(out, path), nil
		default:
			return nil, fmt.Errorf("%.200q is not a list of columns", text)
		}
		rest = strings.TrimSpace(rest[1:])
	}
}

// Clustering are the columns of a table's domain delta.clustering, by their paths: each file needs their statistics.
func Clustering(configuration string) ([][]string, error) {
	var c struct {
		ClusteringColumns [][]string `json:"clusteringColumns"`
	}
	if err := json.Unmarshal([]byte(configuration), &c); err != nil {
		return nil, fmt.Errorf("domain delta.clustering: %w", err)
	}
	return c.ClusteringColumns, nil
}
