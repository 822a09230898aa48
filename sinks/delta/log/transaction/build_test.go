package transaction_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

func TestAppend(t *testing.T) {
	base := table(t, nil)
	tx := appending(base, file("a", "x"), file("b", ""))
	tx.Txns = []log.Txn{{AppID: "signet:m", Version: 1}}
	tx.UserMetadata = "note"
	actions := build(t, tx, base)
	if len(actions) != 4 || actions[0].CommitInfo == nil || actions[1].Txn == nil || *actions[1].Txn.LastUpdated != clock.UnixMilli() || tx.Txns[0].LastUpdated != nil {
		t.Fatalf("%+v", actions)
	}
	info := actions[0].CommitInfo
	if *info.Timestamp != clock.UnixMilli() || info.InCommitTimestamp != nil || !*info.IsBlindAppend || *info.TxnID != "txn-1" || *info.EngineInfo != "Signet/test" || *info.ReadVersion != 5 ||
		*info.UserMetadata != "note" || *info.IsolationLevel != "Serializable" || !maps.Equal(info.OperationParameters, map[string]string{"mode": "Append", "partitionBy": `["p"]`}) {
		t.Errorf("%+v", info)
	}
	wantMetrics(t, info, "numFiles", "2", "numOutputRows", "20", "numOutputBytes", "200")
	again := build(t, tx, base)
	if fmt.Sprintf("%+v", again[2].Add) != fmt.Sprintf("%+v", actions[2].Add) {
		t.Error("the same transaction gives another commit")
	}
}

// Everything that a reader needs of a removed file is in its remove.
func TestRemovesSayWhatTheyRemove(t *testing.T) {
	f := file("a", "x")
	f.Tags, f.BaseRowID, f.DefaultRowCommitVersion = map[string]*string{"k": ptr("v")}, ptr(int64(7)), ptr(int64(3))
	f.DeletionVector = &log.DeletionVector{StorageType: "u", PathOrInlineDv: "abcdefghijklmnopqrst", Offset: ptr(int32(1)), SizeInBytes: 10, Cardinality: 4}
	base := table(t, nil, f)
	tx := &transaction.Transaction{Operation: transaction.Deleted("true")}
	tx.Overwrite(base)
	actions := build(t, tx, base)
	r := actions[1].Remove
	if r.Path != "a" || *r.DeletionTimestamp != clock.UnixMilli() || !r.DataChange || !*r.ExtendedFileMetadata || *r.PartitionValues["p"] != "x" || *r.Size != 100 || *r.Tags["k"] != "v" ||
		*r.BaseRowID != 7 || *r.DefaultRowCommitVersion != 3 || r.DeletionVector.ID() != f.DeletionVector.ID() {
		t.Errorf("%+v", r)
	}
	wantMetrics(t, actions[0].CommitInfo, "numRemovedFiles", "1", "numRemovedBytes", "100", "numAddedFiles", "0", "numAddedBytes", "0", "numDeletedRows", "6", "numCopiedRows", "0")
	if next, _ := after(t, base, actions); next.NumFiles() != 0 {
		t.Errorf("%v", paths(next))
	}
}

func TestRearrangedRowsAreNoChange(t *testing.T) {
	base := table(t, map[string]string{"delta.appendOnly": "true"}, file("a", "x"), file("b", "x"))
	add := file("c", "x")
	tx := &transaction.Transaction{Base: base, Operation: transaction.Optimized(), Rearranges: true, Adds: []*log.Add{add}, Removes: []*log.Add{file("a", "x"), file("b", "x")}}
	actions := build(t, tx, base)
	for _, a := range actions[1:] {
		if a.Add != nil && a.Add.DataChange || a.Remove != nil && a.Remove.DataChange {
			t.Errorf("%+v", a)
		}
	}
	if !add.DataChange {
		t.Error("the file that was given has been changed")
	}
	if info := actions[0].CommitInfo; *info.IsolationLevel != "SnapshotIsolation" || *info.IsBlindAppend || info.Operation != "OPTIMIZE" {
		t.Errorf("%+v", info)
	}
}

