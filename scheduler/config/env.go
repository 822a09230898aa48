package config

import (
	"fmt"
	"reflect"
	"strings"
)

// EnvPrefix starts the variables that set configuration keys: SIGNET_EXECUTORS_LOCAL is executors.local.
const EnvPrefix = "SIGNET_"

// fromEnv turns variables into keys. A secret's variable is not read: it becomes a reference to that variable, and with _FILE
// behind it a reference to the file it names. Lists are separated by commas. Variables that resemble no key are somebody else's.
func fromEnv(env []string, seen func(key, from string)) (map[string]any, error) {
	out := map[string]any{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		rest, ok := strings.CutPrefix(name, EnvPrefix)
		if !ok || rest == "" {
			continue
		}
		key, t := findKey(strings.ToLower(rest), configType)
		switch {
		case key == "":
			if near := misspelt(strings.ToLower(rest)); near != "" {
				return nil, fmt.Errorf("%s: unknown variable; did you mean %s?", name, EnvPrefix+strings.ToUpper(near))
			}
			continue
		case t == secretType:
			out[key] = map[string]any{"env": name}
		case t.Kind() == reflect.Slice:
			out[key] = splitList(value)
		default:
			out[key] = value
		}
		if file, ok := strings.CutSuffix(key, "\x00file"); ok {
			delete(out, key)
			key = file
			out[key] = map[string]any{"file": value}
		}
		seen(key, name)
	}
	return out, nil
}

// others are variables of other programs and of other parts of this one that resemble a key.
var others = []string{"executor_", "tls_ca", "tls_server_name", "token", "join_token"}

// misspelt returns the key that a variable was probably meant for. It must be close: to refuse somebody else's is worse than to
// miss a mistake.
func misspelt(name string) string {
	for _, o := range others {
		if strings.HasPrefix(name, o) {
			return ""
		}
	}
	near := nearest(name, scalarKeys())
	if distance(name, near) > 1+len(near)/10 {
		return ""
	}
	return near
}

// findKey matches words joined by underscores with the keys of a struct; both have underscores inside. It returns the dotted key
// and its type. The key of a secret's file ends in \x00file.
func findKey(rest string, t reflect.Type) (string, reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("koanf")
		tail, ok := strings.CutPrefix(rest, key)
		if !ok || key == "-" {
			continue
		}
		if tail == "" && isScalar(f.Type) {
			return key, f.Type
		}
		if tail, ok = strings.CutPrefix(tail, "_"); !ok {
			continue
		}
		if sub, st := findBelow(tail, f.Type); st != nil {
			if strings.HasPrefix(sub, "\x00") {
				return key + sub, st
			}
			return key + "." + sub, st
		}
	}
	return "", nil
}

func findBelow(tail string, t reflect.Type) (string, reflect.Type) {
	switch {
	case t == secretType && tail == "file":
		return "\x00file", reflect.TypeFor[string]()
	case t == secretType:
		return "", nil
	case t.Kind() == reflect.Struct:
		return findKey(tail, t)
	case t.Kind() == reflect.Map && isScalar(t.Elem()):
		if name, ok := strings.CutSuffix(tail, "_file"); ok && t.Elem() == secretType {
			return name + "\x00file", reflect.TypeFor[string]()
		}
		return tail, t.Elem()
	case t.Kind() == reflect.Map:
		// The name may hold underscores: the shortest one that leaves a known key.
		for i := range len(tail) {
			if tail[i] == '_' && i > 0 {
				if sub, st := findBelow(tail[i+1:], t.Elem()); st != nil {
					return tail[:i] + "." + sub, st
				}
			}
		}
	}
	return "", nil
}

func isScalar(t reflect.Type) bool {
	switch {
	case t == secretType:
		return true
	case t.Kind() == reflect.Slice:
		return t.Elem().Kind() == reflect.String
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Map
}

// scalarKeys are the keys, with underscores, that a variable may have been meant for.
func scalarKeys() []string {
	var out []string
	var walk func(prefix string, t reflect.Type)
	walk = func(prefix string, t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			key := f.Tag.Get("koanf")
			switch {
			case key == "-":
			case isScalar(f.Type):
				out = append(out, prefix+key)
			case f.Type.Kind() == reflect.Struct:
				walk(prefix+key+"_", f.Type)
			}
		}
	}
	walk("", configType)
	return out
}

func splitList(s string) []any {
	out := []any{}
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
