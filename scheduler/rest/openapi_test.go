package rest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// schema is the part of JSON Schema that the document uses. An unknown keyword fails the test that reads it: it would check nothing.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 any                `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
	Enum                 []string           `json:"enum"`
	Const                any                `json:"const"`
	Format               string             `json:"format"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	Default              any                `json:"default"`
	Description          string             `json:"description"`
}

type document struct {
	OpenAPI string                                `json:"openapi"`
	Paths   map[string]map[string]json.RawMessage `json:"paths"`
	Parts   struct {
		Schemas   map[string]*schema  `json:"schemas"`
		Responses map[string]response `json:"responses"`
	} `json:"components"`
}

type operation struct {
	Responses map[string]response `json:"responses"`
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]struct {
		Schema *schema `json:"schema"`
	} `json:"content"`
}

func readDocument(t *testing.T) *document {
	t.Helper()
	d := &document{}
	require.NoError(t, json.Unmarshal(Description, d))
	return d
}

// check holds an answer against what the document says about it.
func (d *document) check(t *testing.T, method, path string, status int, contentType string, body []byte) {
	t.Helper()
	raw, ok := d.Paths[path][strings.ToLower(method)]
	require.True(t, ok, "%s %s is not described", method, path)
	var op operation
	require.NoError(t, json.Unmarshal(raw, &op))
	r, ok := op.Responses[fmt.Sprint(status)]
	require.True(t, ok, "%s %s: %d is not described", method, path, status)
	if r.Ref != "" {
		r, ok = d.Parts.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
		require.True(t, ok, r.Ref)
	}
	kind, _, _ := strings.Cut(contentType, ";")
	content, ok := r.Content[kind]
	require.True(t, ok, "%s %s %d: content type %q is not described", method, path, status, contentType)
	if !strings.Contains(kind, "json") {
		return
	}
	var v any
	require.NoError(t, json.Unmarshal(body, &v), "%s", body)
	if err := d.validate(content.Schema, v, "$"); err != nil {
		t.Fatalf("%s %s %d: %v\n%s", method, path, status, err, body)
	}
}

func (d *document) validate(s *schema, v any, at string) error {
	if s.Ref != "" {
		next := d.Parts.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		if next == nil {
			return fmt.Errorf("%s: %s is not there", at, s.Ref)
		}
		return d.validate(next, v, at)
	}
	if !hasType(s.Type, v) {
		return fmt.Errorf("%s: %v is no %v", at, v, s.Type)
	}
	switch v := v.(type) {
	case string:
		if s.Enum != nil && !slices.Contains(s.Enum, v) {
			return fmt.Errorf("%s: %q is none of %v", at, v, s.Enum)
		}
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339Nano, v); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
		}
	case []any:
		for i, item := range v {
			if err := d.validate(s.Items, item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return d.object(s, v, at)
	}
	return nil
}

func (d *document) object(s *schema, v map[string]any, at string) error {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s: %q is missing", at, name)
		}
	}
	for name, item := range v {
		p := s.Properties[name]
		if p == nil {
			switch rest := string(s.AdditionalProperties); rest {
			case "false":
				return fmt.Errorf("%s: %q is not described", at, name)
			case "": // anything
				continue
			default:
				p = &schema{}
				if err := json.Unmarshal(s.AdditionalProperties, p); err != nil {
					return err
				}
			}
		}
		if err := d.validate(p, item, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func hasType(want, v any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return hasType(one, v) })
	}
	switch v := v.(type) {
	case string:
		return want == "string"
	case bool:
		return want == "boolean"
	case float64:
		return want == "number" || want == "integer" && v == float64(int64(v))
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}

// TestDescription_IsStrict: every object says what it may hold, so that an answer with a field too many is noticed.
func TestDescription_IsStrict(t *testing.T) {
	d := readDocument(t)
	require.Equal(t, "3.1.0", d.OpenAPI)
	for name, s := range d.Parts.Schemas {
		if s.Type == "object" {
			require.NotEmpty(t, s.AdditionalProperties, name)
			for p := range s.Properties {
				require.NotNil(t, s.Properties[p], "%s.%s", name, p)
			}
			for _, r := range s.Required {
				require.Contains(t, s.Properties, r, name)
			}
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(mustField(t, Description, "components", "schemas"))))
	dec.DisallowUnknownFields()
	var strict map[string]*schema
	require.NoError(t, dec.Decode(&strict), "a keyword that this test does not know checks nothing")
}

func mustField(t *testing.T, b []byte, path ...string) json.RawMessage {
	t.Helper()
	raw := json.RawMessage(b)
	for _, p := range path {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &m))
		raw = m[p]
	}
	return raw
}

// TestDescription_IsTheOneInTheDocs: docs/openapi.json is what the scheduler serves.
func TestDescription_IsTheOneInTheDocs(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "openapi.json"))
	require.NoError(t, err)
	require.Equal(t, string(Description), string(b), "copy scheduler/rest/openapi.json to docs")
}

func TestValidate_FindsWhatIsWrong(t *testing.T) {
	d := readDocument(t)
	s := d.Parts.Schemas["Stage"]
	good := `{"id":"scheduler","state":"done","plan":"","tasks":[],"tasks_total":0}`
	var v any
	require.NoError(t, json.Unmarshal([]byte(good), &v))
	require.NoError(t, d.validate(s, v, "$"))
	for _, bad := range []string{
		`{"id":"scheduler","state":"done","plan":"","tasks":[]}`,
		`{"id":1.5,"state":"done","plan":"","tasks":[],"tasks_total":0}`,
		`{"id":1,"state":"gone","plan":"","tasks":[],"tasks_total":0}`,
		`{"id":1,"state":"done","plan":"","tasks":null,"tasks_total":0}`,
		`{"id":1,"state":"done","plan":"","tasks":[{"task":1}],"tasks_total":0}`,
		`{"id":1,"state":"done","plan":"","tasks":[],"tasks_total":0,"extra":1}`,
		`{"id":1,"state":"done","plan":"","tasks":[],"tasks_total":0,"metrics":{"tasks_done":1,"attempts":1,"rows":1,"bytes":1,"micros":1,"started":"noon"}}`,
	} {
		require.NoError(t, json.Unmarshal([]byte(bad), &v))
		require.Error(t, d.validate(s, v, "$"), bad)
	}
}