func TestWhatBuildRefuses(t *testing.T) {
	base := table(t, nil, file("a", "x"))
	required := metadata(nil)
	required.SchemaString = strings.Replace(required.SchemaString, `"p","type":"string","nullable":true`, `"p","type":"string","nullable":false`, 1)
	notNull := tableOf(t, plain(), required)
	recreated := metadata(nil)
	recreated.ID = "table-2"
	newer, err := log.NewSnapshot(9, 1, []log.Action{{Protocol: ptr(plain())}, {Metadata: ptr(metadata(nil))}})
	if err != nil {
		t.Fatal(err)
	}
	append1 := table(t, map[string]string{"delta.appendOnly": "TRUE"}, file("a", "x"))
	for name, c := range map[string]struct {
		tx   *transaction.Transaction
		at   *log.Snapshot
		is   error
		text string
	}{
		"the same file twice":         {appending(base, file("n", "x"), file("n", "x")), base, transaction.ErrInvalid, "n is there twice"},
		"a file of the table":         {appending(base, file("a", "x")), base, transaction.ErrInvalid, "a is part of the table already"},
		"added and removed":           {&transaction.Transaction{Base: base, Adds: []*log.Add{file("a", "x")}, Removes: []*log.Add{file("a", "x")}}, base, transaction.ErrInvalid, "a is there twice"},
		"no partition value":          {appending(base, &log.Add{Path: "n"}), base, transaction.ErrInvalid, "partition column p"},
		"other partition columns":     {appending(base, &log.Add{Path: "n", PartitionValues: map[string]*string{"p": nil, "q": nil}}), base, transaction.ErrInvalid, "[p q]"},
		"no path":                     {appending(base, file("", "x")), base, transaction.ErrInvalid, "a path and a size"},
		"NULL in a NOT NULL column":   {appending(notNull, file("n", "")), notNull, transaction.ErrInvalid, "column p is NOT NULL"},
		"one application twice":       {&transaction.Transaction{Base: base, Txns: []log.Txn{{AppID: "a"}, {AppID: "a", Version: 1}}}, base, transaction.ErrInvalid, "application a is there twice"},
		"another table":               {appending(base, file("n", "x")), tableOf(t, plain(), recreated), transaction.ErrInvalid, "dropped and created again"},
		"no table":                    {appending(base, file("n", "x")), nil, transaction.ErrInvalid, "transaction says not what table"},
		"an older one":                {appending(newer, file("n", "x")), base, transaction.ErrInvalid, "version 9 was read"},
		"a table that is there":       {&transaction.Transaction{Metadata: ptr(metadata(nil)), Protocol: ptr(plain())}, base, transaction.ErrInvalid, "is there at version 5"},
		"removal from an append-only": {&transaction.Transaction{Base: append1, Removes: []*log.Add{file("a", "x")}}, append1, transaction.ErrAppendOnly, "delta.appendOnly"},
		"and its replacement": {
			&transaction.Transaction{Base: append1, Removes: []*log.Add{file("a", "x")}, Metadata: ptr(metadata(nil))}, append1, transaction.ErrAppendOnly, "delta.appendOnly",
		},
		"a feature that is not known": {&transaction.Transaction{Base: base, Protocol: &log.Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"rowTracking"}}}, base, log.ErrUnsupported, "rowTracking"},
	} {
		if _, err := c.tx.Build(c.at, clock, "t"); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := &transaction.Transaction{Base: base, Removes: []*log.Add{file("gone", "x")}}
	_, err = gone.Build(base, clock, "t")
	wantConflict(t, err, transaction.RemovedTwice)
}

func TestCreateAndReplace(t *testing.T) {
	m := metadata(map[string]string{"k": "v", "delta.feature.deletionVectors": "supported"})
	m.Description = ptr("text")
	p, _, err := transaction.Protocol(nil, &m)
	if err != nil {
		t.Fatal(err)
	}
	create := &transaction.Transaction{Operation: transaction.Created(&m, false, true), Metadata: &m, Protocol: &p, Adds: []*log.Add{file("a", "x")}}
	actions := build(t, create, nil)
	if len(actions) != 4 || actions[1].Protocol == nil || actions[2].Metadata == nil || actions[3].Add == nil {
		t.Fatalf("%+v", actions)
	}
	info := actions[0].CommitInfo
	want := map[string]string{"partitionBy": `["p"]`, "clusterBy": "[]", "isManaged": "false", "properties": `{"k":"v"}`, "description": "text"}
	if info.Operation != "CREATE TABLE AS SELECT" || !maps.Equal(info.OperationParameters, want) || info.ReadVersion != nil {
		t.Errorf("%+v", info)
	}
	base, err := log.NewSnapshot(0, 1, actions)
	if err != nil || base.NumFiles() != 1 {
		t.Fatalf("%v, %v", base, err)
	}

	n := m
	n.SchemaString, n.PartitionColumns = columns("other", "long"), nil
	replace := &transaction.Transaction{Operation: transaction.Created(&n, true, true), Metadata: &n, Adds: []*log.Add{{Path: "b", Size: 1}}}
	replace.Overwrite(base)
	next, _ := after(t, base, build(t, replace, base))
	if !slices.Equal(paths(next), []string{"b"}) || next.Metadata.SchemaString != n.SchemaString || next.Protocol.MinWriterVersion != 7 {
		t.Errorf("%v, %+v", paths(next), next.Metadata)
	}
	empty := &transaction.Transaction{Operation: transaction.Created(&m, false, false), Metadata: &m, Protocol: &p}
	if actions := build(t, empty, nil); len(actions) != 3 || len(actions[0].CommitInfo.OperationMetrics) != 0 || actions[0].CommitInfo.Operation != "CREATE TABLE" {
		t.Errorf("%+v", actions)
	}
}

