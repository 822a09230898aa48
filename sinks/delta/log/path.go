package log

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// encodePath writes a path as the log does, quoting as java.net.URI, by which Spark makes its paths.
func encodePath(path string) string {
	const hex = "0123456789ABCDEF"
	special := func(b byte) bool { return b <= ' ' || b == 0x7f || strings.IndexByte("\"#%<>?[\\]^`{|}", b) >= 0 }
	var out []byte
	for i := range len(path) {
		switch b := path[i]; {
		case special(b):
			if out == nil {
				out = append(make([]byte, 0, len(path)+16), path[:i]...)
			}
			out = append(out, '%', hex[b>>4], hex[b&15])
		case out != nil:
			out = append(out, b)
		}
	}
	if out == nil {
		return path
	}
	return string(out)
}

// decodePath reads a path of the log, and gives the raw text where encodePath would not write it again.
func decodePath(raw string) (path, keep string, err error) {
	path, err = url.PathUnescape(raw)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("%.200q is no path: %w", raw, err)
	case path == "":
		return "", "", fmt.Errorf("the path is empty")
	case !utf8.ValidString(path) || strings.IndexByte(path, 0) >= 0:
		return "", "", fmt.Errorf("%.200q is no path: it holds bytes that are not part of a name", raw)
	case encodePath(path) != raw:
		keep = raw
	}
	return path, keep, nil
}

func rawPath(path, raw string) string {
	if raw != "" {
		return raw
	}
	return encodePath(path)
}

// pathKey is a path by which files are told apart: /a, file:/a and file:///a are the same file.
func pathKey(path string) string {
	if rest, ok := strings.CutPrefix(path, "file:"); ok && strings.HasPrefix(rest, "/") {
		if local, ok := strings.CutPrefix(rest, "//"); ok && strings.HasPrefix(local, "/") {
			return local
		}
		return rest
	}
	return path
}
