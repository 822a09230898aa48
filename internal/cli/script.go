package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/scheduler/sql"
)

// statement is one piece of a script.
type statement struct {
	text   string
	script string                 // its name; empty for an argument
	line   int                    // where it begins, from 1
	indent int                    // characters in front of it on that line
	alone  bool                   // messages need no place
	plan   client.StatementOption // instead of text
}

// readStatements takes statements from the arguments ("-" is standard input) and from a file.
func (a *app) readStatements(args []string, file string) ([]statement, error) {
	var out []statement
	add := func(name, script string) error {
		pieces, err := sql.Pieces(script)
		if err != nil {
			if name != "" {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return err
		}
		for _, p := range pieces {
			before := script[:p.Offset]
			indent := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
			out = append(out, statement{text: p.Text, script: name, line: p.Line, indent: indent})
		}
		return nil
	}
	if file != "" {
		script, name, err := a.readFile(file)
		if err != nil {
			return nil, err
		}
		if err := add(name, script); err != nil {
			return nil, err
		}
	}
	if file == "" && len(args) == 0 && !a.streams.InTerminal {
		args = []string{"-"}
	}
	for _, arg := range args {
		script, name := arg, ""
		if arg == "-" {
			var err error
			if script, name, err = a.readFile("-"); err != nil {
				return nil, err
			}
		}
		if err := add(name, script); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, usageError("no statement: pass one as an argument, with -f FILE, or on standard input with -")
	}
	if len(out) == 1 {
		out[0].alone = out[0].script == ""
	}
	return out, nil
}

func (a *app) readFile(file string) (script, name string, err error) {
	if file == "-" {
		b, err := io.ReadAll(a.streams.In)
		if err != nil {
			return "", "", fmt.Errorf("standard input: %w", err)
		}
		return string(b), "stdin", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", "", &exitError{code: ExitUsage, err: err}
	}
	return strings.TrimPrefix(string(b), "\ufeff"), file, nil // some editors begin files with a byte order mark
}
