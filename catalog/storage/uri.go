package storage

import (
	"fmt"
	"slices"
	"strings"
)

// ParseLocal splits a local URI into its path segments. It takes file:///a/b, file:/a/b, file://localhost/a/b and /a/b, which
// all name the same file. Nothing is decoded. Empty segments are dropped, as the file system does; `.` and `..` are refused,
// because the segments would not say any more where the path leads.
func ParseLocal(uri string) ([]string, error) {
	path := uri
	if scheme, rest, ok := cutScheme(uri); ok {
		if !strings.EqualFold(scheme, "file") {
			return nil, fmt.Errorf("%s: scheme %s: only file:// is served: %w", uri, scheme, ErrUnsupported)
		}
		path = rest
		if authority, ok := strings.CutPrefix(rest, "//"); ok {
			host, p, _ := strings.Cut(authority, "/")
			if host != "" && host != "localhost" {
				return nil, fmt.Errorf("%s: host %q: a local file has none, write file:///path: %w", uri, host, ErrUnsupported)
			}
			path = "/" + p
		}
	}
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%q: not an absolute path or file:/// URI: %w", uri, ErrUnsupported)
	}
	segments := strings.Split(path, "/")
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "" })
	for _, s := range segments {
		if s == "." || s == ".." {
			return nil, fmt.Errorf("%q: has a %s segment: %w", uri, s, ErrOutside)
		}
		if strings.ContainsRune(s, 0) {
			return nil, fmt.Errorf("%q: has a NUL character: %w", uri, ErrOutside)
		}
	}
	return segments, nil
}

// cutScheme is the URI grammar's scheme; a path such as /a:b has none.
func cutScheme(uri string) (scheme, rest string, ok bool) {
	i := strings.IndexAny(uri, ":/")
	if i <= 0 || uri[i] != ':' {
		return "", "", false
	}
	return uri[:i], uri[i+1:], true
}

// LocalPath is the path of a local URI.
func LocalPath(uri string) (string, error) {
	segments, err := ParseLocal(uri)
	if err != nil {
		return "", err
	}
	return "/" + strings.Join(segments, "/"), nil
}

// Below returns the segments of uri that follow those of location, or ErrOutside.
func Below(location, uri string) ([]string, error) {
	base, err := ParseLocal(location)
	if err != nil {
		return nil, err
	}
	return below(location, base, uri)
}

func below(location string, base []string, uri string) ([]string, error) {
	segments, err := ParseLocal(uri)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, ErrOutside)
	}
	if len(segments) < len(base) || !slices.Equal(segments[:len(base)], base) {
		return nil, fmt.Errorf("%s is not below %s: %w", uri, location, ErrOutside)
	}
	return segments[len(base):], nil
}

// Join appends path segments to a location.
func Join(location string, segments ...string) string {
	return strings.TrimRight(location, "/") + "/" + strings.Join(segments, "/")
}
