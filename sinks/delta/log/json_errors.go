package log

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// wrong is about what stands where something else has to, whatever the field.
func (r *jsonReader) wrong(want string) error {
	if r.at >= len(r.data) {
		return fmt.Errorf("want %s where it ends", want)
	}
	return fmt.Errorf("want %s at byte %d", want, r.at)
}

// not is about a value of another type than its field has.
func (r *jsonReader) not(want string) error {
	if r.at >= len(r.data) {
		return r.wrong(want)
	}
	return &typeError{want: want, at: r.at}
}

// typeError: the value at a byte of a line is not what is wanted.
type typeError struct {
	want string
	at   int
}

func (e *typeError) Error() string { return fmt.Sprintf("want %s at byte %d", e.want, e.at) }

var errMissing = errors.New("it is missing")

// fieldError is about a field, by the names of the action and of what the field lies in: add.deletionVector.offset.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string {
	if wrong := (*typeError)(nil); errors.As(e.err, &wrong) {
		return fmt.Sprintf("%s is not %s (byte %d of the line)", e.path, wrong.want, wrong.at)
	}
	if errors.Is(e.err, errMissing) {
		return e.path + " is missing"
	}
	return fmt.Sprintf("%s: %v", e.path, e.err)
}

func (e *fieldError) Unwrap() error { return e.err }

// maxFieldPath bounds the path in a message, in bytes: what an unknown action holds may be nested deeply.
const maxFieldPath = 200

// within says in which field an error is.
func within(name string, err error) error {
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || c == '.' || c == '"' }) {
		name = strconv.Quote(name[:min(len(name), 100)])
	}
	if in := (*fieldError)(nil); errors.As(err, &in) {
		name, err = name+"."+in.path, in.err
	}
	return &fieldError{path: name[:min(len(name), maxFieldPath)], err: err}
}
