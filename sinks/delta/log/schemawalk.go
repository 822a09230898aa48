package log

import "fmt"

// maxSchemaDepth bounds how deep types may be nested.
const maxSchemaDepth = 200

// walkSchema visits what stands in a schemaString at every depth: each type that is neither struct nor array nor map, with the column in which it is, and each key of a column's
// metadata.
func walkSchema(schema string, onType, onKey func(column, what string)) error {
	w := &schemaWalk{r: &jsonReader{data: []byte(schema)}, onType: onType, onKey: onKey}
	if err := w.datatype("", 0); err != nil {
		return err
	}
	return w.r.end()
}

type schemaWalk struct {
	r             *jsonReader
	onType, onKey func(column, what string)
}

// datatype reads a type: a name, or an object whose members say what is in it.
func (w *schemaWalk) datatype(column string, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("types are nested deeper than %d", maxSchemaDepth)
	}
	if w.r.peek() == '"' {
		kind, err := w.r.text()
		if err == nil {
			w.onType(column, kind)
		}
		return err
	}
	kind := ""
	err := w.r.object(func(name string) (err error) {
		switch name {
		case "type":
			kind, err = w.r.text()
			return err
		case "fields":
			return w.r.array(func() error { return w.field(column, depth+1) })
		case "elementType":
			return w.datatype(column+".element", depth+1)
		case "keyType":
			return w.datatype(column+".key", depth+1)
		case "valueType":
			return w.datatype(column+".value", depth+1)
		}
		return w.r.skip(0)
	})
	if err == nil && kind != "struct" && kind != "array" && kind != "map" {
		w.onType(column, kind) // as user-defined types are written
	}
	return err
}

func (w *schemaWalk) field(parent string, depth int) error {
	column, start := "", w.r.at
	err := w.r.object(func(name string) (err error) { // the name comes before the rest, in whatever order they stand
		if name == "name" {
			column, err = w.r.text()
			return err
		}
		return w.r.skip(0)
	})
	if err != nil {
		return err
	}
	if parent != "" {
		column = parent + "." + column
	}
	w.r.at = start
	typed := false
	err = w.r.object(func(name string) error {
		switch name {
		case "type":
			typed = true
			return w.datatype(column, depth)
		case "metadata":
			return w.r.object(func(key string) error {
				w.onKey(column, key)
				return w.r.skip(0)
			})
		}
		return w.r.skip(0)
	})
	if err == nil && !typed {
		err = fmt.Errorf("column %s has no type", column)
	}
	return err
}
