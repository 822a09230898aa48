package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
)

// Ledger is a File that holds each message once, also where a crash came between the writing of a message and the journal's record of it: the first messages
// after a start are compared with the end of the file. Their bodies have to differ from each other. A file that was renamed in that moment cannot be
// looked into.
type Ledger struct {
	File
	begun bool
}

// NewLedger is NewFile.
func NewLedger(path string) (*Ledger, error) {
	f, err := NewFile(path)
	if err != nil {
		return nil, err
	}
	return &Ledger{File: *f}, nil
}

// Send implements Target.
func (l *Ledger) Send(ctx context.Context, list []Message) (int, error) {
	rest := list
	if !l.begun {
		var err error
		if rest, err = l.missing(list); err != nil {
			return 0, fmt.Errorf("%s: %w", l.path, err)
		}
	}
	if len(rest) > 0 {
		if _, err := l.File.Send(ctx, rest); err != nil {
			return 0, err
		}
	}
	l.begun = true
	return len(list), nil
}

// endSlack is read besides what the messages may take.
const endSlack = 64 << 10

// missing are those that the file's end does not have. Half of one of them that a crash has left is taken away: it comes as a whole.
func (l *Ledger) missing(list []Message) ([]Message, error) {
	file, err := l.open()
	if err != nil {
		return nil, err
	}
	out, err := compare(file, list)
	return out, errors.Join(err, file.Close())
}

func compare(file *os.File, list []Message) ([]Message, error) {
	st, err := file.Stat()
	if err != nil || st.Size() == 0 || !st.Mode().IsRegular() {
		return list, err
	}
	size := int64(endSlack)
	for _, m := range list {
		size += int64(len(m.Body)) + 1
	}
	from := max(0, st.Size()-size)
	end := make([]byte, st.Size()-from)
	if _, err := file.ReadAt(end, from); err != nil {
		return nil, err
	}
	lines := bytes.Split(end, []byte{'\n'})
	half := lines[len(lines)-1]
	have := map[string]bool{}
	for _, line := range lines[:len(lines)-1] {
		have[string(line)] = true
	}
	var out []Message
	for _, m := range list {
		if len(half) > 0 && bytes.HasPrefix(m.Body, half) {
			if err := file.Truncate(st.Size() - int64(len(half))); err != nil {
				return nil, err
			}
			half = nil
		}
		if !have[string(m.Body)] {
			out = append(out, m)
		}
	}
	return out, nil
}
