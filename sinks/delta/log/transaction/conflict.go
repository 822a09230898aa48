package transaction

import (
	"fmt"
	"maps"
	"slices"

	"github.com/signet-io/signet/sinks/delta/log"
)

// Which is one of the checks of a commit against those that came before it, by their order.
type Which int

// The checks, in the order of Spark's ConflictChecker.
const (
	ProtocolChanged Which = iota + 1
	MetadataChanged
	DomainChanged
	ApplicationCommitted // an application of ours has committed: often it is ourselves, and the table has the rows
	AddedUnread          // files were added that the transaction would have read
	RemovedRead          // files were removed that the transaction has read
	RemovedTwice         // files were removed that the transaction removes
)

// Conflict is the error of a transaction that another one has overtaken: its outcome would be another one now. It did not land, and never will as it is.
type Conflict struct {
	Check   Which
	Version int64  // in which the other is
	Base    int64  // that was read
	Path    string // of a file; "": another matter, which What says
	What    string
	Wrapped error // more of the reason; nil: none
}

func (c *Conflict) Error() string {
	what := map[Which]string{
		ProtocolChanged: "changed what readers and writers have to support", MetadataChanged: "changed the table's schema, partitioning or properties",
		DomainChanged: "changed the same configuration domain", ApplicationCommitted: "has the same application's transaction", AddedUnread: "added data file " + c.Path + ", which the statement has not read",
		RemovedRead: "removed data file " + c.Path + ", which the statement has read", RemovedTwice: "removed data file " + c.Path + ", which the statement removes or changes",
	}[c.Check]
	if c.What != "" {
		what += " (" + c.What + ")"
	}
	reason := ""
	if c.Wrapped != nil {
		reason = ": " + c.Wrapped.Error()
	}
	return fmt.Sprintf("version %d, which another writer has committed since version %d was read, %s%s; run the statement again", c.Version, c.Base, what, reason)
}

func (c *Conflict) Unwrap() error { return c.Wrapped }

// Check refuses a transaction whose outcome would differ had it begun after the commits that landed since its Base: all of them, or those that no Check has seen yet,
// in their order. The error is a *Conflict. A blind append meets the first four checks only.
func Check(t *Transaction, winners []log.Commit) error {
	if t.Base == nil {
		if len(winners) > 0 {
			return &Conflict{Check: MetadataChanged, Version: winners[0].Version, Base: -1, What: "it created the table"}
		}
		return nil
	}
	c := checker{t: t, level: t.Isolation(), blind: t.Blind(), removes: map[string]struct{}{}, protocol: t.Base.Protocol, metadata: t.Base.Metadata}
	for _, f := range t.Removes {
		c.removes[f.Path] = struct{}{}
	}
	for i := range winners {
		if conflict := c.check(&winners[i]); conflict != nil {
			conflict.Version, conflict.Base = winners[i].Version, t.Base.Version
			return conflict
		}
	}
	return nil
}

type checker struct {
	t        *Transaction
	level    Isolation
	blind    bool
	removes  map[string]struct{}
	protocol log.Protocol // before the winner
	metadata log.Metadata
}

// check compares with one winner. Each check goes over all of its actions before the next one does, as Spark's do. Of a blind append the last three find nothing.
func (c *checker) check(w *log.Commit) *Conflict {
	for _, check := range []func(*log.Commit) *Conflict{
		c.protocolChanged, c.metadataChanged, c.domainChanged, c.applicationCommitted, c.addedUnread, c.removedRead, c.removedTwice,
	} {
		if conflict := check(w); conflict != nil {
			return conflict
		}
	}
	return nil
}

func (c *checker) protocolChanged(w *log.Commit) *Conflict {
	for i := range w.Actions {
		p := w.Actions[i].Protocol
		if p == nil {
			continue
		}
		if c.t.Protocol != nil {
			return &Conflict{Check: ProtocolChanged, What: "this statement changes it too"}
		}
		if dropped := droppedFeatures(c.protocol, *p); len(dropped) > 0 {
			return &Conflict{Check: ProtocolChanged, What: fmt.Sprintf("features %v are no longer there", dropped)}
		}
		if err := log.CheckWrite(*p, c.metadata); err != nil {
			return &Conflict{Check: ProtocolChanged, Wrapped: err}
		}
		c.protocol = *p
	}
	return nil
}