func TestInCommitTimestamps(t *testing.T) {
	on := map[string]string{"delta.enableInCommitTimestamps": "true"}
	m := metadata(on)
	p, _, err := transaction.Protocol(nil, &m)
	if err != nil || p.MinReaderVersion != 1 || p.MinWriterVersion != 7 || !slices.Equal(p.WriterFeatures, []string{"appendOnly", "inCommitTimestamp", "invariants"}) || p.ReaderFeatures != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	base := tableOf(t, p, m) // of time 1000
	for now, want := range map[int64]int64{500: 1001, 1000: 1001, 2000: 2000} {
		actions, err := appending(base, file("a", "x")).Build(base, time.UnixMilli(now), "t")
		if err != nil {
			t.Fatal(err)
		}
		if info := actions[0].CommitInfo; *info.InCommitTimestamp != want || *info.Timestamp != want {
			t.Errorf("at %d: %d, %d; want %d", now, *info.InCommitTimestamp, *info.Timestamp, want)
		}
	}
	// Turned on for a table that has been without.
	old := table(t, nil)
	upgraded, changed, err := transaction.Protocol(&old.Protocol, &m)
	if err != nil || !changed {
		t.Fatal(err)
	}
	alter := &transaction.Transaction{Base: old, Operation: transaction.SetProperties(on), Metadata: &m, Protocol: &upgraded}
	actions := build(t, alter, old)
	conf := actions[2].Metadata.Configuration
	if *actions[0].CommitInfo.InCommitTimestamp != clock.UnixMilli() || conf["delta.inCommitTimestampEnablementVersion"] != "6" || conf["delta.inCommitTimestampEnablementTimestamp"] != fmt.Sprint(clock.UnixMilli()) {
		t.Errorf("%+v, %v", actions[0].CommitInfo, conf)
	}
	if len(m.Configuration) != 1 {
		t.Errorf("the metadata that was given has been changed: %v", m.Configuration)
	}
}

func TestProtocols(t *testing.T) {
	legacy := log.Protocol{MinReaderVersion: 2, MinWriterVersion: 5}
	listed := log.Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"typeWidening-preview"}, WriterFeatures: []string{"typeWidening-preview"}}
	for _, c := range []struct {
		base            *log.Protocol
		configuration   map[string]string
		reader, writer  int
		readers, writes string
		changed         bool
	}{
		{nil, nil, 1, 2, "", "", true},
		{nil, map[string]string{"delta.appendOnly": "true", "k": "v"}, 1, 2, "", "", true},
		{nil, map[string]string{"delta.enableChangeDataFeed": "true"}, 1, 4, "", "", true},
		{nil, map[string]string{"delta.enableDeletionVectors": "true"}, 3, 7, "deletionVectors", "appendOnly deletionVectors invariants", true},
		{nil, map[string]string{"delta.checkpointPolicy": "v2", "delta.enableChangeDataFeed": "true"}, 3, 7, "v2Checkpoint", "appendOnly changeDataFeed invariants v2Checkpoint", true},
		{nil, map[string]string{"delta.feature.clustering": "supported"}, 1, 7, "", "appendOnly clustering domainMetadata invariants", true},
		{&legacy, nil, 2, 5, "", "", false},
		{&legacy, map[string]string{"delta.enableChangeDataFeed": "true"}, 2, 5, "", "", false},
		{
			&legacy,
			map[string]string{"delta.enableTypeWidening": "true"},
			3, 7, "columnMapping typeWidening",
			"appendOnly changeDataFeed checkConstraints columnMapping generatedColumns invariants typeWidening", true,
		},
		{&listed, map[string]string{"delta.appendOnly": "true"}, 3, 7, "typeWidening-preview", "appendOnly typeWidening-preview", true},
	} {
		m := metadata(c.configuration)
		p, changed, err := transaction.Protocol(c.base, &m)
		if err != nil || p.MinReaderVersion != c.reader || p.MinWriterVersion != c.writer || strings.Join(p.ReaderFeatures, " ") != c.readers || strings.Join(p.WriterFeatures, " ") != c.writes ||
			changed != c.changed {
			t.Errorf("%v: %+v, %v, %v", c.configuration, p, changed, err)
		}
	}
	// Spark demands that NOT NULL columns' feature is listed where features are.
	m := metadata(nil)
	m.SchemaString = strings.Replace(m.SchemaString, "true", "false", 1)
	if p, changed, err := transaction.Protocol(&listed, &m); err != nil || !changed || !slices.Contains(p.WriterFeatures, "invariants") {
		t.Errorf("%+v, %v, %v", p, changed, err)
	}
	for key, value := range map[string]string{"delta.feature.rowTracking": "supported", "delta.feature.deletionVectors": "on"} {
		m := metadata(map[string]string{key: value})
		if _, _, err := transaction.Protocol(nil, &m); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	m.SchemaString = strings.Replace(m.SchemaString, `{}`, `{"CURRENT_DEFAULT":"1"}`, 1)
	if _, _, err := transaction.Protocol(nil, &m); !errors.Is(err, log.ErrUnsupported) {
		t.Errorf("a default: %v", err)
	}
}

func BenchmarkBuild(b *testing.B) {
	base := table(b, nil)
	adds := make([]*log.Add, 100_000)
	for i := range adds {
		adds[i] = file(fmt.Sprintf("job/0/1/attempt/part-%06d.parquet", i), "x")
	}
	tx := appending(base, adds...)
	b.ReportAllocs()
	for b.Loop() {
		build(b, tx, base)
	}
}
