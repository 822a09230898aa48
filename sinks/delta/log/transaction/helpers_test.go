package transaction_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

var clock = time.UnixMilli(1_800_000_000_000)

func ptr[T any](v T) *T { return &v }

// columns makes a schema of nullable columns: name, type, name, type.
func columns(list ...string) string {
	out := `{"type":"struct","fields":[`
	for i := 0; i < len(list); i += 2 {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf(`{"name":%q,"type":%q,"nullable":true,"metadata":{}}`, list[i], list[i+1])
	}
	return out + "]}"
}

// metadata of a table of columns id and p, partitioned by p.
func metadata(configuration map[string]string) log.Metadata {
	return log.Metadata{
		ID: "table-1", Format: log.Format{Provider: "parquet"}, SchemaString: columns("id", "long", "p", "string"), PartitionColumns: []string{"p"}, Configuration: configuration,
	}
}

func plain() log.Protocol { return log.Protocol{MinReaderVersion: 1, MinWriterVersion: 2} }

// table is a snapshot of version 5 with those files.
func table(t testing.TB, configuration map[string]string, files ...*log.Add) *log.Snapshot {
	t.Helper()
	m := metadata(configuration)
	return tableOf(t, plain(), m, files...)
}

func tableOf(t testing.TB, p log.Protocol, m log.Metadata, files ...*log.Add) *log.Snapshot {
	t.Helper()
	actions := []log.Action{{CommitInfo: &log.CommitInfo{InCommitTimestamp: ptr(int64(1000))}}, {Protocol: &p}, {Metadata: &m}}
	for _, f := range files {
		actions = append(actions, log.Action{Add: f})
	}
	s, err := log.NewSnapshot(5, 1000, actions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// file is a file of ten rows in partition p; "": NULL.
func file(path, p string) *log.Add {
	value := &p
	if p == "" {
		value = nil
	}
	return &log.Add{Path: path, PartitionValues: map[string]*string{"p": value}, Size: 100, ModificationTime: 1, DataChange: true, Stats: ptr(`{"numRecords":10}`)}
}

// removed is the removal of a file by another writer.
func removed(path, p string) *log.Remove {
	return &log.Remove{Path: path, DataChange: true, DeletionTimestamp: ptr(int64(1)), PartitionValues: file(path, p).PartitionValues}
}

func appending(base *log.Snapshot, files ...*log.Add) *transaction.Transaction {
	return &transaction.Transaction{Base: base, Operation: transaction.Append(base.Metadata.PartitionColumns), Adds: files, EngineInfo: "Signet/test"}
}

func build(t testing.TB, tx *transaction.Transaction, at *log.Snapshot) []log.Action {
	t.Helper()
	actions, err := tx.Build(at, clock, "txn-1")
	if err != nil {
		t.Fatal(err)
	}
	return actions
}

// after is the snapshot after actions landed on it, and the commit.
func after(t testing.TB, s *log.Snapshot, actions []log.Action) (*log.Snapshot, log.Commit) {
	t.Helper()
	// Through the codec, as a log would hold them.
	var data []byte
	for i := range actions {
		var err error
		if data, err = log.AppendAction(data, &actions[i]); err != nil {
			t.Fatal(err)
		}
	}
	back, err := log.ParseCommit(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	c := log.Commit{Version: s.Version + 1, Modified: clock, Actions: back}
	next, err := s.With(c)
	if err != nil {
		t.Fatal(err)
	}
	return next, c
}

func paths(s *log.Snapshot) (out []string) {
	for f := range s.Files() {
		out = append(out, f.Path)
	}
	return out
}

func wantConflict(t testing.TB, err error, check transaction.Which) {
	t.Helper()
	var c *transaction.Conflict
	if !errors.As(err, &c) || c.Check != check {
		t.Errorf("got %v, want a conflict of check %d", err, check)
	}
}
