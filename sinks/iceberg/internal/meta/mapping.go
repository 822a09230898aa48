package meta

import (
	"encoding/json"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// NameMapping is the property that names the fields of data files without field ids.
const NameMapping = "schema.name-mapping.default"

type jsonMapped struct {
	ID     *int32       `json:"field-id"`
	Names  []string     `json:"names"`
	Fields []jsonMapped `json:"fields"`
}

// ParseNameMapping reads the property's text: which names each field may have in files that carry no field ids.
func ParseNameMapping(text string) ([]*planv1.FieldNames, error) {
	var j []jsonMapped
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return nil, fmt.Errorf("property %s: %w", NameMapping, err)
	}
	var out []*planv1.FieldNames
	return collectNames(j, out, 0)
}

func collectNames(j []jsonMapped, out []*planv1.FieldNames, depth int) ([]*planv1.FieldNames, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("property %s: it is nested deeper than %d", NameMapping, maxDepth)
	}
	var err error
	for _, m := range j {
		if m.ID != nil {
			out = append(out, &planv1.FieldNames{FieldId: *m.ID, Names: m.Names})
		}
		if out, err = collectNames(m.Fields, out, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}
