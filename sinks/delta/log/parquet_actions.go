package log

import "fmt"

// The columns of each action. Its key comes first: a row with one has the action.

func (g *rowGroup) adds() error {
	add := func(a *Action) *Add { return a.Add }
	vector := func(a *Action) *DeletionVector {
		if a.Add == nil {
			return nil
		}
		return a.Add.DeletionVector
	}
	return run(
		func() error {
			return g.each("add.path", func(a *Action, c *cell) (err error) {
				v := &Add{}
				v.Path, v.RawPath, err = decodePath(text(c))
				a.Add = v
				return err
			})
		},
		g.textMap("add.partitionValues", func(a *Action, m map[string]*string) {
			if a.Add != nil {
				a.Add.PartitionValues = m
			}
		}),
		field(g, "add.size", add, func(v *Add, c *cell) { v.Size = c.number }),
		field(g, "add.modificationTime", add, func(v *Add, c *cell) { v.ModificationTime = c.number }),
		field(g, "add.dataChange", add, func(v *Add, c *cell) { v.DataChange = c.number != 0 }),
		field(g, "add.stats", add, func(v *Add, c *cell) { v.Stats = textPtr(c) }),
		g.textMap("add.tags", func(a *Action, m map[string]*string) {
			if a.Add != nil {
				a.Add.Tags = m
			}
		}),
		field(g, "add.deletionVector.storageType", add, func(v *Add, c *cell) { v.DeletionVector = &DeletionVector{StorageType: text(c)} }),
		func() error { return g.vector("add", vector) },
		field(g, "add.baseRowId", add, func(v *Add, c *cell) { v.BaseRowID = numberPtr(c) }),
		field(g, "add.defaultRowCommitVersion", add, func(v *Add, c *cell) { v.DefaultRowCommitVersion = numberPtr(c) }),
		field(g, "add.clusteringProvider", add, func(v *Add, c *cell) { v.ClusteringProvider = textPtr(c) }),
		func() error {
			return g.checkVectors(func(a *Action) **DeletionVector {
				if a.Add == nil {
					return nil
				}
				return &a.Add.DeletionVector
			})
		},
	)
}

func (g *rowGroup) vector(of string, vector func(*Action) *DeletionVector) error {
	prefix := of + ".deletionVector."
	return run(
		field(g, prefix+"pathOrInlineDv", vector, func(v *DeletionVector, c *cell) { v.PathOrInlineDv = text(c) }),
		field(g, prefix+"offset", vector, func(v *DeletionVector, c *cell) {
			n := int32(c.number)
			v.Offset = &n
		}),
		field(g, prefix+"sizeInBytes", vector, func(v *DeletionVector, c *cell) { v.SizeInBytes = int32(c.number) }),
		field(g, prefix+"cardinality", vector, func(v *DeletionVector, c *cell) { v.Cardinality = c.number }),
		field(g, prefix+"maxRowIndex", vector, func(v *DeletionVector, c *cell) { v.MaxRowIndex = numberPtr(c) }),
	)
}

// checkVectors refuses vectors that nobody could find. One without anything in it is what some writers made of none.
func (g *rowGroup) checkVectors(of func(*Action) **DeletionVector) error {
	for i := range g.actions {
		v := of(&g.actions[i])
		if v == nil || *v == nil {
			continue
		}
		if (*v).StorageType == "" && (*v).PathOrInlineDv == "" && (*v).Cardinality == 0 {
			*v = nil
			continue
		}
		if err := (*v).check(); err != nil {
			return err
		}
	}
	return nil
}

func (g *rowGroup) removes() error {
	remove := func(a *Action) *Remove { return a.Remove }
	vector := func(a *Action) *DeletionVector {
		if a.Remove == nil {
			return nil
		}
		return a.Remove.DeletionVector
	}
	return run(
		func() error {
			return g.each("remove.path", func(a *Action, c *cell) (err error) {
				v := &Remove{}
				v.Path, v.RawPath, err = decodePath(text(c))
				a.Remove = v
				return err
			})
		},
		field(g, "remove.deletionTimestamp", remove, func(v *Remove, c *cell) { v.DeletionTimestamp = numberPtr(c) }),
		field(g, "remove.dataChange", remove, func(v *Remove, c *cell) { v.DataChange = c.number != 0 }),
		field(g, "remove.extendedFileMetadata", remove, func(v *Remove, c *cell) { v.ExtendedFileMetadata = boolPtr(c) }),
		g.textMap("remove.partitionValues", func(a *Action, m map[string]*string) {
			if a.Remove != nil {
				a.Remove.PartitionValues = m
			}
		}),
		field(g, "remove.size", remove, func(v *Remove, c *cell) { v.Size = numberPtr(c) }),
		field(g, "remove.deletionVector.storageType", remove, func(v *Remove, c *cell) { v.DeletionVector = &DeletionVector{StorageType: text(c)} }),
		func() error { return g.vector("remove", vector) },
		field(g, "remove.baseRowId", remove, func(v *Remove, c *cell) { v.BaseRowID = numberPtr(c) }),
		field(g, "remove.defaultRowCommitVersion", remove, func(v *Remove, c *cell) { v.DefaultRowCommitVersion = numberPtr(c) }),
		func() error {
			return g.checkVectors(func(a *Action) **DeletionVector {
				if a.Remove == nil {
					return nil
				}
				return &a.Remove.DeletionVector
			})
		},
	)
}

