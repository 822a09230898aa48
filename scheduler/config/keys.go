package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

var (
	secretType = reflect.TypeFor[Secret]()
	configType = reflect.TypeFor[Config]()
)

// field finds the struct field of a key.
func field(t reflect.Type, key string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("koanf") == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if k := t.Field(i).Tag.Get("koanf"); k != "-" && k != "" {
			out = append(out, k)
		}
	}
	return out
}

// checkKeys refuses keys that mean nothing.
func checkKeys(tree map[string]any) error { return checkLevel("", tree, configType) }

func checkLevel(prefix string, v any, t reflect.Type) error {
	switch {
	case t == secretType:
		return nil // the decoder checks it
	case t.Kind() == reflect.Slice:
		items, _ := v.([]any)
		for i, item := range items {
			if err := checkLevel(fmt.Sprintf("%s[%d]", prefix, i), item, t.Elem()); err != nil {
				return err
			}
		}
		return nil
	case t.Kind() != reflect.Struct && t.Kind() != reflect.Map:
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range sortedKeys(m) {
		name := join(prefix, key)
		var elem reflect.Type
		if t.Kind() == reflect.Map {
			if !validName(key) {
				return fmt.Errorf("%s: the name %q: want 1 to 64 letters, digits, _ and -", prefix, key)
			}
			elem = t.Elem()
		} else {
			f, ok := field(t, key)
			if !ok || key == "-" {
				return fmt.Errorf("%s: unknown key%s", name, suggest(key, keysOf(t)))
			}
			if f.Tag.Get("kind") == "flat" {
				continue // the decoder reads names with dots, and the validator knows them
			}
			elem = f.Type
		}
		if err := checkLevel(name, m[key], elem); err != nil {
			return err
		}
	}
	return nil
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

func validName(s string) bool {
	return len(s) > 0 && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// suggest names the nearest of the known words, or all of them where none is near.
func suggest(word string, known []string) string {
	if w := nearest(word, known); w != "" {
		return fmt.Sprintf("; did you mean %s?", w)
	}
	known = slices.Sorted(slices.Values(known))
	return "; known here: " + strings.Join(known, ", ")
}

// nearest is the known word within a third of its length in edits, "" if there is none.
func nearest(word string, known []string) string {
	best, bestDist := "", 1<<30
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < bestDist {
			best, bestDist = k, d
		}
	}
	if bestDist > 1+len(best)/4 {
		return ""
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diag+cost)
		}
	}
	return row[len(b)]
}
