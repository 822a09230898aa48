package glue

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/signet-io/signet/catalog"
)

// usable refuses names that Glue would change or cannot hold: two names that differ in case only would be one table there.
func usable(id catalog.Ident) error {
	if err := id.Validate(); err != nil {
		return err
	}
	if err := usableNamespace(id.Namespace()); err != nil {
		return err
	}
	return usablePart("table", id.Table())
}

func usableNamespace(ns []string) error {
	if err := catalog.ValidateNamespace(ns); err != nil {
		return err
	}
	if len(ns) > 1 {
		return fmt.Errorf("namespace %s has %d levels, databases of AWS Glue have one: %w", catalog.Ident(ns), len(ns), catalog.ErrPermanent)
	}
	return usablePart("namespace", ns[0])
}

func usablePart(what, name string) error {
	if lower := strings.ToLower(name); lower != name {
		return fmt.Errorf("%s name %q: AWS Glue keeps names in lower case only; write %q: %w", what, name, lower, catalog.ErrPermanent)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%s name %q: AWS Glue holds no control characters: %w", what, name, catalog.ErrPermanent)
	}
	return nil
}
