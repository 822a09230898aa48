// Package uri parses the URIs by which tables name their places and files, and compares them: by scheme, authority and path segments, never by string prefix, so
// that table10 is not inside table1. Nothing is decoded: a space or a % stands for itself, as other engines write it. The package is pure.
package uri

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What callers tell apart with errors.Is.
var (
	// ErrOutside: the URI does not lie below the location, or its segments do not say where it leads.
	ErrOutside = errors.New("outside of the store's location")
	// ErrUnsupported: nothing serves this kind of URI.
	ErrUnsupported = errors.New("unsupported location")
)

// The schemes by which locations are told apart.
const (
	File  = "file"
	S3    = "s3"
	GCS   = "gs"
	Azure = "abfs"
	HTTP  = "http"
	HTTPS = "https"
)

// spellings are the schemes that are known, each with the one that stands for it.
var spellings = map[string]string{
	File: File, S3: S3, "s3a": S3, "s3n": S3, GCS: GCS, Azure: Azure, "abfss": Azure, "wasb": Azure, "wasbs": Azure, HTTP: HTTP, HTTPS: HTTPS,
}

// Location is a place: a directory or, for object stores, what names begin with.
type Location struct {
	Scheme    string // one of this package's
	Authority string // bucket, container@account or host; empty for files
	Segments  []string
}

// Parse splits the URI of a place into segments. Locally it takes file:///a/b, file:/a/b, file://localhost/a/b and /a/b, which all name the same, and drops empty
// segments, as file systems do. Remotely s3a and s3n are s3, abfss, wasb and wasbs are abfs; one slash may end the URI, but a segment must not be empty, because
// a//b and a/b are two objects there, and must hold no control characters. Segments `.` and `..` and the NUL character are refused everywhere.
func Parse(uri string) (Location, error) {
	scheme, authority, path, err := split(uri)
	if err != nil {
		return Location{}, err
	}
	l := Location{Scheme: scheme, Authority: authority}
	if scheme == File {
		l.Segments = slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
	} else if path = strings.TrimSuffix(path, "/"); path != "" {
		l.Segments = strings.Split(path, "/")
	}
	for _, s := range l.Segments {
		switch {
		case s == "." || s == "..":
			return Location{}, fmt.Errorf("%q: has a %s segment: %w", uri, s, ErrOutside)
		case strings.ContainsRune(s, 0):
			return Location{}, fmt.Errorf("%q: has a NUL character: %w", uri, ErrOutside)
		case scheme == File:
		case s == "":
			return Location{}, fmt.Errorf("%q: has two slashes in a row, which object stores do not take for one: %w", uri, ErrOutside)
		case strings.ContainsFunc(s, control):
			return Location{}, fmt.Errorf("%q: has a control character: %w", uri, ErrOutside)
		}
	}
	return l, nil
}

func control(r rune) bool { return r < 0x20 || r == 0x7f }

// ParseKey splits the URI of one object of a store. Any key is taken, literally, as "a//b" or "a/../b": it is a name, and leads nowhere.
func ParseKey(uri string) (scheme, bucket, key string, err error) {
	scheme, bucket, key, err = split(uri)
	switch {
	case err != nil:
		return "", "", "", err
	case scheme == File:
		return "", "", "", fmt.Errorf("%q: a local file is no object of a store: %w", uri, ErrUnsupported)
	case key == "":
		return "", "", "", fmt.Errorf("%q: names no object: %w", uri, ErrUnsupported)
	}
	return scheme, bucket, key, nil
}

