package evolve

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

const (
	propFormatVersion = "format-version"
	highestVersion    = 3
)

// upgradeFirst notes the format version that the changes lead to.
func (e *editor) upgradeFirst(c *sinkv1.Change) error {
	text, ok := c.GetSetProperties().GetProperties()[propFormatVersion]
	if !ok {
		return nil
	}
	v, err := strconv.Atoi(strings.TrimSpace(text))
	switch {
	case err != nil || v < 1 || v > highestVersion:
		return fmt.Errorf("property format-version=%s: there are versions 1 to %d", text, highestVersion)
	case v < e.table.FormatVersion:
		return fmt.Errorf("property format-version=%s: the table has version %d, and there is no way back", text, e.table.FormatVersion)
	case v > e.table.FormatVersion:
		e.upgrade = v
	}
	return nil
}

func (e *editor) setProperties(s *sinkv1.SetProperties) error {
	for _, key := range slices.Sorted(maps.Keys(s.GetProperties())) {
		text := s.GetProperties()[key]
		switch key {
		case propFormatVersion: // upgradeFirst
			continue
		case "location":
			return fmt.Errorf("property location: a table stays where it is")
		case "sort-order":
			return fmt.Errorf("property sort-order: ALTER TABLE … WRITE ORDERED BY sets the sort order")
		}
		if e.CheckProperty != nil {
			if err := e.CheckProperty(key, text); err != nil {
				return fmt.Errorf("property %s=%s: %w", key, text, err)
			}
		}
		if e.unset[key] {
			return fmt.Errorf("property %s is set and unset in one statement", key)
		}
		if have, ok := e.table.Properties[key]; ok && have == text {
			delete(e.set, key)
			continue
		}
		e.set[key] = text
	}
	return nil
}

func (e *editor) unsetProperties(u *sinkv1.UnsetProperties) error {
	for _, key := range u.GetNames() {
		if strings.HasPrefix(key, "signet.landed.") {
			return fmt.Errorf("property %s is Signet's record of what has been committed, and stays", key)
		}
		if key == propFormatVersion || key == "location" {
			return fmt.Errorf("property %s is a part of the table and stays", key)
		}
		if _, ok := e.set[key]; ok {
			return fmt.Errorf("property %s is set and unset in one statement", key)
		}
		if _, ok := e.table.Properties[key]; ok {
			e.unset[key] = true
			continue
		}
		if !u.GetIfExists() && !e.again {
			return fmt.Errorf("the table has no property %s; UNSET TBLPROPERTIES IF EXISTS says nothing then", key)
		}
	}
	return nil
}
