package transaction_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

func isX(f *log.Add) bool { v := f.PartitionValues["p"]; return v != nil && *v == "x" }

// Each of ours against each of theirs: the check that refuses it, 0 if none.
func TestChecks(t *testing.T) {
	info := func(blind *bool) log.Action {
		return log.Action{CommitInfo: &log.CommitInfo{Operation: "WRITE", IsBlindAppend: blind}}
	}
	yes := true
	renamed := metadata(nil)
	renamed.Name, renamed.Description = ptr("new"), ptr("text")
	other := metadata(map[string]string{"delta.logRetentionDuration": "interval 1 day"})
	wider := metadata(nil)
	wider.SchemaString = columns("id", "long", "p", "string", "more", "long")
	upgraded := log.Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"deletionVectors"}, WriterFeatures: []string{"appendOnly", "invariants", "deletionVectors"}}
	dropping := log.Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"appendOnly"}}
	unknown := log.Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"newest"}, WriterFeatures: []string{"appendOnly", "invariants", "newest"}}
	theirs := map[string][]log.Action{
		"blind append to x":       {info(&yes), {Add: file("new", "x")}},
		"append to x, not blind":  {info(nil), {Add: file("new", "x")}},
		"append to y":             {info(nil), {Add: file("new", "y")}},
		"no commitInfo":           {{Add: file("new", "x")}},
		"removes 1 in x":          {info(nil), {Remove: removed("1", "x")}},
		"removes 2 in y":          {info(nil), {Remove: removed("2", "y")}},
		"changes the schema":      {info(nil), {Metadata: &wider}},
		"changes a property":      {info(nil), {Metadata: &other}},
		"changes the description": {info(nil), {Metadata: &renamed}},
		"upgrades":                {info(nil), {Protocol: &upgraded}},
		"drops a feature":         {info(nil), {Protocol: &dropping}},
		"unknown feature":         {info(nil), {Protocol: &unknown}},
		"domain a":                {info(nil), {DomainMetadata: &log.DomainMetadata{Domain: "a"}}},
		"application a":           {info(nil), {Txn: &log.Txn{AppID: "a", Version: 1}}},
		"all at once, last first": {info(nil), {Remove: removed("1", "x")}, {Add: file("new", "x")}, {Txn: &log.Txn{AppID: "a"}}, {Metadata: &wider}, {Protocol: &unknown}},
		"upgrades a little":       {info(nil), {Remove: removed("1", "x")}, {Add: file("new", "x")}, {Txn: &log.Txn{AppID: "a"}}},
	}
	type want map[string]transaction.Which
	always := want{"drops a feature": transaction.ProtocolChanged, "unknown feature": transaction.ProtocolChanged, "all at once, last first": transaction.ProtocolChanged}
	metadataToo := want{"changes the schema": transaction.MetadataChanged, "changes a property": transaction.MetadataChanged}
	described := want{"changes the description": transaction.MetadataChanged}
	for name, c := range map[string]struct {
		configuration map[string]string
		make          func(base *log.Snapshot) *transaction.Transaction
		wants         []want
	}{
		"append": {
			make:  func(base *log.Snapshot) *transaction.Transaction { return appending(base, file("ours", "x")) },
			wants: []want{always, metadataToo},
		},
		"append of application a": {
			make: func(base *log.Snapshot) *transaction.Transaction {
				tx := appending(base, file("ours", "x"))
				tx.Txns, tx.Domains = []log.Txn{{AppID: "a", Version: 7}}, []log.DomainMetadata{{Domain: "a"}}
				return tx
			},
			wants: []want{always, metadataToo, {"application a": transaction.ApplicationCommitted, "domain a": transaction.DomainChanged, "upgrades a little": transaction.ApplicationCommitted}},
		},
		"append with a new property": {
			make: func(base *log.Snapshot) *transaction.Transaction {
				tx := appending(base, file("ours", "x"))
				tx.Metadata, tx.Protocol = &other, &upgraded
				return tx
			},
			wants: []want{always, metadataToo, described, {"upgrades": transaction.ProtocolChanged}},
		},
		"overwrite": {
			make: func(base *log.Snapshot) *transaction.Transaction {
				tx := &transaction.Transaction{Operation: transaction.Overwritten(nil, "", false), Adds: []*log.Add{file("ours", "x")}}
				tx.Overwrite(base)
				return tx
			},
			wants: []want{always, metadataToo, described, {
				"blind append to x": transaction.AddedUnread, "append to x, not blind": transaction.AddedUnread, "append to y": transaction.AddedUnread, "no commitInfo": transaction.AddedUnread,
				"removes 1 in x": transaction.RemovedRead, "removes 2 in y": transaction.RemovedRead, "upgrades a little": transaction.AddedUnread,
			}},
		},
		"overwrite of x": {
			make: func(base *log.Snapshot) *transaction.Transaction {
				tx := &transaction.Transaction{Operation: transaction.Overwritten(nil, "p = 'x'", false)}
				tx.OverwriteWhere(base, isX)
				return tx
			},
			wants: []want{always, metadataToo, described, {
				"blind append to x": transaction.AddedUnread, "append to x, not blind": transaction.AddedUnread, "no commitInfo": transaction.AddedUnread, "removes 1 in x": transaction.RemovedRead,
				"upgrades a little": transaction.AddedUnread,
			}},
		},
		"overwrite of x, WriteSerializable": {
			configuration: map[string]string{"delta.isolationLevel": "writeserializable"},
			make: func(base *log.Snapshot) *transaction.Transaction {
				tx := &transaction.Transaction{Operation: transaction.Overwritten(nil, "p = 'x'", false)}
				tx.OverwriteWhere(base, isX)
				return tx
			},
			wants: []want{always, metadataToo, described, {
				"append to x, not blind": transaction.AddedUnread, "no commitInfo": transaction.AddedUnread, "removes 1 in x": transaction.RemovedRead, "upgrades a little": transaction.AddedUnread,
			}},
		},
		"delete in x, SnapshotIsolation": {
			configuration: map[string]string{"delta.isolationLevel": "SnapshotIsolation"},
			make: func(base *log.Snapshot) *transaction.Transaction {
				tx := &transaction.Transaction{Operation: transaction.Deleted()}
				tx.OverwriteWhere(base, isX)
				return tx
			},
			wants: []want{always, metadataToo, described, {"removes 1 in x": transaction.RemovedRead, "upgrades a little": transaction.RemovedRead}},
		},
		"update that read 1 and 2 and changes 1": {
			make: func(base *log.Snapshot) *transaction.Transaction {
				tx := &transaction.Transaction{Base: base, Operation: transaction.Updated(), Adds: []*log.Add{file("ours", "x")}}
				tx.Reads.Paths = map[string]struct{}{"1": {}, "2": {}}
				tx.Removes = []*log.Add{file("1", "x")}
				return tx
			},
			wants: []want{always, metadataToo, described, {"removes 1 in x": transaction.RemovedRead, "removes 2 in y": transaction.RemovedRead, "upgrades a little": transaction.RemovedRead}},
		},
		"compaction of 1": {
			make: func(base *log.Snapshot) *transaction.Transaction {
				return &transaction.Transaction{Base: base, Operation: transaction.Optimized(), Rearranges: true, Adds: []*log.Add{file("ours", "x")}, Removes: []*log.Add{file("1", "x")}}
			},
			wants: []want{always, metadataToo, described, {"removes 1 in x": transaction.RemovedTwice, "upgrades a little": transaction.RemovedTwice}},
		},
	} {
		base := table(t, c.configuration, file("1", "x"), file("2", "y"))
		tx := c.make(base)
		for their, actions := range theirs {
			expected := transaction.Which(0)
			for _, w := range c.wants {
				if check, ok := w[their]; ok {
					expected = check
				}
			}
			harmless := log.Commit{Version: 6, Actions: []log.Action{{CommitInfo: &log.CommitInfo{}}}}
			err := transaction.Check(tx, []log.Commit{harmless, {Version: 7, Actions: actions}})
			if expected == 0 {
				if err != nil {
					t.Errorf("%s against %q: %v", name, their, err)
				}
				continue
			}
			var conflict *transaction.Conflict
			if !errors.As(err, &conflict) || conflict.Check != expected || conflict.Version != 7 || conflict.Base != 5 || !strings.Contains(err.Error(), "version 7, which another writer has committed since version 5 was read") {
				t.Errorf("%s against %q: %v; want check %d", name, their, err, expected)
			}
		}
	}
}

