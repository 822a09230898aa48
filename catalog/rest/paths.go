package rest

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/signet-io/signet/catalog"
)

// address is the URL of something in the catalog. Parts are escaped already.
func (c *Catalog) address(s *settings, query url.Values, parts ...string) string {
	var b strings.Builder
	b.WriteString(c.base.String())
	b.WriteString("/v1")
	if s.prefix != "" {
		b.WriteString("/" + s.prefix)
	}
	for _, p := range parts {
		b.WriteString("/" + p)
	}
	if len(query) > 0 {
		b.WriteString("?" + query.Encode())
	}
	return b.String()
}

// pathPrefix checks a prefix, which stands in paths as the server writes it: escapes that it holds stay as they are (Nessie: main%7Cwarehouse).
func pathPrefix(prefix string) (string, error) {
	if prefix == "" {
		return "", nil
	}
	var b strings.Builder
	for i, p := range strings.Split(prefix, "/") {
		plain, err := url.PathUnescape(p)
		if err != nil || plain == "" || dots(plain) {
			return "", fmt.Errorf("prefix %.40q: no part of a path", prefix)
		}
		if i > 0 {
			b.WriteByte('/')
		}
		for n := 0; n < len(p); n++ {
			if p[n] == '%' { // of an escape, as was checked
				b.WriteByte(p[n])
				continue
			}
			b.WriteString(escape(p[n : n+1]))
		}
	}
	return b.String(), nil
}

// escape writes everything but letters, digits and -_.~ as %XX: a + would be a blank to servers that decode paths as forms.
func escape(part string) string { return strings.ReplaceAll(url.QueryEscape(part), "+", "%20") }

// namespacePath is a namespace in a path.
func (s *settings) namespacePath(ns []string) string {
	parts := make([]string, len(ns))
	for i, p := range ns {
		parts[i] = escape(p)
	}
	return strings.Join(parts, s.separator)
}

// namespaceValue is a namespace as the value of a query's parameter.
func (s *settings) namespaceValue(ns []string) string {
	sep, _ := url.PathUnescape(s.separator) // was checked
	return strings.Join(ns, sep)
}

// addressable refuses names that have no place in a URL, or another than one would think.
func (s *settings) addressable(ns []string) error {
	sep, _ := url.PathUnescape(s.separator)
	if len(ns) == 1 && dots(ns[0]) {
		return fmt.Errorf("namespace %s: its name is a step in a URL, so that this catalog cannot be asked for it: %w", catalog.Ident(ns), catalog.ErrPermanent)
	}
	for _, p := range ns {
		if strings.Contains(p, sep) {
			return fmt.Errorf("namespace %s: a part holds %q, which this catalog has between parts: %w", catalog.Ident(ns), sep, catalog.ErrPermanent)
		}
	}
	return nil
}

func dots(part string) bool { return part == "." || part == ".." }

// table is the URL of a table.
func (c *Catalog) table(s *settings, id catalog.Ident, query url.Values) string {
	return c.address(s, query, "namespaces", s.namespacePath(id.Namespace()), "tables", escape(id.Table()))
}

// usable checks a table's name before it goes anywhere.
func (s *settings) usable(id catalog.Ident) error {
	if dots(id.Table()) {
		return fmt.Errorf("table %s: its name is a step in a URL, so that this catalog cannot be asked for it: %w", id, catalog.ErrPermanent)
	}
	return s.addressable(id.Namespace())
}

// namespaceURL is the URL of a namespace, or of what is below it.
func (c *Catalog) namespaceURL(s *settings, ns []string, query url.Values, below ...string) string {
	return c.address(s, query, append([]string{"namespaces", s.namespacePath(ns)}, below...)...)
}
