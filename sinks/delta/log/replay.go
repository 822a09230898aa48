package log

import (
	"fmt"
	"maps"
)

// replay collects the changes of commits over what a snapshot has. In the maps of files a nil takes out.
type replay struct {
	protocol *Protocol
	metadata *Metadata
	adds     map[fileKey]*Add
	removes  map[fileKey]*Remove
	txns     map[string]Txn
	domains  map[string]DomainMetadata // Removed: a tombstone
	interned map[string]map[string]*string
}

func newReplay() *replay {
	return &replay{
		adds: map[fileKey]*Add{}, removes: map[fileKey]*Remove{}, txns: map[string]Txn{}, domains: map[string]DomainMetadata{},
		interned: map[string]map[string]*string{},
	}
}

// commit applies the actions of one commit. That may add a file again, which replaces what is known of it, but not both add and remove it: readers disagree
// on which holds, so the log is refused.
func (r *replay) commit(c *Commit) error {
	seen := make(map[fileKey]bool, len(c.Actions)) // whether it is an add
	for i := range c.Actions {
		a := &c.Actions[i]
		var k fileKey
		switch {
		case a.Add != nil:
			k = a.Add.key()
		case a.Remove != nil:
			k = a.Remove.key()
		default:
			r.other(a)
			continue
		}
		if add, ok := seen[k]; ok && add != (a.Add != nil) {
			return fmt.Errorf("%w: %s both adds and removes %q", ErrCorrupt, CommitName(c.Version), k.path)
		}
		seen[k] = a.Add != nil
		r.file(a)
	}
	return nil
}

func (r *replay) file(a *Action) {
	if a.Add != nil {
		k := a.Add.key()
		r.adds[k], r.removes[k] = a.Add, nil
		return
	}
	k := a.Remove.key()
	r.adds[k], r.removes[k] = nil, a.Remove
}

// intern lets the files of one partition share a map. It is for actions that were read here, and belong to nobody else yet.
func (r *replay) intern(actions []Action) {
	for i := range actions {
		if a := actions[i].Add; a != nil {
			a.PartitionValues = r.internMap(a.PartitionValues)
		}
	}
}

func (r *replay) internMap(values map[string]*string) map[string]*string {
	if len(values) == 0 {
		return nil
	}
	w := jsonWriter{}
	w.out = append(w.out, '{')
	w.texts("", values, true)
	if known, ok := r.interned[string(w.out)]; ok {
		return known
	}
	r.interned[string(w.out)] = values
	return values
}

func (r *replay) other(a *Action) {
	switch {
	case a.Protocol != nil:
		r.protocol = a.Protocol
	case a.Metadata != nil:
		r.metadata = a.Metadata
	case a.Txn != nil:
		r.txns[a.Txn.AppID] = *a.Txn
	case a.DomainMetadata != nil:
		r.domains[a.DomainMetadata.Domain] = *a.DomainMetadata
	}
}

// onto makes the snapshot of a version: base with the changes, or without base the first one.
func (r *replay) onto(base *Snapshot, version int64) (*Snapshot, error) {
	s := &Snapshot{Version: version}
	if base == nil {
		maps.DeleteFunc(r.adds, func(_ fileKey, a *Add) bool { return a == nil })
		maps.DeleteFunc(r.removes, func(_ fileKey, m *Remove) bool { return m == nil })
		s.adds, s.removes, s.txns = newFileSet(r.adds), newFileSet(r.removes), r.txns
		s.domains = r.domains
		maps.DeleteFunc(s.domains, func(_ string, d DomainMetadata) bool { return d.Removed })
		for _, a := range r.adds {
			if s.size += a.Size; s.size < 0 {
				return nil, tooLarge(version)
			}
		}
	} else {
		s.Protocol, s.Metadata, s.size = base.Protocol, base.Metadata, base.size
		for k, a := range r.adds {
			if was, ok := base.adds.get(k); ok {
				s.size -= was.Size
			}
			if a != nil {
				s.size += a.Size
			}
			if s.size < 0 {
				return nil, tooLarge(version)
			}
		}
		s.adds, s.removes = base.adds.with(r.adds), base.removes.with(r.removes)
		s.txns, s.domains = base.txns, base.domains
		if len(r.txns) > 0 {
			s.txns = maps.Clone(base.txns)
			maps.Copy(s.txns, r.txns)
		}
		if len(r.domains) > 0 {
			s.domains = maps.Clone(base.domains)
			maps.Copy(s.domains, r.domains)
			maps.DeleteFunc(s.domains, func(_ string, d DomainMetadata) bool { return d.Removed })
		}
	}
	if r.protocol != nil {
		s.Protocol = *r.protocol
	}
	if r.metadata != nil {
		s.Metadata = *r.metadata
	}
	switch {
	case base == nil && r.protocol == nil:
		return nil, fmt.Errorf("%w: no protocol action up to version %d", ErrCorrupt, version)
	case base == nil && r.metadata == nil:
		return nil, fmt.Errorf("%w: no metaData action up to version %d", ErrCorrupt, version)
	}
	return s, nil
}

func tooLarge(version int64) error {
	return fmt.Errorf("%w: the files of version %d are larger than 64 bits can say", ErrCorrupt, version)
}
