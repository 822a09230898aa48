package log

import (
	"bytes"
	"fmt"
)

// ParseCommit reads the lines of a commit file, or of a V2 checkpoint in JSON, in their order. Its error names the line and wraps ErrCorrupt.
func ParseCommit(data []byte) ([]Action, error) {
	out := make([]Action, 0, min(bytes.Count(data, []byte{'\n'}), len(data)/64)+1) // lines may be empty
	r := &jsonReader{}
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		r.data, r.at = line, 0
		var err error
		if out, err = parseLine(out, r); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrCorrupt, number, err)
		}
	}
	return out, nil
}

// parseLine reads the action of a line. Writers that put all kinds into one object leave the others null; more than one is read as if each had its own line.
func parseLine(out []Action, r *jsonReader) ([]Action, error) {
	if r.peek() == 0 && r.at >= len(r.data) {
		return out, nil // an empty line
	}
	if r.peek() != '{' {
		return nil, r.wrong("an object")
	}
	err := r.object(func(name string) error {
		if r.null() {
			return nil
		}
		a, err := parseAction(r, name)
		if err == nil {
			out = append(out, a)
		}
		return err
	})
	if err == nil {
		err = r.end()
	}
	return out, err
}

func parseAction(r *jsonReader, name string) (a Action, err error) {
	switch name {
	case "commitInfo":
		a.CommitInfo, err = r.commitInfo()
	case "protocol":
		a.Protocol, err = r.protocol()
	case "metaData":
		a.Metadata, err = r.metadata()
	case "add":
		a.Add, err = r.add()
	case "remove":
		a.Remove, err = r.remove()
	case "txn":
		a.Txn, err = r.txn()
	case "domainMetadata":
		a.DomainMetadata, err = r.domainMetadata()
	case "cdc":
		a.CDC, err = r.cdc()
	case "sidecar":
		a.Sidecar, err = r.sidecar()
	case "checkpointMetadata":
		a.Checkpoint, err = r.checkpointMetadata()
	default:
		a.Unknown = &Unknown{Name: name}
		a.Unknown.Body, err = r.raw()
	}
	return a, err
}

// extra keeps a member that this package does not know.
func (r *jsonReader) extra(to *Extra, name string) error {
	v, err := r.raw()
	if err != nil {
		return err
	}
	if *to == nil {
		*to = Extra{}
	}
	(*to)[name] = v
	return nil
}

// texts reads a map of strings. Numbers and booleans are taken as their text, which is how Spark reads them; nested values are an error.
func (r *jsonReader) texts() (map[string]*string, error) {
	if r.null() {
		return nil, nil
	}
	out := map[string]*string{}
	err := r.object(func(name string) error {
		v, err := optional(r, r.scalar)
		out[name] = v
		return err
	})
	return out, err
}

func (r *jsonReader) scalar() (string, error) {
	switch r.peek() {
	case '"':
		return r.text()
	case '{', '[':
		return "", r.not("a string")
	}
	v, err := r.raw()
	return string(v), err
}

// settings reads a map of strings without nulls, which are left out.
func (r *jsonReader) settings() (map[string]string, error) {
	texts, err := r.texts()
	out := make(map[string]string, len(texts))
	for name, v := range texts {
		if v != nil {
			out[name] = *v
		}
	}
	return out, err
}

// loose reads a map of strings where anything may stand; what is no string is kept as its JSON text.
func (r *jsonReader) loose() (map[string]string, error) {
	if r.null() {
		return nil, nil
	}
	out := map[string]string{}
	err := r.object(func(name string) error {
		if r.peek() == '"' {
			v, err := r.text()
			out[name] = v
			return err
		}
		v, err := r.raw()
		out[name] = string(v)
		return err
	})
	return out, err
}

func (r *jsonReader) path(path, raw *string) error {
	text, err := r.text()
	if err == nil {
		*path, *raw, err = decodePath(text)
	}
	return err
}

// missing refuses the first field that is empty, or false: each is followed by its name.
func missing(fields ...any) error {
	for i := 0; i < len(fields); i += 2 {
		if text, ok := fields[i].(string); ok && text == "" || fields[i] == false {
			return &fieldError{path: fmt.Sprint(fields[i+1]), err: errMissing}
		}
	}
	return nil
}

// fieldNames are names of which no copy is made for each action: those of the files' actions.
var fieldNames = func() map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		"add", "remove", "path", "partitionValues", "size", "modificationTime", "deletionTimestamp", "dataChange", "extendedFileMetadata", "stats", "tags", "deletionVector",
		"baseRowId", "defaultRowCommitVersion", "clusteringProvider", "storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality", "maxRowIndex",
	} {
		out[name] = name
	}
	return out
}()
