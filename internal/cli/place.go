package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// placedError says where in a script a statement failed.
type placedError struct {
	text string
	err  error
}

func (e *placedError) Error() string { return e.text }
func (e *placedError) Unwrap() error { return e.err }

// inStatement is how a syntax error begins: with its place in the statement's own text.
var inStatement = regexp.MustCompile(`^line (\d+), column (\d+): `)

// at gives an error its place in the script. A place inside the statement becomes one in the script: two would contradict each other.
func (st statement) at(err error) error {
	if st.alone {
		return err
	}
	text, line, column := err.Error(), st.line, ""
	if m := inStatement.FindStringSubmatch(text); m != nil {
		l, _ := strconv.Atoi(m[1]) // digits
		c, _ := strconv.Atoi(m[2])
		if l == 1 {
			c += st.indent
		}
		line, column, text = line+l-1, strconv.Itoa(c), text[len(m[0]):]
	}
	place := fmt.Sprintf("line %d", line)
	if column != "" {
		place += ", column " + column
	}
	if st.script != "" {
		place = strings.TrimSuffix(fmt.Sprintf("%s:%d:%s", st.script, line, column), ":")
	}
	return &placedError{place + ": " + text, err}
}
