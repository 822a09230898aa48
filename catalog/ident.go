package catalog

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Ident names a table: the parts of its namespace, then its name.
type Ident []string

// Namespace returns the parts in front of the table's name.
func (id Ident) Namespace() []string {
	if len(id) == 0 {
		return nil
	}
	return id[:len(id)-1]
}

// Table returns the table's own name.
func (id Ident) Table() string {
	if len(id) == 0 {
		return ""
	}
	return id[len(id)-1]
}

// String is the name as a user would type it: parts with anything but letters, digits and _ are quoted.
func (id Ident) String() string {
	var b strings.Builder
	for i, p := range id {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(quote(p))
	}
	return b.String()
}

func quote(part string) string {
	plain := part != ""
	for i, r := range part {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			plain = false
			break
		}
	}
	if plain {
		return part
	}
	return `"` + strings.ReplaceAll(part, `"`, `""`) + `"`
}

// maxPart keeps a part short enough for a directory name even if every byte of it must be escaped by three.
const maxPart = 80

// Validate refuses names that no catalog could store faithfully. All others are taken, however odd.
func (id Ident) Validate() error {
	if len(id) < 2 {
		return fmt.Errorf("table name %s: want a namespace and a name: %w", id, ErrPermanent)
	}
	if err := ValidateNamespace(id.Namespace()); err != nil {
		return err
	}
	return validatePart(id.Table(), "table")
}

// ValidateNamespace is Validate for the parts of a namespace.
func ValidateNamespace(ns []string) error {
	if len(ns) == 0 {
		return fmt.Errorf("empty namespace: %w", ErrPermanent)
	}
	for _, p := range ns {
		if err := validatePart(p, "namespace"); err != nil {
			return err
		}
	}
	return nil
}

func validatePart(p, what string) error {
	switch {
	case p == "":
		return fmt.Errorf("empty %s name: %w", what, ErrPermanent)
	case len(p) > maxPart:
		return fmt.Errorf("%s name %.20q… has %d bytes, at most %d are allowed: %w", what, p, len(p), maxPart, ErrPermanent)
	case !utf8.ValidString(p):
		return fmt.Errorf("%s name %q is not valid UTF-8: %w", what, p, ErrPermanent)
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("%s name %q holds a NUL character: %w", what, p, ErrPermanent)
	}
	return nil
}
