package partition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// ErrValue is wrapped by errors of values that have no text, and of texts that are no values of their type.
var ErrValue = errors.New("partition value")

// Layouts of timestamps in partition values.
const (
	timestampLayout    = "2006-01-02T15:04:05.000000Z"
	timestampNTZLayout = "2006-01-02 15:04:05.000000"
)

// Serialize gives the text of a value for partitionValues, unescaped. NULL, the empty string and empty bytes have none: they are all JSON null.
// A value that is none of the type, bytes that are not UTF-8, and dates outside of the years 1 to 9999 are ErrValue.
func Serialize(t schema.Type, v value.Value) (*string, error) {
	if v.IsNull() {
		return nil, nil
	}
	if !t.Primitive() {
		return nil, fmt.Errorf("%w: a column of type %s cannot be one to partition by", ErrValue, t)
	}
	if err := value.Check(t, v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrValue, err)
	}
	var s string
	switch t.Kind {
	case schema.Boolean:
		s = strconv.FormatBool(v.Bool())
	case schema.Byte, schema.Short, schema.Integer, schema.Long:
		s = strconv.FormatInt(v.Int(), 10)
	case schema.Float:
		s = value.FormatFloat(v.Float(), 32)
	case schema.Double:
		s = value.FormatFloat(v.Float(), 64)
	case schema.Decimal:
		s = v.String()
	case schema.Date:
		s = string(value.AppendDate(nil, v.Int()))
	case schema.Timestamp:
		s = string(value.AppendTime(nil, v.Int(), timestampLayout))
	case schema.TimestampNTZ:
		s = string(value.AppendTime(nil, v.Int(), timestampNTZLayout))
	case schema.Binary:
		if !utf8.ValidString(v.Text()) {
			return nil, fmt.Errorf("%w: bytes that are not UTF-8 cannot be written to the log (%d bytes); partition by another column", ErrValue, len(v.Text()))
		}
		fallthrough
	case schema.String:
		if s = v.Text(); s == "" {
			return nil, nil
		}
	}
	return &s, nil
}

// Parse reads the text of a value as any writer may have left it. No text and the empty text are NULL for every type. A timestamp without Z or offset is taken
// for UTC; the protocol says that it is in the time zone of the machine that wrote it, which nobody knows.
func Parse(t schema.Type, text *string) (value.Value, error) {
	if text == nil || *text == "" {
		return value.Value{}, nil
	}
	v, err := parse(t, *text)
	if err == nil {
		err = value.Check(t, v)
	}
	if err != nil {
		return value.Value{}, fmt.Errorf("%w: %w", ErrValue, err)
	}
	return v, nil
}

func parse(t schema.Type, s string) (value.Value, error) {
	var v value.Value
	switch t.Kind {
	case schema.String:
		return value.OfString(s), nil
	case schema.Binary:
		if !utf8.ValidString(s) { // no JSON holds it
			return v, errors.New("it is not UTF-8")
		}
		return value.OfBinary([]byte(s)), nil
	case schema.Boolean:
		if strings.EqualFold(s, "true") || strings.EqualFold(s, "false") {
			return value.OfBool(len(s) == len("true")), nil
		}
		return v, fmt.Errorf("%.60q is neither true nor false", s)
	case schema.Byte, schema.Short, schema.Integer, schema.Long:
		i, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return v, fmt.Errorf("%.60q is not a whole number", s)
		}
		return value.OfInt(i), nil
	case schema.Float:
		f, err := value.ParseFloat(s, 32)
		return value.OfFloat32(float32(f)), err
	case schema.Double:
		f, err := value.ParseFloat(s, 64)
		return value.OfFloat64(f), err
	case schema.Decimal:
		unscaled, scale, err := value.ParseDecimal(s)
		if err != nil {
			return v, err
		}
		scaled, exact := value.Rescale(unscaled, scale, t.Scale, false)
		if !exact {
			return v, fmt.Errorf("%.60q has more digits behind the point than %s", s, t)
		}
		return value.OfDecimal(scaled, t.Scale), nil
	case schema.Date:
		day, err := value.ParseDate(s)
		return value.OfInt(day), err
	case schema.Timestamp, schema.TimestampNTZ:
		at, err := value.ParseTimestamp(s)
		if err == nil && at.Zoned && t.Kind == schema.TimestampNTZ && !strings.HasSuffix(s, "Z") {
			err = fmt.Errorf("%.60q has an offset, which a %s has not", s, t)
		}
		return value.OfInt(at.Micros), err
	}
	return v, fmt.Errorf("a column of type %s cannot be one to partition by", t)
}

// Columns are the partition columns of a table, in their order.
type Columns struct {
	Names []string
	Types []schema.Type
}

// Of gives a table's partition columns.
func Of(s *schema.Schema, names []string) (Columns, error) {
	types, err := s.Partition(names)
	return Columns{Names: names, Types: types}, err
}

// Serialize gives the partitionValues of a file, from one value per column.
func (c Columns) Serialize(values []value.Value) (map[string]*string, error) {
	if len(values) != len(c.Names) {
		return nil, fmt.Errorf("%w: there are %d for the %d partition columns %v", ErrValue, len(values), len(c.Names), c.Names)
	}
	out := make(map[string]*string, len(values))
	for i, v := range values {
		text, err := Serialize(c.Types[i], v)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Names[i], err)
		}
		out[c.Names[i]] = text
	}
	return out, nil
}

// Parse reads partitionValues: one value per column. Other columns than the table's, or fewer, are an error.
func (c Columns) Parse(texts map[string]*string) ([]value.Value, error) {
	out := make([]value.Value, len(c.Names))
	for i, name := range c.Names {
		text, ok := texts[name]
		if !ok {
			return nil, fmt.Errorf("%w: there is none for partition column %s", ErrValue, name)
		}
		v, err := Parse(c.Types[i], text)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		out[i] = v
	}
	if len(texts) != len(c.Names) {
		return nil, fmt.Errorf("%w: there are some for columns %v; the table is partitioned by %v", ErrValue, slices.Sorted(maps.Keys(texts)), c.Names)
	}
	return out, nil
}

// Key is the same for partitionValues that mean the same: 1.0 and 1.00 of a decimal, one instant with and without its zeros, null and the empty text.
func (c Columns) Key(texts map[string]*string) (string, error) {
	values, err := c.Parse(texts)
	if err != nil {
		return "", err
	}
	var key []byte
	for i, v := range values {
		text, err := Serialize(c.Types[i], v)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Names[i], err)
		}
		if text == nil {
			key = append(key, '-')
			continue
		}
		key = append(append(strconv.AppendInt(key, int64(len(*text)), 10), ':'), *text...)
	}
	return string(key), nil
}

// Directory is the path of the directories that Spark names after partitionValues, with a slash at its end; "" for a table without partitions.
func (c Columns) Directory(texts map[string]*string) string {
	var out strings.Builder
	for _, name := range c.Names {
		out.WriteString(DirName(name, texts[name]))
		out.WriteByte('/')
	}
	return out.String()
}
