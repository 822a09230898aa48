package plan

import "strings"

// Error is a statement that cannot be planned. It is always the user's to fix.
type Error struct {
	Message string
	Hint    string // what to write instead; may be empty
	Columns []string
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "\nhint: " + e.Hint
}

// problems collects what is wrong with several columns, so that one run shows all of it.
type problems struct {
	messages []string
	hints    []string
	columns  []string
}

// shown bounds an error's length for tables of thousands of columns.
const shown = 20

func (p *problems) add(column, message, hint string) {
	p.messages = append(p.messages, message)
	p.columns = append(p.columns, column)
	if hint != "" {
		p.hints = append(p.hints, hint)
	}
}

func (p *problems) err() error {
	if len(p.messages) == 0 {
		return nil
	}
	return &Error{Message: strings.Join(head(p.messages), "\n"), Hint: strings.Join(head(p.hints), "\n"), Columns: p.columns}
}

func head(lines []string) []string {
	if len(lines) <= shown {
		return lines
	}
	return append(lines[:shown:shown], "…")
}
