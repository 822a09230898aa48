package log_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log"
)

// touch sets the modification time of a version's commit, in milliseconds.
func (tab *table) touch(v, ms int64) {
	tab.t.Helper()
	at := time.UnixMilli(ms)
	require.NoError(tab.t, os.Chtimes(filepath.Join(tab.dir, log.CommitName(v)), at, at))
}

func (tab *table) asOf(ms int64) int64 {
	tab.t.Helper()
	at := time.UnixMilli(ms)
	return tab.load(log.LoadOptions{AsOf: &at}).Version
}

// Times of files go up with the versions, as Spark moves them: those of a copied log do not.
func TestTimeTravel_ByTimesOfFiles(t *testing.T) {
	tab := newTable(t, first, addLine("a"), addLine("b"), addLine("c"), addLine("d"))
	for v, ms := range []int64{1000, 3000, 2000, 3001, 9000} { // as seen: 1000, 3000, 3001, 3002, 9000
		tab.touch(int64(v), ms)
	}
	for ms, want := range map[int64]int64{1000: 0, 2999: 0, 3000: 1, 3001: 2, 3002: 3, 8999: 3, 9000: 4, 1 << 50: 4} {
		require.Equal(t, want, tab.asOf(ms), "as of %d", ms)
	}
	at := time.UnixMilli(999)
	_, err := log.Load(t.Context(), tab, log.LoadOptions{AsOf: &at})
	require.ErrorIs(t, err, log.ErrNoVersion)
	require.ErrorContains(t, err, "the oldest left is 0 of 1970-01-01T00:00:01Z")

	entries, err := log.History(t.Context(), tab, 0)
	require.NoError(t, err)
	var times []int64
	for _, e := range entries {
		times = append(times, e.Timestamp)
		require.Nil(t, e.Info)
	}
	require.Equal(t, []int64{9000, 3002, 3001, 3000, 1000}, times)
	entries, err = log.History(t.Context(), tab, 2)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.EqualValues(t, 4, entries[0].Version)
}

// A version before the oldest checkpoint cannot be made any more, whatever its commit says.
func TestTimeTravel_GoesBackToTheOldestCheckpoint(t *testing.T) {
	tab := newTable(t, first, addLine("a"), addLine("b"), addLine("c"))
	for v := range int64(4) {
		tab.touch(v, 1000*(v+1))
	}
	tab.checkpoint(tab.load(version(2)))
	require.NoError(t, os.Remove(filepath.Join(tab.dir, log.CommitName(0))))
	require.EqualValues(t, 2, tab.asOf(3000))
	require.EqualValues(t, 3, tab.asOf(4000))
	at := time.UnixMilli(2500)
	_, err := log.Load(t.Context(), tab, log.LoadOptions{AsOf: &at})
	require.ErrorIs(t, err, log.ErrNoVersion)
	require.ErrorContains(t, err, "the oldest left is 2")
	entries, err := log.History(t.Context(), tab, 0)
	require.NoError(t, err)
	require.Len(t, entries, 3, "what happened is known as long as the commits are there")
}

const ictProtocol = `{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["inCommitTimestamp"]}}` + "\n"

func ictMetadata(settings string) string {
	return `{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{"delta.enableInCommitTimestamps":"true"` + settings + `}}}` + "\n"
}

func ict(ms int64) string {
	return fmt.Sprintf(`{"commitInfo":{"inCommitTimestamp":%d,"operation":"WRITE","big":%q}}`+"\n", ms, "")
}

// In-commit timestamps count from where they were enabled, the times of files before it.
func TestTimeTravel_ByInCommitTimestamps(t *testing.T) {
	tab := newTable(t, first, addLine("a"), ict(5000)+ictProtocol+ictMetadata(`,"delta.inCommitTimestampEnablementVersion":"2","delta.inCommitTimestampEnablementTimestamp":"5000"`),
		ict(6000)+addLine("b"), ict(7000)+addLine("c"))
	for v, ms := range []int64{1000, 2000, 100, 99999, 50} {
		tab.touch(int64(v), ms)
	}
	for ms, want := range map[int64]int64{1000: 0, 2000: 1, 4999: 1, 5000: 2, 5999: 2, 6000: 3, 6999: 3, 7000: 4, 1 << 50: 4} {
		require.Equal(t, want, tab.asOf(ms), "as of %d", ms)
	}
	require.EqualValues(t, 7000, tab.load(log.LoadOptions{}).Timestamp)
	require.EqualValues(t, 2000, tab.load(version(1)).Timestamp)
	entries, err := log.History(t.Context(), tab, 0)
	require.NoError(t, err)
	var times []int64
	for _, e := range entries {
		times = append(times, e.Timestamp)
	}
	require.Equal(t, []int64{7000, 6000, 5000, 2000, 1000}, times)
	require.Equal(t, "WRITE", entries[0].Info.Operation)

	tab.checkpoint(tab.load(log.LoadOptions{}))
	require.EqualValues(t, 7000, tab.load(log.LoadOptions{}).Timestamp, "the commit of a checkpoint has its time")

	always := newTable(t, ict(10)+ictProtocol+ictMetadata(""), ict(20)+addLine("a"))
	require.EqualValues(t, 0, always.asOf(19))
	require.EqualValues(t, 1, always.asOf(20))
	at := time.UnixMilli(9)
	_, err = log.Load(t.Context(), always, log.LoadOptions{AsOf: &at})
	require.ErrorIs(t, err, log.ErrNoVersion)

	always.put(log.CommitName(2), addLine("b"))
	_, err = log.Load(t.Context(), always, log.LoadOptions{})
	require.ErrorIs(t, err, log.ErrCorrupt)
	require.ErrorContains(t, err, "no inCommitTimestamp")
}

func TestHistory_FindsCommitInfoWhereverItStands(t *testing.T) {
	long := ""
	for i := range 3000 {
		long += addLine(fmt.Sprint("file-", i))
	}
	tab := newTable(t, first, long+`{"commitInfo":{"operation":"last"}}`, `{"commitInfo":{"operation":"first"}}`+"\n"+long, `{"commitInfo":{"operation":"alone"}}`)
	entries, err := log.History(t.Context(), tab, 3)
	require.NoError(t, err)
	require.Equal(t, "alone", entries[0].Info.Operation)
	require.Equal(t, "first", entries[1].Info.Operation)
	require.Equal(t, "last", entries[2].Info.Operation)
	_, err = log.History(t.Context(), newTable(t), 0)
	require.ErrorIs(t, err, log.ErrNoTable)
}
