package sql

import "strings"

// Piece is one statement of a script.
type Piece struct {
	Text   string
	Offset int // in the script
	Line   int // from 1
}

// Split cuts a script at its semicolons. Comments around statements and empty statements are left out.
func Split(script string) ([]string, error) {
	pieces, err := Pieces(script)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range pieces {
		out = append(out, p.Text)
	}
	return out, nil
}

// Pieces is Split with the places, so that errors can name lines of the script (Error.Shift).
func Pieces(script string) ([]Piece, error) {
	toks, err := Tokenize(script)
	if err != nil {
		return nil, err
	}
	var out []Piece
	start, line, counted := -1, 1, 0
	add := func(first, last Token) {
		line += strings.Count(script[counted:first.Start], "\n")
		counted = first.Start
		out = append(out, Piece{Text: script[first.Start:last.End], Offset: first.Start, Line: line})
	}
	for i, t := range toks {
		switch {
		case !t.is(";") && start < 0:
			start = i
		case t.is(";") && start >= 0:
			add(toks[start], toks[i-1])
			start = -1
		}
	}
	if start >= 0 {
		add(toks[start], toks[len(toks)-1])
	}
	return out, nil
}
