package format

import (
	"bufio"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/mattn/go-runewidth"
)

// measured is how many rows decide the widths. Later rows that are wider stick out rather than being cut.
const measured = 1000

// table draws a box. Widths are those of a terminal: wide and combining characters count as they are shown.
type table struct {
	out    *bufio.Writer
	head   []string
	right  []bool
	widths []int
	held   [][]string // rows before the widths are known
	open   bool       // the head is drawn
	rows   int64
}

func (t *table) Begin(s *arrow.Schema) error {
	for i, n := range names(s) {
		t.head = append(t.head, escape(n))
		t.right = append(t.right, numeric(s.Field(i).Type))
		t.widths = append(t.widths, width(t.head[i]))
	}
	return nil
}

func numeric(dt arrow.DataType) bool {
	return arrow.IsInteger(dt.ID()) || arrow.IsFloating(dt.ID()) || arrow.IsDecimal(dt.ID())
}

func (t *table) Batch(b arrow.RecordBatch) error {
	var buf []byte
	for i := range int(b.NumRows()) {
		row := make([]string, len(t.head))
		for c := range row {
			buf = Text(buf[:0], b.Column(c), i)
			row[c] = escape(string(buf))
		}
		t.rows++
		if t.open {
			t.line(row)
			continue
		}
		t.held = append(t.held, row)
		for c, cell := range row {
			t.widths[c] = max(t.widths[c], width(cell))
		}
		if len(t.held) == measured {
			t.draw()
		}
	}
	// bufio keeps the first error; asking for it here stops a result that nobody reads any more.
	_, err := t.out.Write(nil)
	return err
}

func (t *table) draw() {
	t.rule("┌", "┬", "┐")
	t.line(t.head)
	t.rule("├", "┼", "┤")
	for _, row := range t.held {
		t.line(row)
	}
	t.held, t.open = nil, true
}

func (t *table) End() (int64, error) {
	if !t.open {
		t.draw()
	}
	t.rule("└", "┴", "┘")
	plural := "s"
	if t.rows == 1 {
		plural = ""
	}
	fmt.Fprintf(t.out, "(%d row%s)\n", t.rows, plural)
	return t.rows, t.out.Flush()
}

func (t *table) rule(left, mid, right string) {
	parts := make([]string, len(t.widths))
	for i, w := range t.widths {
		parts[i] = strings.Repeat("─", w+2)
	}
	_, _ = t.out.WriteString(left + strings.Join(parts, mid) + right + "\n") // Batch and End report its error
}

func (t *table) line(row []string) {
	for c, cell := range row {
		pad := strings.Repeat(" ", max(0, t.widths[c]-width(cell)))
		if t.right[c] {
			cell = pad + cell
		} else {
			cell += pad
		}
		_, _ = t.out.WriteString("│ " + cell + " ")
	}
	_, _ = t.out.WriteString("│\n")
}

var cells = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

func width(s string) int { return cells.StringWidth(s) }

// escape makes text safe to show: no control or direction character reaches the terminal, and nothing breaks a line.
func escape(s string) string {
	clean := true
	for _, r := range s {
		if hostile(r) {
			clean = false
			break
		}
	}
	if clean && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02X`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case hostile(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02X`, r)
		case hostile(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func hostile(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
