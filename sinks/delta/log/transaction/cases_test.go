package transaction_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

// D7: the same application and version twice is committed once.
func TestCommit_D7TheSameTxnTwiceLandsOnce(t *testing.T) {
	base := table(t, nil)
	tx := appending(base, file("a", "x"))
	tx.Txns = []log.Txn{{AppID: "app", Version: 3}}
	next, _ := after(t, base, build(t, tx, base))
	again := appending(next, file("b", "x"))
	for version, landed := range map[int64]bool{2: true, 3: true, 4: false} {
		again.Txns = []log.Txn{{AppID: "app", Version: version}}
		if got := transaction.Landed(next, again.Txns); (len(got) == 1) != landed {
			t.Errorf("version %d: landed %v", version, got)
		}
		if _, err := again.Build(next, clock, "txn-2"); errors.Is(err, transaction.ErrLanded) != landed {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// D8: a winner with our application is a conflict, whichever version is the higher one.
func TestCommit_D8TheSameApplicationConflictsWhateverTheVersions(t *testing.T) {
	base := table(t, nil)
	tx := appending(base, file("a", "x"))
	tx.Txns = []log.Txn{{AppID: "app", Version: 3}}
	for _, theirs := range []int64{1, 3, 9} {
		other := appending(base, file("b", "x"))
		other.Txns = []log.Txn{{AppID: "app", Version: theirs}}
		_, winner := after(t, base, build(t, other, base))
		wantConflict(t, transaction.Check(tx, []log.Commit{winner}), transaction.ApplicationCommitted)
	}
	other := appending(base, file("b", "x"))
	other.Txns = []log.Txn{{AppID: "another", Version: 3}}
	_, winner := after(t, base, build(t, other, base))
	if err := transaction.Check(tx, []log.Commit{winner}); err != nil {
		t.Errorf("another application: %v", err)
	}
}

// D9: of two overwrites of one snapshot, the second must not leave the first's new file, nor remove it unread.
func TestCommit_D9TwoOverwritesConflict(t *testing.T) {
	for name, files := range map[string][]*log.Add{"some files": {file("old", "x")}, "an empty table": nil} {
		base := table(t, nil, files...)
		first := &transaction.Transaction{Operation: transaction.Overwritten(nil, "", false), Adds: []*log.Add{file("first", "x")}}
		first.Overwrite(base)
		second := &transaction.Transaction{Operation: transaction.Overwritten(nil, "", false), Adds: []*log.Add{file("second", "x")}}
		second.Overwrite(base)
		next, winner := after(t, base, build(t, first, base))
		wantConflict(t, transaction.Check(second, []log.Commit{winner}), transaction.AddedUnread)
		if len(files) > 0 { // and were it not checked, the removal of what is not there is refused
			_, err := second.Build(next, clock, "txn-2")
			wantConflict(t, err, transaction.RemovedTwice)
		}
		second.Overwrite(next) // run again
		if got, _ := after(t, next, build(t, second, next)); !slices.Equal(paths(got), []string{"second"}) {
			t.Errorf("%s: %v", name, paths(got))
		}
	}
}

// D10: two appends both succeed.
func TestCommit_D10TwoAppendsBothLand(t *testing.T) {
	base := table(t, nil, file("old", "x"))
	first, second := appending(base, file("first", "x")), appending(base, file("second", "x"))
	next, winner := after(t, base, build(t, first, base))
	if err := transaction.Check(second, []log.Commit{winner}); err != nil {
		t.Fatal(err)
	}
	if got, c := after(t, next, build(t, second, next)); !slices.Equal(paths(got), []string{"first", "old", "second"}) || c.Version != 7 {
		t.Errorf("version %d: %v", c.Version, paths(got))
	}
}

// D12: an overwrite with a filter removes the files of which it is true, and no others.
func TestCommit_D12OverwriteByFilterRemovesTheOldFiles(t *testing.T) {
	base := table(t, nil, file("1", "x"), file("2", "x"), file("3", "y"))
	tx := &transaction.Transaction{Operation: transaction.Overwritten([]string{"p"}, "p = 'x'", false), Adds: []*log.Add{file("new", "x")}}
	tx.OverwriteWhere(base, func(f *log.Add) bool { return *f.PartitionValues["p"] == "x" })
	actions := build(t, tx, base)
	if got, _ := after(t, base, actions); !slices.Equal(paths(got), []string{"3", "new"}) {
		t.Errorf("%v", paths(got))
	}
	info := actions[0].CommitInfo
	want := map[string]string{"mode": "Overwrite", "partitionBy": `["p"]`, "predicate": "p = 'x'"}
	if info.Operation != "WRITE" || !maps.Equal(info.OperationParameters, want) || *info.IsBlindAppend {
		t.Errorf("%+v", info)
	}
	wantMetrics(t, info, "numFiles", "1", "numOutputRows", "10", "numOutputBytes", "100", "numRemovedFiles", "2", "numRemovedBytes", "200")

	_, elsewhere := after(t, base, build(t, appending(base, file("4", "y")), base))
	if err := transaction.Check(tx, []log.Commit{elsewhere}); err != nil {
		t.Errorf("a file that the filter leaves: %v", err)
	}
	_, here := after(t, base, build(t, appending(base, file("4", "x")), base))
	wantConflict(t, transaction.Check(tx, []log.Commit{elsewhere, here}), transaction.AddedUnread)
}

func wantMetrics(t *testing.T, info *log.CommitInfo, want ...string) {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(want); i += 2 {
		m[want[i]] = want[i+1]
	}
	if !maps.Equal(info.OperationMetrics, m) {
		t.Errorf("metrics %v, want %v", info.OperationMetrics, m)
	}
}

// D13: a dynamic overwrite replaces the partitions that it writes to. NULL is a partition like others, and values are compared, not texts.
func TestCommit_D13DynamicOverwriteTouchesItsPartitionsOnly(t *testing.T) {
	base := table(t, nil, file("1", "x"), file("2", "y"), file("3", ""), file("4", "__HIVE_DEFAULT_PARTITION__"))
	for _, c := range []struct {
		adds []*log.Add
		left []string
	}{
		{[]*log.Add{file("new", "x")}, []string{"2", "3", "4", "new"}},
		{[]*log.Add{file("new", "")}, []string{"1", "2", "4", "new"}},
		{[]*log.Add{file("new", "z")}, []string{"1", "2", "3", "4", "new"}},
		{[]*log.Add{file("m", "x"), file("n", "y"), file("o", "")}, []string{"4", "m", "n", "o"}},
	} {
		tx := &transaction.Transaction{Operation: transaction.Overwritten([]string{"p"}, "", true), Adds: c.adds}
		if err := tx.OverwritePartitions(base); err != nil {
			t.Fatal(err)
		}
		if got, _ := after(t, base, build(t, tx, base)); !slices.Equal(paths(got), c.left) {
			t.Errorf("%v, want %v", paths(got), c.left)
		}
	}

	nothing := &transaction.Transaction{Operation: transaction.Overwritten([]string{"p"}, "", true)}
	if err := nothing.OverwritePartitions(base); err != nil || len(nothing.Removes) != 0 {
		t.Errorf("no files touch %v, %v", nothing.Removes, err)
	}

	m := metadata(nil)
	m.SchemaString, m.PartitionColumns = columns("id", "long", "p", "decimal(10,2)"), []string{"p"}
	typed := tableOf(t, plain(), m, file("1", "1.5"), file("2", "1.50"), file("3", "15"))
	tx := &transaction.Transaction{Operation: transaction.Overwritten([]string{"p"}, "", true), Adds: []*log.Add{file("new", "1.50")}}
	if err := tx.OverwritePartitions(typed); err != nil {
		t.Fatal(err)
	}
	if got, _ := after(t, typed, build(t, tx, typed)); !slices.Equal(paths(got), []string{"3", "new"}) {
		t.Errorf("%v", paths(got))
	}

	m.PartitionColumns = nil
	whole := file("1", "x")
	whole.PartitionValues = nil
	flat := tableOf(t, plain(), m, whole)
	tx = &transaction.Transaction{Operation: transaction.Overwritten(nil, "", true)}
	if err := tx.OverwritePartitions(flat); err != nil || !tx.Reads.All || len(tx.Removes) != 1 {
		t.Errorf("a table without partitions: %v, %d removes", err, len(tx.Removes))
	}

	bad := tableOf(t, plain(), typed.Metadata, file("1", "word"))
	tx = &transaction.Transaction{Operation: transaction.Overwritten([]string{"p"}, "", true), Adds: []*log.Add{file("new", "1.50")}}
	if err := tx.OverwritePartitions(bad); !errors.Is(err, transaction.ErrInvalid) {
		t.Errorf("a value that cannot be read: %v", err)
	}
}

// D14: an overwrite with no files commits the removes; an append of none commits nothing, unless an application's version has to advance.
func TestCommit_D14NothingAndOverwriteWithNothing(t *testing.T) {
	base := table(t, nil, file("1", "x"), file("2", "y"))
	tx := &transaction.Transaction{Operation: transaction.Overwritten(nil, "", false)}
	tx.Overwrite(base)
	if got, _ := after(t, base, build(t, tx, base)); got.NumFiles() != 0 {
		t.Errorf("left: %v", paths(got))
	}
	if _, err := appending(base).Build(base, clock, "t"); !errors.Is(err, transaction.ErrNothing) {
		t.Errorf("an empty append: %v", err)
	}
	advance := appending(base)
	advance.Txns = []log.Txn{{AppID: "app", Version: 1}}
	if got, _ := after(t, base, build(t, advance, base)); got.Version != 6 {
		t.Errorf("version %d", got.Version)
	}
}

// E4: a file in a directory with spaces is removed by the path under which it was added, however its writer escaped it.
func TestCommit_E4RemovesRepeatThePathOfTheAdd(t *testing.T) {
	actions, err := log.ParseCommit([]byte(`{"add":{"path":"p%3Da%20b/f.parquet","partitionValues":{"p":"a b"},"size":1,"modificationTime":1,"dataChange":true}}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	base := table(t, nil, actions[0].Add)
	tx := &transaction.Transaction{Operation: transaction.Overwritten(nil, "", false), Adds: []*log.Add{file("p=a b/g.parquet", "a b")}}
	if err := tx.OverwritePartitions(base); err != nil {
		t.Fatal(err)
	}
	built := build(t, tx, base)
	if got, _ := after(t, base, built); !slices.Equal(paths(got), []string{"p=a b/g.parquet"}) {
		t.Errorf("%v", paths(got))
	}
	var text []byte
	for i := range built {
		if text, err = log.AppendAction(text, &built[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`"remove":{"path":"p%3Da%20b/f.parquet"`, `"add":{"path":"p=a%20b/g.parquet"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// E14: all that commitInfo holds of parameters and metrics is text.
func TestCommit_E14CommitInfoIsOfTexts(t *testing.T) {
	base := table(t, nil, file("1", "x"))
	tx := &transaction.Transaction{Operation: transaction.Deleted("id = 1"), Adds: []*log.Add{file("2", "x")}, Metrics: map[string]string{"numDeletedRows": "3", "numCopiedRows": "7", "numAddedFiles": "99"}}
	tx.OverwriteWhere(base, func(*log.Add) bool { return true })
	actions := build(t, tx, base)
	text, err := log.AppendAction(nil, &actions[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"operation":"DELETE"`, `"operationParameters":{"predicate":"[\"id = 1\"]"}`, `"numDeletedRows":"3"`, `"numCopiedRows":"7"`, `"numAddedFiles":"1"`, `"numRemovedFiles":"1"`,
		`"isolationLevel":"Serializable"`, `"isBlindAppend":false`, `"txnId":"txn-1"`, `"readVersion":5`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

// E15: a table with timestamps without time zone lists that feature, and with it those that older versions imply.
func TestCommit_E15FeaturesOfTheSchemaAreListed(t *testing.T) {
	m := metadata(nil)
	m.SchemaString = columns("id", "long", "p", "string", "t", "timestamp_ntz")
	p, changed, err := transaction.Protocol(nil, &m)
	if err != nil || !changed || p.MinReaderVersion != 3 || p.MinWriterVersion != 7 || !slices.Equal(p.ReaderFeatures, []string{"timestampNtz"}) ||
		!slices.Equal(p.WriterFeatures, []string{"appendOnly", "invariants", "timestampNtz"}) {
		t.Errorf("%+v, %v, %v", p, changed, err)
	}
	if err := log.CheckWrite(p, m); err != nil {
		t.Error(err)
	}
}
