package transaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/partition"
)

var (
	// ErrInvalid is wrapped by errors of transactions that no log may take, whatever the version.
	ErrInvalid = errors.New("invalid commit")
	// ErrAppendOnly is wrapped where rows would leave a table that has delta.appendOnly.
	ErrAppendOnly = errors.New("table is append-only")
	// ErrLanded is wrapped where the table says that an application's version, or a later one, has been committed already.
	ErrLanded = errors.New("committed already")
	// ErrNothing is what Build gives for a transaction that changes nothing: no version is to be made of it.
	ErrNothing = errors.New("nothing to commit")
)

// Transaction is what a statement does to a table. It holds what it is given; nothing of it may change between its first Build and its last.
type Transaction struct {
	Base       *log.Snapshot // that was read; nil: the table is created
	Operation  Operation
	Metrics    map[string]string // more than Build counts itself, as numDeletedRows; what Build counts wins
	Reads      Reads
	Adds       []*log.Add // new files
	Removes    []*log.Add // live files of Base, or of a later snapshot if the operation is chosen anew for it
	Rearranges bool       // the rows stay the same: dataChange is false, and only removed files conflict
	Metadata   *log.Metadata
	Protocol   *log.Protocol
	Domains    []log.DomainMetadata
	Txns       []log.Txn // at most one per application

	EngineInfo   string
	UserMetadata string // "": none
}

// Reads is what the outcome depends on besides the files that are removed.
type Reads struct {
	All   bool                // every file
	Match func(*log.Add) bool // files that would have been read: true where it cannot be told. nil: none
	Paths map[string]struct{} // files that were read, by path
}

// None reports whether nothing was read.
func (r Reads) None() bool { return !r.All && r.Match == nil && len(r.Paths) == 0 }

// Blind reports whether the transaction only adds files and depends on none.
func (t *Transaction) Blind() bool {
	return len(t.Removes) == 0 && len(t.Adds) > 0 && t.Reads.None() && !t.Rearranges
}

// Isolation is how strictly a transaction is checked against others.
type Isolation string

// The levels of Delta, by the names that delta.isolationLevel has for them.
const (
	Serializable      Isolation = "Serializable"
	WriteSerializable Isolation = "WriteSerializable" // blind appends of others do not conflict
	SnapshotIsolation Isolation = "SnapshotIsolation" // files that others add do not conflict
)

// Isolation is the level that the table asks for, Serializable if it asks for none. What only rearranges rows needs no more than SnapshotIsolation.
func (t *Transaction) Isolation() Isolation {
	if t.Rearranges {
		return SnapshotIsolation
	}
	if t.Base != nil {
		asked := t.Base.Metadata.Configuration["delta.isolationLevel"]
		for _, level := range []Isolation{WriteSerializable, SnapshotIsolation} {
			if strings.EqualFold(asked, string(level)) {
				return level
			}
		}
	}
	return Serializable
}

// Landed are those of txns that a table has already: an entry of the application with the same version or a later one.
func Landed(s *log.Snapshot, txns []log.Txn) []log.Txn {
	var out []log.Txn
	for _, t := range txns {
		if have, ok := s.Txn(t.AppID); ok && have.Version >= t.Version {
			out = append(out, have)
		}
	}
	return out
}

// Overwrite makes t replace all rows of a snapshot, which becomes its Base.
func (t *Transaction) Overwrite(s *log.Snapshot) {
	t.Base, t.Reads, t.Removes = s, Reads{All: true}, make([]*log.Add, 0, s.NumFiles())
	for f := range s.Files() {
		t.Removes = append(t.Removes, f)
	}
}

// OverwriteWhere makes t replace the files of a snapshot of which goes is true. It is asked about files of other writers too, so that it has to be a function of
// the file alone.
func (t *Transaction) OverwriteWhere(s *log.Snapshot, goes func(*log.Add) bool) {
	t.Base, t.Reads, t.Removes = s, Reads{Match: goes}, nil
	for f := range s.Files() {
		if goes(f) {
			t.Removes = append(t.Removes, f)
		}
	}
}

// OverwritePartitions makes t replace those partitions of a snapshot to which it adds files: partitions are the same if their values are, NULL equal to NULL. A table
// without partitions is replaced as a whole; and a table with partitions not at all if nothing is added.
func (t *Transaction) OverwritePartitions(s *log.Snapshot) error {
	if len(s.Metadata.PartitionColumns) == 0 {
		t.Overwrite(s)
		return nil
	}
	columns, err := columnsOf(&s.Metadata)
	if err != nil {
		return err
	}
	touched := map[string]struct{}{}
	for _, f := range t.Adds {
		key, err := columns.Key(f.PartitionValues)
		if err != nil {
			return fmt.Errorf("%w: file %s: %w", ErrInvalid, f.Path, err)
		}
		touched[key] = struct{}{}
	}
	for f := range s.Files() { // a value that cannot be read must not decide that its file stays
		if _, err := columns.Key(f.PartitionValues); err != nil {
			return fmt.Errorf("%w: file %s of the table: %w", ErrInvalid, f.Path, err)
		}
	}
	t.OverwriteWhere(s, func(f *log.Add) bool {
		key, err := columns.Key(f.PartitionValues)
		_, ok := touched[key]
		return ok || err != nil
	})
	return nil
}

func columnsOf(m *log.Metadata) (partition.Columns, error) {
	_, columns, err := schemaOf(m)
	return columns, err
}

// quoted is a value as JSON in a string, which is how Spark writes lists and maps among the parameters.
func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // neither lists nor maps of strings come here
	}
	return string(b)
}
