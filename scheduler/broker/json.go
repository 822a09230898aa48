package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// uniqueMembers refuses a document in which an object has one member twice: two readers could take different ones.
func uniqueMembers(doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := uniqueValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// maxDepth is how deep a request may nest: a schema of a hundred structs in each other.
const maxDepth = 1000

func uniqueValue(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return nil
	}
	var seen map[string]bool
	if delim == '{' {
		seen = map[string]bool{}
	}
	for d.More() {
		if seen != nil {
			k, err := d.Token()
			if err != nil {
				return err
			}
			name := k.(string) // the decoder lets nothing else through here
			if seen[name] {
				return fmt.Errorf("member %q stands twice", name)
			}
			seen[name] = true
		}
		if err := uniqueValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing delimiter
	return err
}

// members takes an object apart and refuses every member that is not allowed by its exact name: a reader that ignores case, or
// knows more members, would see another request than was vetted.
func members(doc json.RawMessage, allowed ...string) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(doc, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("null instead of an object")
	}
	for name := range m {
		if !slices.Contains(allowed, name) {
			return nil, fmt.Errorf("member %q is not allowed", name)
		}
	}
	return m, nil
}

// member decodes one member into v; false where it is absent or null.
func member(m map[string]json.RawMessage, name string, v any) (bool, error) {
	raw, ok := m[name]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return false, fmt.Errorf("member %q: %w", name, err)
	}
	return true, nil
}

func compact(doc []byte) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, doc); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
