package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

var (
	// ErrUnsupported is wrapped by errors of schemas that are right and use what this package does not know.
	ErrUnsupported = errors.New("unsupported")
	// ErrInvalid is wrapped by errors of schemas that are wrong.
	ErrInvalid = errors.New("invalid schema")
)

// Schema is the columns of a table in their order.
type Schema struct {
	Fields []Field
}

// Field is a column, or a member of a struct.
type Field struct {
	Name     string
	Type     Type
	Nullable bool
	Metadata json.RawMessage // an object; nil: {}
	Extra    json.RawMessage // the field's unknown members as an object; nil: none
}

const commentKey = "comment"

// Value is one value of the field's metadata; nil: there is none. What was read is sound, so that metadata that is none says nothing here.
func (f *Field) Value(key string) json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(f.Metadata, &m)
	return m[key]
}

// Comment is the field's comment; "": none.
func (f *Field) Comment() string {
	var s string
	_ = json.Unmarshal(f.Value(commentKey), &s)
	return s
}

// SetComment sets the comment, or takes it away if it is empty. The rest of the metadata stays as it is.
func (f *Field) SetComment(comment string) error {
	var value json.RawMessage
	if comment != "" {
		value = appendString(nil, comment)
	}
	out, err := setMember(f.Metadata, commentKey, value)
	if err != nil {
		return fmt.Errorf("%w: metadata of column %s: %w", ErrInvalid, f.Name, err)
	}
	f.Metadata = out
	return nil
}

// Type is the schema as a struct.
func (s *Schema) Type() Type { return Type{Kind: Struct, Fields: s.Fields} }

// Leaves are the columns with values, depth first.
func (s *Schema) Leaves() []Leaf {
	var out []Leaf
	var add func(path []string, fields []Field)
	add = func(path []string, fields []Field) {
		for _, f := range fields {
			p := append(path[:len(path):len(path)], f.Name)
			if f.Type.Kind == Struct {
				add(p, f.Type.Fields)
			} else {
				out = append(out, Leaf{Path: p, Type: f.Type})
			}
		}
	}
	add(nil, s.Fields)
	return out
}

// Field finds a column at the top by its name: the very name, else the one that differs from it in case only.
func (s *Schema) Field(name string) (*Field, bool) {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i], true
		}
	}
	for i := range s.Fields {
		if strings.EqualFold(s.Fields[i].Name, name) {
			return &s.Fields[i], true
		}
	}
	return nil, false
}

// Partition are the types of partition columns, in the order given. A column that is not there, or cannot be one to partition by, is an error.
func (s *Schema) Partition(columns []string) ([]Type, error) {
	out := make([]Type, len(columns))
	for i, name := range columns {
		f, ok := s.Field(name)
		switch {
		case !ok || f.Name != name:
			return nil, fmt.Errorf("%w: partition column %q is not a column of the schema", ErrInvalid, name)
		case !f.Type.Primitive():
			return nil, fmt.Errorf("%w: partition column %q is of type %s; tables are partitioned by plain values", ErrInvalid, name, f.Type)
		case slices.Contains(columns[:i], name):
			return nil, fmt.Errorf("%w: partition column %q is there twice", ErrInvalid, name)
		}
		out[i] = f.Type
	}
	if len(columns) > 0 && len(columns) == len(s.Fields) {
		return nil, fmt.Errorf("%w: all %d columns are partition columns; data files need one that is not", ErrInvalid, len(columns))
	}
	return out, nil
}

// Has reports whether a kind occurs at any depth.
func (s *Schema) Has(kind Kind) bool {
	found := false
	t := s.Type()
	t.walk(nil, nil, func(_ []string, u *Type, _ *Field) { found = found || u.Kind == kind })
	return found
}

// Features are the names of the table features without which a table must not have this schema, sorted: timestampNtz, and invariants for columns that are NOT NULL, which
// Spark counts among them.
func (s *Schema) Features() []string {
	var out []string
	t := s.Type()
	t.walk(nil, nil, func(_ []string, _ *Type, f *Field) {
		if f != nil && !f.Nullable && len(out) == 0 {
			out = append(out, "invariants")
		}
	})
	if s.Has(TimestampNTZ) {
		out = append(out, "timestampNtz")
	}
	return out
}

// Refused are the characters that Delta refuses in names of columns unless the table maps columns.
const Refused = " ,;{}()\n\t="

// CheckNames refuses names that a table without column mapping cannot have: empty ones, those with characters of Refused, and those that differ from a
// neighbour in case only. They are refused at every depth.
func (s *Schema) CheckNames() error {
	if len(s.Fields) == 0 {
		return fmt.Errorf("%w: a table needs a column", ErrInvalid)
	}
	var errs []error
	t := s.Type()
	t.walk(nil, nil, func(path []string, u *Type, _ *Field) {
		seen := map[string]string{}
		for _, f := range u.Fields {
			where := PathString(append(path[:len(path):len(path)], f.Name))
			key := foldName(f.Name)
			if i := strings.IndexAny(f.Name, Refused); i >= 0 {
				errs = append(errs, fmt.Errorf("%w: column %s: Delta refuses %q in names unless the table has column mapping; give the column another name", ErrInvalid, where, f.Name[i]))
			}
			if f.Name == "" {
				errs = append(errs, fmt.Errorf("%w: column %s has an empty name", ErrInvalid, where))
			}
			if other, ok := seen[key]; ok {
				errs = append(errs, fmt.Errorf("%w: columns %q and %q of %s differ in case only; Delta tells names apart regardless of case", ErrInvalid, other, f.Name, orTable(path)))
			}
			seen[key] = f.Name
		}
		if u.Kind == Struct && len(u.Fields) == 0 {
			errs = append(errs, fmt.Errorf("%w: column %s is a struct without fields, which Parquet cannot hold", ErrInvalid, PathString(path)))
		}
	})
	return errors.Join(errs...)
}

func orTable(path []string) string {
	if len(path) == 0 {
		return "the table"
	}
	return PathString(path)
}

// foldName gives the same for names that differ in case only, as strings.EqualFold does.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}
