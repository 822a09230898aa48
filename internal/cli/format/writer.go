package format

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Kinds are the names that New knows.
var Kinds = []string{"table", "json", "csv"}

// Writer prints one result: Begin once, Batch any number of times, End once. A batch is not kept after its call.
type Writer interface {
	Begin(*arrow.Schema) error
	Batch(arrow.RecordBatch) error
	// End finishes the output and returns the number of rows.
	End() (int64, error)
}

// New returns the writer of a kind.
func New(kind string, w io.Writer) (Writer, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	switch kind {
	case "table":
		return &table{out: out}, nil
	case "json":
		return &jsonLines{out: out}, nil
	case "csv":
		return &csvLines{out: out}, nil
	}
	return nil, fmt.Errorf("output %q: want one of %s", kind, strings.Join(Kinds, ", "))
}

// NewText prints the first column as it is, line by line: for EXPLAIN, where a frame would be in the way.
func NewText(w io.Writer) Writer { return &textLines{out: bufio.NewWriter(w)} }

type textLines struct {
	out  *bufio.Writer
	rows int64
}

func (t *textLines) Begin(*arrow.Schema) error { return nil }

func (t *textLines) Batch(b arrow.RecordBatch) error {
	for i := range int(b.NumRows()) {
		for line := range strings.Lines(string(Text(nil, b.Column(0), i))) {
			if _, err := t.out.WriteString(escape(strings.TrimRight(line, "\r\n")) + "\n"); err != nil {
				return err
			}
		}
	}
	t.rows += b.NumRows()
	return nil
}

func (t *textLines) End() (int64, error) { return t.rows, t.out.Flush() }

func names(s *arrow.Schema) []string {
	out := make([]string, s.NumFields())
	for i := range out {
		out[i] = s.Field(i).Name
	}
	return out
}

// jsonLines prints one object per row and line.
type jsonLines struct {
	out  *bufio.Writer
	keys [][]byte
	rows int64
	buf  []byte
}

func (j *jsonLines) Begin(s *arrow.Schema) error {
	for _, n := range uniqueNames(names(s)) {
		j.keys = append(j.keys, append(jsonString(nil, n), ':'))
	}
	return nil
}

func (j *jsonLines) Batch(b arrow.RecordBatch) error {
	for i := range int(b.NumRows()) {
		j.buf = append(j.buf[:0], '{')
		for c, key := range j.keys {
			if c > 0 {
				j.buf = append(j.buf, ',')
			}
			j.buf = append(j.buf, key...)
			j.buf = JSON(j.buf, b.Column(c), i)
		}
		j.buf = append(j.buf, "}\n"...)
		if _, err := j.out.Write(j.buf); err != nil {
			return err
		}
	}
	j.rows += b.NumRows()
	return nil
}

func (j *jsonLines) End() (int64, error) { return j.rows, j.out.Flush() }

// csvLines prints RFC 4180: a header, CRLF, quotes where needed. An empty string is "", NULL is nothing.
type csvLines struct {
	out  *bufio.Writer
	cols int
	rows int64
	buf  []byte
}

func (c *csvLines) Begin(s *arrow.Schema) error {
	c.cols = s.NumFields()
	for i, n := range names(s) {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = csvField(c.buf, n)
	}
	_, err := c.out.Write(append(c.buf, "\r\n"...))
	return err
}

func (c *csvLines) Batch(b arrow.RecordBatch) error {
	var text []byte
	for i := range int(b.NumRows()) {
		c.buf = c.buf[:0]
		for n := range c.cols {
			if n > 0 {
				c.buf = append(c.buf, ',')
			}
			if isNull(b.Column(n), i) {
				continue
			}
			text = Text(text[:0], b.Column(n), i)
			c.buf = csvField(c.buf, string(text))
		}
		if _, err := c.out.Write(append(c.buf, "\r\n"...)); err != nil {
			return err
		}
	}
	c.rows += b.NumRows()
	return nil
}

func (c *csvLines) End() (int64, error) { return c.rows, c.out.Flush() }

func csvField(b []byte, s string) []byte {
	if s != "" && !strings.ContainsAny(s, ",\"\r\n") && strings.TrimSpace(s) == s {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}
