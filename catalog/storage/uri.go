package storage

import (
	"fmt"
	"strings"

	"github.com/signet-io/signet/internal/uri"
)

// ParseLocal splits a local URI into its path segments, as uri.Parse does: file:///a/b, file:/a/b, file://localhost/a/b and /a/b all name the same file.
func ParseLocal(location string) ([]string, error) {
	if scheme, _, ok := strings.Cut(location, ":"); ok && !strings.Contains(scheme, "/") && scheme != "" && !strings.EqualFold(scheme, uri.File) {
		return nil, fmt.Errorf("%s: scheme %s: only file:// is served: %w", location, scheme, ErrUnsupported)
	}
	l, err := uri.Parse(location)
	if err != nil {
		return nil, err
	}
	return l.Segments, nil
}

// LocalPath is the path of a local URI.
func LocalPath(location string) (string, error) {
	segments, err := ParseLocal(location)
	if err != nil {
		return "", err
	}
	return "/" + strings.Join(segments, "/"), nil
}

// Below returns the segments of a URI that follow those of location, or ErrOutside.
func Below(location, file string) ([]string, error) { return uri.Below(location, file) }

// Join appends path segments to a location.
func Join(location string, segments ...string) string {
	return strings.TrimRight(location, "/") + "/" + strings.Join(segments, "/")
}