func TestCreatedMeanwhile(t *testing.T) {
	m := metadata(nil)
	tx := &transaction.Transaction{Operation: transaction.Created(&m, false, true), Metadata: &m, Protocol: ptr(plain())}
	wantConflict(t, transaction.Check(tx, []log.Commit{{Version: 0}}), transaction.MetadataChanged)
	if err := transaction.Check(tx, nil); err != nil {
		t.Error(err)
	}
}

// Other writers name a file elsewhere in other ways, and delete some of its rows only: it is the same file all the same.
func TestTheSameFileByAnotherName(t *testing.T) {
	base := table(t, nil, file("file:///data/1", "x"), file("2", "x"))
	for _, path := range []string{"file:///data/1", "file:/data/1", "/data/1"} {
		tx := &transaction.Transaction{Base: base, Operation: transaction.Optimized(), Rearranges: true, Removes: []*log.Add{file("file:///data/1", "x")}}
		err := transaction.Check(tx, []log.Commit{{Version: 6, Actions: []log.Action{{Remove: removed(path, "x")}}}})
		wantConflict(t, err, transaction.RemovedTwice)
	}
	vector := file("2", "x")
	vector.DeletionVector = &log.DeletionVector{StorageType: "i", PathOrInlineDv: "x", SizeInBytes: 1, Cardinality: 1}
	tx := &transaction.Transaction{Base: base, Operation: transaction.Optimized(), Rearranges: true, Removes: []*log.Add{file("2", "x")}}
	err := transaction.Check(tx, []log.Commit{{Version: 6, Actions: []log.Action{{Remove: removed("2", "x")}, {Add: vector}}}})
	wantConflict(t, err, transaction.RemovedTwice)
}
