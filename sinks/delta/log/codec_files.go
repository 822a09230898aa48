package log

import (
	"errors"
	"fmt"
)

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
	if err := r.object(func(name string) error { return r.addField(a, name) }); err != nil {
		return nil, err
	}
	return a, a.check()
}

func (r *jsonReader) addField(a *Add, name string) (err error) {
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
}

func (a *Add) check() error {
	if a.Size < 0 {
		return fmt.Errorf("%.200q has a negative size", a.Path)
	}
	return missing(a.Path, "path")
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
