package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	bytesType    = reflect.TypeFor[Bytes]()
	durationType = reflect.TypeFor[time.Duration]()
)

// decoder sets a Config from a tree of maps. It collects what is wrong, so that one run tells everything.
type decoder struct {
	origin origins
	errs   []error
}

func (d *decoder) err() error { return errors.Join(d.errs...) }

func (d *decoder) fail(key, format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("%s: %s%s", key, fmt.Sprintf(format, args...), d.origin.suffix(key)))
}

func (d *decoder) decode(prefix string, tree map[string]any, into any) {
	d.structure(prefix, tree, reflect.ValueOf(into).Elem())
}

func (d *decoder) structure(prefix string, tree map[string]any, v reflect.Value) {
	for _, key := range sortedKeys(tree) {
		f, ok := field(v.Type(), key)
		if !ok {
			continue // checkKeys has refused it
		}
		if f.Tag.Get("kind") == "flat" {
			d.flat(join(prefix, key), tree[key], v.FieldByIndex(f.Index))
			continue
		}
		d.value(join(prefix, key), tree[key], v.FieldByIndex(f.Index), f.Tag.Get("kind") == "path")
	}
}

func (d *decoder) value(key string, in any, v reflect.Value, isPath bool) {
	switch {
	case in == nil: // "key:" with nothing behind it leaves the default
	case v.Type() == secretType:
		d.secret(key, in, v)
	case v.Type() == bytesType:
		if n, err := ParseBytes(text(in)); err != nil {
			d.fail(key, "%v", err)
		} else {
			v.SetInt(int64(n))
		}
	case v.Type() == durationType:
		if n, err := time.ParseDuration(text(in)); err != nil {
			d.fail(key, "%q is not a duration; write it like 500ms, 10s or 2m", text(in))
		} else {
			v.SetInt(int64(n))
		}
	default:
		d.plain(key, in, v, isPath)
	}
}

func (d *decoder) plain(key string, in any, v reflect.Value, isPath bool) {
	switch v.Kind() {
	case reflect.Struct, reflect.Map:
		m, ok := in.(map[string]any)
		if !ok {
			d.fail(key, "want keys below it, not one value") // which may be a secret that lost its key
		} else if v.Kind() == reflect.Struct {
			d.structure(key, m, v)
		} else {
			d.table(key, m, v)
		}
	case reflect.Slice:
		d.list(key, in, v, isPath)
	case reflect.String:
		if at, isTime := in.(time.Time); isTime { // as YAML takes it where it stands without quotes
			in = at.Format(time.RFC3339)
		}
		s, ok := in.(string)
		switch {
		case !ok:
			d.fail(key, "%v is not text; put it in quotes", in)
		case isPath:
			d.path(key, s, v)
		default:
			v.SetString(s)
		}
	case reflect.Bool:
		b, err := strconv.ParseBool(text(in))
		if err != nil {
			d.fail(key, "%q: want true or false", text(in))
		}
		v.SetBool(b)
	default:
		n, err := strconv.ParseInt(text(in), 10, 64)
		if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
			d.fail(key, "%q is not a whole number", text(in))
			return
		}
		v.SetInt(n)
	}
}

func (d *decoder) table(key string, in map[string]any, v reflect.Value) {
	out := reflect.MakeMap(v.Type())
	for _, name := range sortedKeys(in) {
		elem := reflect.New(v.Type().Elem()).Elem()
		d.value(join(key, name), in[name], elem, false)
		out.SetMapIndex(reflect.ValueOf(name), elem)
	}
	v.Set(out)
}

func (d *decoder) list(key string, in any, v reflect.Value, isPath bool) {
	items, ok := in.([]any)
	if s, isStrings := in.([]string); isStrings { // flags come like this
		ok = true
		for _, item := range s {
			items = append(items, item)
		}
	}
	if !ok {
		d.fail(key, "want a list, not one value")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		name := fmt.Sprintf("%s[%d]", key, i)
		if from := d.origin.keys[key]; from != "" {
			d.origin.set(name, from)
		}
		d.value(name, item, out.Index(i), isPath)
	}
	v.Set(out)
}

// secret takes a reference only. What stands there instead may be the secret itself: no message repeats it.
func (d *decoder) secret(key string, in any, v reflect.Value) {
	const want = "a secret is given as {file: PATH} or {env: NAME}, never as text"
	m, ok := in.(map[string]any)
	if !ok || len(m) != 1 {
		d.fail(key, want)
		return
	}
	file, isFile := m["file"].(string)
	env, isEnv := m["env"].(string)
	switch {
	case isFile && file != "":
		p := reflect.New(reflect.TypeFor[string]()).Elem()
		d.path(key, file, p)
		v.Set(reflect.ValueOf(SecretFile(p.String())))
	case isEnv && validName(env):
		v.Set(reflect.ValueOf(SecretEnv(env)))
	default:
		d.fail(key, want)
	}
}

func (d *decoder) path(key, s string, v reflect.Value) {
	p := strings.TrimPrefix(s, "file://")
	if p == "" {
		v.SetString("")
		return
	}
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			d.fail(key, "%q: %v", s, err)
			return
		}
		p = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(d.origin.dir(key), p)
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		d.fail(key, "%q: %v", s, err)
		return
	}
	v.SetString(abs)
}

func text(in any) string { return fmt.Sprint(in) }
