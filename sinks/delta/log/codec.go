package log

import (
	"bytes"
	"errors"
	"fmt"
)

// ParseCommit reads the lines of a commit file, or of a V2 checkpoint in JSON, in their order. Its error names the line and wraps ErrCorrupt.
func ParseCommit(data []byte) ([]Action, error) {
	out := make([]Action, 0, min(bytes.Count(data, []byte{'\n'}), len(data)/64)+1) // lines may be empty
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		var err error
		if out, err = parseLine(out, line); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrCorrupt, number, err)
		}
	}
	return out, nil
}

// parseLine reads the action of a line. Writers that put all kinds into one object leave the others null; more than one is read as if each had its own line.
func parseLine(out []Action, line []byte) ([]Action, error) {
	r := &jsonReader{data: line}
	if r.peek() == 0 && r.at >= len(line) {
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
		return "", r.wrong("a string")
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

func missing(fields ...any) error {
	for i := 0; i < len(fields); i += 2 {
		if text, ok := fields[i].(string); ok && text == "" || fields[i] == false {
			return fmt.Errorf("%v is missing", fields[i+1])
		}
	}
	return nil
}

// commitInfo may hold anything: what has another type than this package expects is kept among the fields that it does not know.
func (r *jsonReader) commitInfo() (*CommitInfo, error) {
	c := &CommitInfo{}
	if r.peek() != '{' {
		v, err := r.raw()
		c.Extra = Extra{"commitInfo": v}
		return c, err
	}
	return c, r.object(func(name string) error {
		start := r.at
		known, err := r.commitInfoField(c, name)
		if known && err == nil {
			return nil
		}
		r.at = start
		return r.extra(&c.Extra, name)
	})
}

func (r *jsonReader) commitInfoField(c *CommitInfo, name string) (known bool, err error) {
	switch name {
	case "timestamp":
		c.Timestamp, err = optional(r, r.integer)
	case "inCommitTimestamp":
		c.InCommitTimestamp, err = optional(r, r.integer)
	case "operation":
		err = orZero(r, &c.Operation, r.text)
	case "operationParameters":
		err = orZero(r, &c.OperationParameters, r.loose)
	case "operationMetrics":
		err = orZero(r, &c.OperationMetrics, r.loose)
	case "readVersion":
		c.ReadVersion, err = optional(r, r.integer)
	case "isolationLevel":
		c.IsolationLevel, err = optional(r, r.text)
	case "isBlindAppend":
		c.IsBlindAppend, err = optional(r, r.boolean)
	case "engineInfo":
		c.EngineInfo, err = optional(r, r.text)
	case "txnId":
		c.TxnID, err = optional(r, r.text)
	case "userMetadata":
		c.UserMetadata, err = optional(r, r.text)
	default:
		return false, nil
	}
	return true, err
}

func (r *jsonReader) protocol() (*Protocol, error) {
	p := &Protocol{}
	var reader, writer *int32
	err := r.object(func(name string) (err error) {
		switch name {
		case "minReaderVersion":
			reader, err = optional(r, r.integer32)
		case "minWriterVersion":
			writer, err = optional(r, r.integer32)
		case "readerFeatures":
			p.ReaderFeatures, err = r.strings()
		case "writerFeatures":
			p.WriterFeatures, err = r.strings()
		default:
			err = r.extra(&p.Extra, name)
		}
		return err
	})
	if err == nil {
		err = missing(reader != nil, "minReaderVersion", writer != nil, "minWriterVersion")
	}
	if err != nil {
		return nil, err
	}
	p.MinReaderVersion, p.MinWriterVersion = int(*reader), int(*writer)
	return p, nil
}

func (r *jsonReader) metadata() (*Metadata, error) {
	m := &Metadata{}
	err := r.object(func(name string) (err error) {
		switch name {
		case "id":
			err = orZero(r, &m.ID, r.text)
		case "name":
			m.Name, err = optional(r, r.text)
		case "description":
			m.Description, err = optional(r, r.text)
		case "format":
			err = r.object(func(name string) (err error) {
				switch name {
				case "provider":
					err = orZero(r, &m.Format.Provider, r.text)
				case "options":
					m.Format.Options, err = r.settings()
				default:
					err = r.skip(0)
				}
				return err
			})
		case "schemaString":
			err = orZero(r, &m.SchemaString, r.text)
		case "partitionColumns":
			m.PartitionColumns, err = r.strings()
		case "configuration":
			m.Configuration, err = r.settings()
		case "createdTime":
			m.CreatedTime, err = optional(r, r.integer)
		default:
			err = r.extra(&m.Extra, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, missing(m.ID, "id")
}

func (r *jsonReader) deletionVector() (*DeletionVector, error) {
	d := &DeletionVector{}
	err := r.object(func(name string) (err error) {
		switch name {
		case "storageType":
			err = orZero(r, &d.StorageType, r.text)
		case "pathOrInlineDv":
			err = orZero(r, &d.PathOrInlineDv, r.text)
		case "offset":
			d.Offset, err = optional(r, r.integer32)
		case "sizeInBytes":
			err = orZero(r, &d.SizeInBytes, r.integer32)
		case "cardinality":
			err = orZero(r, &d.Cardinality, r.integer)
		case "maxRowIndex":
			d.MaxRowIndex, err = optional(r, r.integer)
		default:
			err = r.extra(&d.Extra, name)
		}
		return err
	})
	if err == nil {
		err = d.check()
	}
	return d, err
}

// check refuses a vector that nobody could find; one with storage type ” is what some writers made of none.
func (d *DeletionVector) check() error {
	switch {
	case d.StorageType != "u" && d.StorageType != "i" && d.StorageType != "p":
		return fmt.Errorf("a deletion vector of storage type %.20q: want u, i or p", d.StorageType)
	case d.PathOrInlineDv == "":
		return errors.New("a deletion vector without pathOrInlineDv")
	case d.Cardinality < 0 || d.SizeInBytes < 0 || d.Offset != nil && *d.Offset < 0:
		return errors.New("a deletion vector with a negative number")
	}
	return nil
}

func (r *jsonReader) add() (*Add, error) {
	a := &Add{}
	err := r.object(func(name string) (err error) {
		switch name {
		case "path":
			err = r.path(&a.Path, &a.RawPath)
		case "partitionValues":
			a.PartitionValues, err = r.texts()
		case "size":
			err = orZero(r, &a.Size, r.integer)
		case "modificationTime":
			err = orZero(r, &a.ModificationTime, r.integer)
		case "dataChange":
			err = orZero(r, &a.DataChange, r.boolean)
		case "stats":
			a.Stats, err = optional(r, r.text)
		case "tags":
			a.Tags, err = r.texts()
		case "deletionVector":
			err = orZero(r, &a.DeletionVector, r.deletionVector)
		case "baseRowId":
			a.BaseRowID, err = optional(r, r.integer)
		case "defaultRowCommitVersion":
			a.DefaultRowCommitVersion, err = optional(r, r.integer)
		case "clusteringProvider":
			a.ClusteringProvider, err = optional(r, r.text)
		default:
			err = r.extra(&a.Extra, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if a.Size < 0 {
		return nil, fmt.Errorf("%.200q has a negative size", a.Path)
	}
	return a, missing(a.Path, "path")
}

func (r *jsonReader) remove() (*Remove, error) {
	m := &Remove{}
	err := r.object(func(name string) (err error) {
		switch name {
		case "path":
			err = r.path(&m.Path, &m.RawPath)
		case "deletionTimestamp":
			m.DeletionTimestamp, err = optional(r, r.integer)
		case "dataChange":
			err = orZero(r, &m.DataChange, r.boolean)
		case "extendedFileMetadata":
			m.ExtendedFileMetadata, err = optional(r, r.boolean)
		case "partitionValues":
			m.PartitionValues, err = r.texts()
		case "size":
			m.Size, err = optional(r, r.integer)
		case "stats":
			m.Stats, err = optional(r, r.text)
		case "tags":
			m.Tags, err = r.texts()
		case "deletionVector":
			err = orZero(r, &m.DeletionVector, r.deletionVector)
		case "baseRowId":
			m.BaseRowID, err = optional(r, r.integer)
		case "defaultRowCommitVersion":
			m.DefaultRowCommitVersion, err = optional(r, r.integer)
		default:
			err = r.extra(&m.Extra, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, missing(m.Path, "path")
}

func (r *jsonReader) txn() (*Txn, error) {
	t := &Txn{}
	var version *int64
	err := r.object(func(name string) (err error) {
		switch name {
		case "appId":
			err = orZero(r, &t.AppID, r.text)
		case "version":
			version, err = optional(r, r.integer)
		case "lastUpdated":
			t.LastUpdated, err = optional(r, r.integer)
		default:
			err = r.extra(&t.Extra, name)
		}
		return err
	})
	if err == nil {
		err = missing(version != nil, "version")
	}
	if err != nil {
		return nil, err
	}
	t.Version = *version
	return t, nil
}

func (r *jsonReader) domainMetadata() (*DomainMetadata, error) {
	d := &DomainMetadata{}
	err := r.object(func(name string) (err error) {
		switch name {
		case "domain":
			err = orZero(r, &d.Domain, r.text)
		case "configuration":
			err = orZero(r, &d.Configuration, r.text)
		case "removed":
			err = orZero(r, &d.Removed, r.boolean)
		default:
			err = r.extra(&d.Extra, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, missing(d.Domain, "domain")
}

func (r *jsonReader) cdc() (*CDC, error) {
	c := &CDC{}
	err := r.object(func(name string) (err error) {
		switch name {
		case "path":
			err = r.path(&c.Path, &c.RawPath)
		case "partitionValues":
			c.PartitionValues, err = r.texts()
		case "size":
			err = orZero(r, &c.Size, r.integer)
		case "dataChange":
			err = orZero(r, &c.DataChange, r.boolean)
		case "tags":
			c.Tags, err = r.texts()
		default:
			err = r.extra(&c.Extra, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, missing(c.Path, "path")
}

func (r *jsonReader) sidecar() (*Sidecar, error) {
	s := &Sidecar{}
	err := r.object(func(name string) (err error) {
		switch name {
		case "path":
			var raw string
			err = r.path(&s.Path, &raw)
		case "sizeInBytes":
			err = orZero(r, &s.SizeInBytes, r.integer)
		case "modificationTime":
			err = orZero(r, &s.ModificationTime, r.integer)
		case "tags":
			s.Tags, err = r.texts()
		default:
			err = r.extra(&s.Extra, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, missing(s.Path, "path")
}

func (r *jsonReader) checkpointMetadata() (*CheckpointMetadata, error) {
	c := &CheckpointMetadata{}
	return c, r.object(func(name string) (err error) {
		switch name {
		case "version":
			err = orZero(r, &c.Version, r.integer)
		case "tags":
			c.Tags, err = r.texts()
		default:
			err = r.extra(&c.Extra, name)
		}
		return err
	})
}
