package coordinator

import (
	"fmt"
	"strings"
)

// location is a URI taken apart without decoding anything: a space or a % is what it is.
type location struct {
	store    string // "file", "s3://bucket", "abfss://container@account.dfs.core.windows.net"
	segments []string
}

// ats are how many @ an authority may have: Azure's is container@account, and others would have a user there.
var ats = map[string]int{"abfs": 1, "abfss": 1, "wasb": 1, "wasbs": 1}

// parseLocation takes scheme://authority/path, file:/path, or a plain absolute path (the same store as file).
func parseLocation(uri string) (location, error) {
	for _, r := range uri {
		if r < 0x20 || r == 0x7f {
			return location{}, fmt.Errorf("%q holds a control character", uri)
		}
	}
	l := location{store: "file"}
	path := uri
	if scheme, rest, ok := strings.Cut(uri, ":"); ok && !strings.Contains(scheme, "/") {
		authority := ""
		if after, ok := strings.CutPrefix(rest, "//"); ok {
			i := strings.IndexByte(after, '/')
			if i < 0 {
				return location{}, fmt.Errorf("%q has no path", uri)
			}
			authority, rest = after[:i], after[i:]
		}
		scheme = strings.ToLower(scheme)
		switch {
		case scheme == "file" && (authority == "" || authority == "localhost"):
		case scheme == "file" || authority == "" || strings.Count(authority, "@") > ats[scheme] || strings.HasPrefix(authority, "@"):
			return location{}, fmt.Errorf("%q names no store", uri)
		default:
			l.store = scheme + "://" + authority
		}
		path = rest
	}
	if !strings.HasPrefix(path, "/") {
		return location{}, fmt.Errorf("%q is not absolute", uri)
	}
	l.segments = strings.Split(strings.TrimSuffix(path[1:], "/"), "/")
	for _, s := range l.segments {
		if s == "" || s == "." || s == ".." {
			return location{}, fmt.Errorf("%q has an irregular segment", uri)
		}
	}
	return l, nil
}

// below returns the segments of l under p, or false.
func (l location) below(p location) ([]string, bool) {
	if l.store != p.store || len(l.segments) <= len(p.segments) {
		return nil, false
	}
	for i, s := range p.segments {
		if l.segments[i] != s {
			return nil, false
		}
	}
	return l.segments[len(p.segments):], true
}
