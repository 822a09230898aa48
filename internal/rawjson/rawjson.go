// Package rawjson takes documents apart into the bytes of their parts, and decodes none of them: of a long document in which little changes, the rest is
// copied as it is.
//
// Invariants:
//   - What it returns are parts of the document it was given, not copies.
//   - It is for documents that a JSON decoder has accepted before, or will: brackets are counted and strings are skipped, and no more is checked.
//   - A document that it does not understand completely is an error, so that the caller decodes it instead.
package rawjson

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrUnusual is wrapped by every error: decode the document instead.
var ErrUnusual = errors.New("a document that is not taken apart")

// Member is one member of an object.
type Member struct {
	Key   string // without escapes
	Value []byte
}

// Object returns the members of an object in their order. Names that come twice, or hold escapes, are unusual.
func Object(doc []byte) ([]Member, error) {
	s := scanner{doc: doc}
	var out []Member
	seen := map[string]bool{}
	err := s.list('{', '}', func() error {
		start := s.at
		if s.at >= len(s.doc) || s.doc[s.at] != '"' {
			return s.unusual("a name")
		}
		if err := s.skipString(); err != nil {
			return err
		}
		key := s.doc[start+1 : s.at-1]
		if bytes.IndexByte(key, '\\') >= 0 || seen[string(key)] {
			return s.unusual("a plain name")
		}
		seen[string(key)] = true
		s.space()
		if s.at >= len(s.doc) || s.doc[s.at] != ':' {
			return s.unusual("a colon")
		}
		s.at++
		s.space()
		v, err := s.value()
		out = append(out, Member{Key: string(key), Value: v})
		return err
	})
	return out, err
}

// Array returns the elements of an array.
func Array(doc []byte) ([][]byte, error) {
	s := scanner{doc: doc}
	var out [][]byte
	err := s.list('[', ']', func() error {
		v, err := s.value()
		out = append(out, v)
		return err
	})
	return out, err
}

// AppendObject writes members as an object.
func AppendObject(out []byte, members []Member) []byte {
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), m.Key...), '"', ':')
		out = append(out, m.Value...)
	}
	return append(out, '}')
}

// Extend returns an array with more elements behind those that it has.
func Extend(array []byte, elements ...[]byte) ([]byte, error) {
	array = bytes.TrimSpace(array)
	if len(array) < 2 || array[0] != '[' || array[len(array)-1] != ']' {
		return nil, fmt.Errorf("%w: want an array", ErrUnusual)
	}
	size := len(array)
	for _, e := range elements {
		size += len(e) + 1
	}
	inside := bytes.TrimSpace(array[1 : len(array)-1])
	out := append(append(make([]byte, 0, size), '['), inside...)
	for i, e := range elements {
		if i > 0 || len(inside) > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']'), nil
}

type scanner struct {
	doc []byte
	at  int
}

func (s *scanner) unusual(want string) error {
	return fmt.Errorf("%w: want %s at byte %d", ErrUnusual, want, s.at)
}

func (s *scanner) space() {
	for s.at < len(s.doc) && (s.doc[s.at] == ' ' || s.doc[s.at] == '\n' || s.doc[s.at] == '\t' || s.doc[s.at] == '\r') {
		s.at++
	}
}

// list goes through what stands between two brackets; each stops behind one item.
func (s *scanner) list(open, end byte, each func() error) error {
	s.space()
	if s.at >= len(s.doc) || s.doc[s.at] != open {
		return s.unusual(string(open))
	}
	s.at++
	s.space()
	for first := true; s.at >= len(s.doc) || s.doc[s.at] != end; first = false {
		if !first {
			if s.at >= len(s.doc) || s.doc[s.at] != ',' {
				return s.unusual("a comma")
			}
			s.at++
			s.space()
		}
		if err := each(); err != nil {
			return err
		}
		s.space()
	}
	s.at++
	s.space()
	if s.at != len(s.doc) {
		return s.unusual("the end")
	}
	return nil
}

func (s *scanner) value() ([]byte, error) {
	start := s.at
	if s.at >= len(s.doc) {
		return nil, s.unusual("a value")
	}
	var err error
	switch s.doc[s.at] {
	case '"':
		err = s.skipString()
	case '{', '[':
		err = s.skipNested()
	default:
		for s.at < len(s.doc) && literal(s.doc[s.at]) {
			s.at++
		}
		if s.at == start {
			err = s.unusual("a value")
		}
	}
	return s.doc[start:s.at:s.at], err
}

// literal tells whether a byte may be part of a number, true, false or null.
func literal(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b == '-' || b == '+' || b == '.' || b == 'E'
}

func (s *scanner) skipString() error {
	for i := s.at + 1; ; {
		n := bytes.IndexByte(s.doc[i:], '"')
		if n < 0 {
			return s.unusual("the end of a string")
		}
		i += n + 1
		escapes := 0
		for k := i - 2; k > s.at && s.doc[k] == '\\'; k-- {
			escapes++
		}
		if escapes%2 == 0 {
			s.at = i
			return nil
		}
	}
}

func (s *scanner) skipNested() error {
	depth := 0
	for s.at < len(s.doc) {
		switch s.doc[s.at] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return nil
		}
	}
	return s.unusual("a closing bracket")
}