func (g *rowGroup) protocol() error {
	protocol := func(a *Action) *Protocol { return a.Protocol }
	return run(
		func() error {
			return g.each("protocol.minReaderVersion", func(a *Action, c *cell) error {
				a.Protocol = &Protocol{MinReaderVersion: int(c.number)}
				return nil
			})
		},
		field(g, "protocol.minWriterVersion", protocol, func(v *Protocol, c *cell) { v.MinWriterVersion = int(c.number) }),
		g.textList("protocol.readerFeatures", func(a *Action, s string) {
			if a.Protocol != nil {
				a.Protocol.ReaderFeatures = append(a.Protocol.ReaderFeatures, s)
			}
		}),
		g.textList("protocol.writerFeatures", func(a *Action, s string) {
			if a.Protocol != nil {
				a.Protocol.WriterFeatures = append(a.Protocol.WriterFeatures, s)
			}
		}),
		func() error {
			for i := range g.actions {
				if p := g.actions[i].Protocol; p != nil {
					if err := g.features(p); err != nil {
						return err
					}
				}
			}
			return nil
		},
	)
}

// features demands the lists of the versions that have them: a table must not pass for one without features.
func (g *rowGroup) features(p *Protocol) error {
	for _, list := range []struct {
		name  string
		has   bool
		value *[]string
	}{{"protocol.readerFeatures", p.MinReaderVersion >= 3, &p.ReaderFeatures}, {"protocol.writerFeatures", p.MinWriterVersion >= 7, &p.WriterFeatures}} {
		if _, ok := g.columns[list.name+"[]"]; list.has && !ok {
			return fmt.Errorf("%s is missing", list.name)
		}
		if list.has && *list.value == nil {
			*list.value = []string{}
		}
	}
	return nil
}

func (g *rowGroup) metadata() error {
	metadata := func(a *Action) *Metadata { return a.Metadata }
	type maps struct{ options, configuration map[string]*string }
	byRow := map[*Metadata]*maps{}
	of := func(a *Action) *maps {
		if a.Metadata == nil {
			return &maps{}
		}
		if byRow[a.Metadata] == nil {
			byRow[a.Metadata] = &maps{}
		}
		return byRow[a.Metadata]
	}
	return run(
		func() error {
			return g.each("metaData.id", func(a *Action, c *cell) error {
				a.Metadata = &Metadata{ID: text(c), PartitionColumns: []string{}}
				return nil
			})
		},
		field(g, "metaData.name", metadata, func(v *Metadata, c *cell) { v.Name = textPtr(c) }),
		field(g, "metaData.description", metadata, func(v *Metadata, c *cell) { v.Description = textPtr(c) }),
		field(g, "metaData.format.provider", metadata, func(v *Metadata, c *cell) { v.Format.Provider = text(c) }),
		g.textMap("metaData.format.options", func(a *Action, m map[string]*string) { of(a).options = m }),
		field(g, "metaData.schemaString", metadata, func(v *Metadata, c *cell) { v.SchemaString = text(c) }),
		g.textList("metaData.partitionColumns", func(a *Action, s string) {
			if a.Metadata != nil {
				a.Metadata.PartitionColumns = append(a.Metadata.PartitionColumns, s)
			}
		}),
		g.textMap("metaData.configuration", func(a *Action, m map[string]*string) { of(a).configuration = m }),
		field(g, "metaData.createdTime", metadata, func(v *Metadata, c *cell) { v.CreatedTime = numberPtr(c) }),
		func() error {
			for i := range g.actions {
				if m := g.actions[i].Metadata; m != nil {
					m.Format.Options, m.Configuration = withoutNulls(of(&g.actions[i]).options), withoutNulls(of(&g.actions[i]).configuration)
				}
			}
			return nil
		},
	)
}

func withoutNulls(m map[string]*string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

func (g *rowGroup) txns() error {
	txn := func(a *Action) *Txn { return a.Txn }
	return run(
		func() error {
			return g.each("txn.appId", func(a *Action, c *cell) error {
				a.Txn = &Txn{AppID: text(c)}
				return nil
			})
		},
		field(g, "txn.version", txn, func(v *Txn, c *cell) { v.Version = c.number }),
		field(g, "txn.lastUpdated", txn, func(v *Txn, c *cell) { v.LastUpdated = numberPtr(c) }),
	)
}

func (g *rowGroup) domains() error {
	domain := func(a *Action) *DomainMetadata { return a.DomainMetadata }
	return run(
		func() error {
			return g.each("domainMetadata.domain", func(a *Action, c *cell) error {
				a.DomainMetadata = &DomainMetadata{Domain: text(c)}
				return nil
			})
		},
		field(g, "domainMetadata.configuration", domain, func(v *DomainMetadata, c *cell) { v.Configuration = text(c) }),
		field(g, "domainMetadata.removed", domain, func(v *DomainMetadata, c *cell) { v.Removed = c.number != 0 }),
	)
}

func (g *rowGroup) sidecars() error {
	sidecar := func(a *Action) *Sidecar { return a.Sidecar }
	return run(
		func() error {
			return g.each("sidecar.path", func(a *Action, c *cell) (err error) {
				v := &Sidecar{}
				v.Path, _, err = decodePath(text(c))
				a.Sidecar = v
				return err
			})
		},
		field(g, "sidecar.sizeInBytes", sidecar, func(v *Sidecar, c *cell) { v.SizeInBytes = c.number }),
		field(g, "sidecar.modificationTime", sidecar, func(v *Sidecar, c *cell) { v.ModificationTime = c.number }),
	)
}

func (g *rowGroup) versions() error {
	return g.each("checkpointMetadata.version", func(a *Action, c *cell) error {
		a.Checkpoint = &CheckpointMetadata{Version: c.number}
		return nil
	})
}
