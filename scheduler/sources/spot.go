package sources

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"

	"github.com/signet-io/signet/internal/uri"
)

// spot is a file or a place in an object store or on a web server. Segments are literal in stores, where a//b and a/b are two objects; those of URLs are decoded.
type spot struct {
	scheme, authority string
	segments          []string
	escaped           string // of URLs: the path as it is sent
}

// holds: a file lies below the place. Nothing lies below itself.
func (p *spot) holds(at spot) bool {
	if p.scheme != at.scheme || p.authority != at.authority || len(at.segments) <= len(p.segments) {
		return false
	}
	for i, s := range p.segments {
		if at.segments[i] != s {
			return false
		}
	}
	return true
}

func (p spot) key() string { return strings.Join(p.segments, "/") }

func (p spot) String() string { return p.scheme + "://" + p.authority + "/" + p.key() }

func (p spot) url() *url.URL {
	u, err := url.Parse(p.scheme + "://" + p.authority + p.escaped)
	if err != nil { // parseWeb has made it
		return &url.URL{}
	}
	return u
}

// parsePlace takes a prefix apart; a slash may end it.
func parsePlace(text string) (spot, error) {
	if scheme, _, _ := strings.Cut(text, "://"); scheme == uri.HTTP || scheme == uri.HTTPS {
		at, err := parseWeb(strings.TrimRight(text, "/") + "/")
		if err == nil {
			at.segments = at.segments[:len(at.segments)-1]
		}
		return at, err
	}
	l, err := uri.Parse(text)
	if err == nil && l.Scheme != uri.S3 {
		err = fmt.Errorf("%q: want s3://bucket/prefix or https://host/path", text)
	}
	return spot{scheme: l.Scheme, authority: l.Authority, segments: l.Segments}, err
}

// parseFile takes the name of a file, or a pattern, apart. In stores nothing is decoded.
func parseFile(name string) (spot, error) {
	scheme, _, _ := strings.Cut(name, "://")
	if scheme = strings.ToLower(scheme); scheme == uri.HTTP || scheme == uri.HTTPS {
		return parseWeb(name)
	}
	_, bucket, key, err := uri.ParseKey(name)
	if err != nil {
		return spot{}, err
	}
	at := spot{scheme: uri.S3, authority: bucket, segments: strings.Split(key, "/")}
	for _, s := range at.segments {
		switch {
		case s == "." || s == "..":
			return spot{}, fmt.Errorf("%q: a part of its key is %s, which proxies take for a way up; copy the object to another key", name, s)
		case strings.ContainsRune(s, 0):
			return spot{}, fmt.Errorf("%q: a NUL character in its key", name)
		}
	}
	return at, nil
}

var errWeb = errors.New("want http://host/path or https://host/path, without a user, a query and a fragment: sources are read without credentials, and a ? or # in a name is written %3F or %23")

// parseWeb takes a URL apart: the host in lower case and without the scheme's own port, the path in segments. Characters that a URL has to escape are escaped, those that
// are escaped stay so. What servers may take for a way up is refused, however it is written.
func parseWeb(text string) (spot, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	authority, path, _ := strings.Cut(rest, "/")
	scheme = strings.ToLower(scheme)
	if !ok || authority == "" || strings.ContainsAny(authority, "@?#\\ ") || strings.ContainsAny(path, "?#") {
		return spot{}, errWeb // which does not say what it is: there may be a password in it
	}
	host, err := hostOf(scheme, authority)
	if err != nil {
		return spot{}, err
	}
	out := spot{scheme: scheme, authority: host}
	if out.escaped, err = escapePath("/" + path); err != nil {
		return spot{}, fmt.Errorf("%q: %w", text, err)
	}
	for s := range strings.SplitSeq(out.escaped[1:], "/") {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return spot{}, fmt.Errorf("%q: a %% that is not followed by two hexadecimal digits; a %% in a name is written %%25", text)
		}
		if !harmless(plain) {
			return spot{}, fmt.Errorf("%q: a part of its path is %q, which servers may take for a way up", text, plain)
		}
		out.segments = append(out.segments, plain)
	}
	return out, nil
}

// harmless: no server makes . or .. of it, or two segments, if it decodes once more or leaves parameters out.
func harmless(segment string) bool {
	for range 4 {
		bare, _, _ := strings.Cut(segment, ";")
		if bare == "." || bare == ".." || strings.ContainsAny(segment, "/\\") || strings.ContainsFunc(segment, unicode.IsControl) {
			return false
		}
		again, err := url.PathUnescape(segment)
		if err != nil || again == segment {
			return true
		}
		segment = again
	}
	return false
}

func hostOf(scheme, authority string) (string, error) {
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil || u.Hostname() == "" || strings.ContainsFunc(authority, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == '%' }) {
		return "", errWeb
	}
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if scheme == uri.HTTP && port == "80" || scheme == uri.HTTPS && port == "443" {
		port = ""
	}
	if port != "" {
		return net.JoinHostPort(host, port), nil
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]", nil
	}
	return host, nil
}

// escapePath escapes what a URL's path cannot hold.
func escapePath(path string) (string, error) {
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c == '%' && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2])):
			return "", errors.New("a % that is not followed by two hexadecimal digits; a % in a name is written %25")
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("%/-._~!$&'()*+,;=:@", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String(), nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
