package partition

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// DefaultDir is the directory's value for NULL. It is a name only: as a value of partitionValues it would be a string.
const DefaultDir = "__HIVE_DEFAULT_PARTITION__"

// ErrPath is wrapped by errors of paths that cannot be decoded.
var ErrPath = errors.New("path in the log")

// DirName is the directory of one partition column's text, escaped as Hive and Spark do: column=value.
func DirName(column string, text *string) string {
	if text == nil || *text == "" {
		return Escape(column) + "=" + DefaultDir
	}
	return Escape(column) + "=" + Escape(*text)
}

// Escape escapes a column's name or a value for a directory: control characters, DEL and "#%'*/:=?\{[]^ ; neither spaces nor what is not ASCII.
func Escape(s string) string {
	return escape(s, &inDirectories)
}

// EncodePath writes a path as the log does, a relative one or an absolute URI with its parts decoded. It is how java.net.URI quotes, by which Spark makes its paths.
func EncodePath(path string) string {
	return escape(path, &inPaths)
}

// DecodePath reads a path of the log. A percent sign without two hexadecimal digits, and what would not be UTF-8 or holds a NUL, is ErrPath.
func DecodePath(path string) (string, error) {
	out, err := url.PathUnescape(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %.200q: %w", ErrPath, path, err)
	case !utf8.ValidString(out) || strings.IndexByte(out, 0) >= 0:
		return "", fmt.Errorf("%w: %.200q holds bytes that are not part of a name", ErrPath, path)
	case out == "":
		return "", fmt.Errorf("%w: it is empty", ErrPath)
	}
	return out, nil
}

const hex = "0123456789ABCDEF"

// What is escaped, by bytes.
var (
	inDirectories = specials("\"#%'*/:=?\\{[]^")
	inPaths       = specials(" \"#%<>?[\\]^`{|}")
)

// specials are control characters, DEL and those of the text.
func specials(text string) (out [256]bool) {
	for b := range ' ' {
		out[b] = true
	}
	out[0x7f] = true
	for i := range len(text) {
		out[text[i]] = true
	}
	return out
}

func escape(s string, special *[256]bool) string {
	for i := range len(s) {
		if special[s[i]] {
			out := append(make([]byte, 0, len(s)+16), s[:i]...)
			for ; i < len(s); i++ {
				if b := s[i]; special[b] {
					out = append(out, '%', hex[b>>4], hex[b&15])
				} else {
					out = append(out, b)
				}
			}
			return string(out)
		}
	}
	return s
}
