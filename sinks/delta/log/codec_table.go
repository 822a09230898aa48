package log

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
