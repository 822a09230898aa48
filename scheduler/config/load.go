package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// maxFile bounds the configuration file: a path to something else should say so.
const maxFile = 1 << 20

// Load reads the file (none if path is ""), lays the SIGNET_* variables of env over it and then the flags, fills in defaults and
// validates the whole. Flags are named by their keys, as in "executors.local". Paths in the file are relative to the file's
// directory, all others to the working directory.
func Load(path string, env []string, flags map[string]any) (*Config, error) {
	k := koanf.New(".")
	origin := origins{}
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		path = abs
		tree, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
		// Here, not in the merged whole: koanf would take a dot in a name for a level.
		if err := checkKeys(tree); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
		origin.file = path
		if err := k.Load(confmap.Provider(tree, ""), nil); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
	}
	vars, err := fromEnv(env, origin.set)
	if err != nil {
		return nil, err
	}
	for key := range flags {
		origin.set(key, "flag")
	}
	// What is set again is set as a whole: a reference to a variable must not mix with one to a file.
	for key := range origin.keys {
		k.Delete(key)
	}
	if err := errors.Join(k.Load(confmap.Provider(vars, "."), nil), k.Load(confmap.Provider(maps.Clone(flags), "."), nil)); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if err := checkKeys(k.Raw()); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return build(path, k.Raw(), origin)
}

func build(path string, tree map[string]any, origin origins) (*Config, error) {
	c := base()
	d := decoder{origin: origin}
	d.decode("", tree, c)
	if err := d.err(); err != nil {
		return nil, fmt.Errorf("configuration%s: %w", at(path), err)
	}
	c.Path = path
	c.fill()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configuration%s: %w", at(path), err)
	}
	return c, nil
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return " " + path
}

func readFile(path string) (map[string]any, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.Size() > maxFile {
		return nil, fmt.Errorf("%d bytes; is it the right file?", fi.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tree, err := yaml.Parser().Unmarshal(b)
	if err != nil {
		return nil, fmt.Errorf("no valid YAML: %w", err)
	}
	return tree, nil
}

// origins remembers where a key's value came from: for messages, and for what a path is relative to.
type origins struct {
	file string
	keys map[string]string
}

func (o *origins) set(key, from string) {
	if o.keys == nil {
		o.keys = map[string]string{}
	}
	o.keys[key] = from
}

// dir is what a relative path at this key is relative to.
func (o *origins) dir(key string) string {
	if o.keys[key] == "" && o.file != "" {
		return filepath.Dir(o.file)
	}
	return "."
}

func (o *origins) suffix(key string) string {
	if from := o.keys[key]; from != "" {
		return " (from " + from + ")"
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