func droppedFeatures(before, after log.Protocol) []string {
	have := allFeatures(after)
	var out []string
	for _, f := range allFeatures(before) {
		if !slices.Contains(have, f) {
			out = append(out, f)
		}
	}
	return out
}

func (c *checker) metadataChanged(w *log.Commit) *Conflict {
	for i := range w.Actions {
		m := w.Actions[i].Metadata
		if m == nil {
			continue
		}
		b := &c.metadata
		// What an append has written fits the table still if only the table's name or description is another.
		same := m.ID == b.ID && m.SchemaString == b.SchemaString && slices.Equal(m.PartitionColumns, b.PartitionColumns) && maps.Equal(m.Configuration, b.Configuration) &&
			m.Format.Provider == b.Format.Provider && maps.Equal(m.Format.Options, b.Format.Options)
		if !same || !c.blind || c.t.Metadata != nil {
			return &Conflict{Check: MetadataChanged}
		}
	}
	return nil
}

func (c *checker) domainChanged(w *log.Commit) *Conflict {
	for i := range w.Actions {
		theirs := w.Actions[i].DomainMetadata
		if theirs == nil {
			continue
		}
		for _, ours := range c.t.Domains {
			if ours.Domain == theirs.Domain {
				return &Conflict{Check: DomainChanged, What: ours.Domain}
			}
		}
	}
	return nil
}

// applicationCommitted is a conflict whatever the versions: what the transaction knew of the application is not so any more.
func (c *checker) applicationCommitted(w *log.Commit) *Conflict {
	for i := range w.Actions {
		theirs := w.Actions[i].Txn
		if theirs == nil {
			continue
		}
		for _, ours := range c.t.Txns {
			if ours.AppID == theirs.AppID {
				return &Conflict{Check: ApplicationCommitted, What: fmt.Sprintf("application %s, version %d", theirs.AppID, theirs.Version)}
			}
		}
	}
	return nil
}

func (c *checker) addedUnread(w *log.Commit) *Conflict {
	r := &c.t.Reads
	if c.level == SnapshotIsolation || !r.All && r.Match == nil {
		return nil
	}
	if c.level == WriteSerializable && c.t.Metadata == nil {
		if info := w.Info(); info != nil && info.IsBlindAppend != nil && *info.IsBlindAppend {
			return nil
		}
	}
	for i := range w.Actions {
		if f := w.Actions[i].Add; f != nil && (r.All || r.Match(f)) {
			return &Conflict{Check: AddedUnread, Path: f.Path}
		}
	}
	return nil
}

// removed is the path under which Base has a file that a winner removes, which another writer may write otherwise (file:/a, file:///a), and the file. What Base has not
// is a file that an earlier winner added, and addedUnread has judged.
func (c *checker) removed(f *log.Remove) (string, *log.Add) {
	if was, ok := c.t.Base.File(f.Path, f.DeletionVector.ID()); ok {
		return was.Path, was
	}
	return f.Path, nil
}

func (c *checker) removedRead(w *log.Commit) *Conflict {
	r := &c.t.Reads
	for i := range w.Actions {
		f := w.Actions[i].Remove
		if f == nil {
			continue
		}
		path, was := c.removed(f)
		_, read := r.Paths[path]
		// A remove need not say what was in the file; Base does.
		if read || r.All || r.Match != nil && was != nil && r.Match(was) {
			return &Conflict{Check: RemovedRead, Path: path}
		}
	}
	return nil
}

// removedTwice compares paths without deletion vectors: who removes a file to add it with a vector has changed its rows.
func (c *checker) removedTwice(w *log.Commit) *Conflict {
	for i := range w.Actions {
		if f := w.Actions[i].Remove; f != nil {
			path, _ := c.removed(f)
			if _, ours := c.removes[path]; ours {
				return &Conflict{Check: RemovedTwice, Path: path}
			}
		}
	}
	return nil
}