// split cuts a URI; a remote path comes without its first slash.
func split(uri string) (scheme, authority, path string, err error) {
	scheme, rest, ok := cutScheme(uri)
	if !ok {
		scheme, rest = File, uri
	}
	known, ok := spellings[strings.ToLower(scheme)]
	if !ok {
		return "", "", "", fmt.Errorf("%s: scheme %s: file://, s3://, gs:// and abfss:// are served: %w", uri, scheme, ErrUnsupported)
	}
	if known == File {
		return splitLocal(uri, rest)
	}
	rest, ok = strings.CutPrefix(rest, "//")
	authority, path, _ = strings.Cut(rest, "/")
	switch at := strings.Count(authority, "@"); {
	case !ok || authority == "":
		return "", "", "", fmt.Errorf("%q: has no bucket: write %s://bucket/path: %w", uri, scheme, ErrUnsupported)
	case at > 0 && known != Azure, at > 1:
		return "", "", "", fmt.Errorf("%s://…: has a user in front of the bucket: credentials are configured, they are not part of a URI: %w", scheme, ErrUnsupported)
	case strings.ContainsFunc(authority, func(r rune) bool { return control(r) || r == ' ' || r == '?' || r == '#' || r == '\\' || r == '%' }):
		return "", "", "", fmt.Errorf("%q: bucket %q has a character that no bucket has: %w", uri, authority, ErrUnsupported)
	case authority == "." || authority == "..":
		return "", "", "", fmt.Errorf("%q: no bucket is called %s: %w", uri, authority, ErrUnsupported)
	}
	return known, authority, path, nil
}

func splitLocal(uri, path string) (string, string, string, error) {
	if authority, ok := strings.CutPrefix(path, "//"); ok && len(path) < len(uri) {
		host, p, _ := strings.Cut(authority, "/")
		if host != "" && host != "localhost" {
			return "", "", "", fmt.Errorf("%s: host %q: a local file has none, write file:///path: %w", uri, host, ErrUnsupported)
		}
		path = "/" + p
	}
	if !strings.HasPrefix(path, "/") {
		return "", "", "", fmt.Errorf("%q: not an absolute path or file:/// URI: %w", uri, ErrUnsupported)
	}
	return File, "", path, nil
}

// cutScheme is the URI grammar's scheme; a path such as /a:b has none.
func cutScheme(uri string) (scheme, rest string, ok bool) {
	i := strings.IndexAny(uri, ":/")
	if i <= 0 || uri[i] != ':' {
		return "", "", false
	}
	return uri[:i], uri[i+1:], true
}

// Remote reports whether the place lies in a store that only its client reaches.
func (l Location) Remote() bool { return l.Scheme != File }

// Path joins the segments: an absolute path for files, what keys begin with (without a slash at the end) for stores.
func (l Location) Path() string {
	path := strings.Join(l.Segments, "/")
	if l.Scheme == File {
		return "/" + path
	}
	return path
}

// String is the URI, without a slash at its end.
func (l Location) String() string {
	if l.Scheme == File || len(l.Segments) == 0 {
		return l.Scheme + "://" + l.Authority + strings.Join(append([]string{""}, l.Segments...), "/")
	}
	return l.Scheme + "://" + l.Authority + "/" + l.Path()
}

// Below returns the segments of uri that follow the location's, or ErrOutside.
func (l Location) Below(uri string) ([]string, error) {
	o, err := Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, ErrOutside)
	}
	if o.Scheme != l.Scheme || o.Authority != l.Authority || len(o.Segments) < len(l.Segments) || !slices.Equal(o.Segments[:len(l.Segments)], l.Segments) {
		return nil, fmt.Errorf("%s is not below %s: %w", uri, l, ErrOutside)
	}
	return o.Segments[len(l.Segments):], nil
}

// Below returns the segments of uri that follow those of location, or ErrOutside.
func Below(location, uri string) ([]string, error) {
	l, err := Parse(location)
	if err != nil {
		return nil, err
	}
	return l.Below(uri)
}

// Key makes the spellings of one file equal: file:/a, file:///a and /a; s3a://b/k and s3://b/k. What is no URI of a file stays as it is.
func Key(uri string) string {
	if strings.HasPrefix(uri, "/") && !strings.Contains(uri, "//") && !strings.Contains(uri, "/.") && !strings.HasSuffix(uri, "/") {
		return uri
	}
	scheme, authority, path, err := split(uri)
	switch {
	case err != nil:
		return uri
	case scheme != File:
		return scheme + "://" + authority + "/" + path
	}
	l, err := Parse(uri)
	if err != nil {
		return uri
	}
	return l.Path()
}
