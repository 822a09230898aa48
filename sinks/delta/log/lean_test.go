package log

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is known of a file without its statistics is the same as with them.
func TestParseAdds_IsWhatParseCommitReads(t *testing.T) {
	lines := `{"add":{"path":"a%20b","partitionValues":{"p":"x","q":null},"size":12,"modificationTime":3,"dataChange":true,"stats":"{\"numRecords\":7,\"nullCount\":{\"i\":0}}"}}
{"add":{"path":"c%41","partitionValues":{"p":"x","q":null},"size":1e2,"dataChange":false,"stats":"{\"numRecords\":7}","tags":{"t":"v"},"x":[1],"baseRowId":9}}
{ "add" : {"path":"d","partitionValues":null,"stats":"{\"nullCount\":{},\"numRecords\":8}","deletionVector":{"storageType":"u","pathOrInlineDv":"x","sizeInBytes":1,"cardinality":1}} }
{"add":{"path":"e","stats":null}}
{"add":{"path":"f","stats":"{\"numRecords\":-1}"}}
`
	got, err := ParseAdds([]byte(lines))
	require.NoError(t, err)
	want := parse(t, lines)
	require.Len(t, got, len(want))
	for i, a := range got {
		w := *want[i].Add
		w.Tags, w.Extra = nil, nil
		if i < 2 {
			text := `{"numRecords":7}`
			w.Stats = &text
		}
		require.Equal(t, w, *a)
	}
	got[0].PartitionValues["shared"] = nil
	require.Contains(t, got[1].PartitionValues, "shared", "files of one partition have one map")
	none, err := ParseAdds(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestParseAdds_WhatIsWrongNamesTheLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"remove":{"path":"a"}}`: `want an add, not "remove"`, `{"add":null}`: "not null", ``: "want '{'", `{"add":{"path":"a"},"txn":null}`: "want '}'",
		`{"add":{"path":"a"}} {}`: "want the end", `{"add":{}}`: "add.path is missing", `{"add":{"path":7}}`: "add.path is not a string", `{"add":{"path":"a","path":"b"}}`: "add.path: it comes twice",
		`{"add":{"path":"a","stats":7}}`: "add.stats is not a string", `{"add":{"path":"a","stats":"{\"numRecords\":7,\x"}}`: "escape", `{"add":{"path":"a","tags":{"t":[]}}}`: "add.tags.t is not a string",
		`{"add":{"path":"a","partitionValues":{"p":[]}}}`: "add.partitionValues.p is not a string", `{"add":{"path":"a","size":-1}}`: "negative",
		`{"add":{"path":"a","stats":"{\"numRecords\":99999999999999999999}"}}`: "numRecords", `{"add":{"path":"a","x":[}}`: "add.x",
	} {
		_, err := ParseAdds([]byte(`{"add":{"path":"first"}}` + "\n" + line + "\n"))
		require.ErrorIs(t, err, ErrCorrupt, line)
		require.ErrorContains(t, err, "line 2", line)
		require.ErrorContains(t, err, want, line)
	}
}

// ParseAdds takes no line that ParseCommit refuses, and reads the same files.
func FuzzParseAdds(f *testing.F) {
	f.Add([]byte(`{"add":{"path":"a%20b","partitionValues":{"p":"a b","q":null},"size":1e3,"stats":"{\"numRecords\":3}"}}` + "\n"))
	f.Add([]byte(`{"add":{"path":"a","tags":{"a":"\u00e4"},"deletionVector":{"storageType":"i","pathOrInlineDv":"x","cardinality":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		adds, err := ParseAdds(data)
		if err != nil {
			return
		}
		actions, err := ParseCommit(data)
		require.NoError(t, err)
		require.Len(t, actions, len(adds))
		for i, a := range adds {
			full := actions[i].Add
			require.NotNil(t, full)
			require.Equal(t, full.key(), a.key())
			require.Equal(t, full.PartitionValues, a.PartitionValues)
			require.Equal(t, full.Size, a.Size)
		}
	})
}

// The reader keeps next to nothing of long statistics.
func TestParseAdds_IsLean(t *testing.T) {
	line := `{"add":{"path":"a","partitionValues":{"p":"x"},"size":1,"dataChange":true,"stats":"{\"numRecords\":7,\"minValues\":{\"s\":\"` + strings.Repeat("x", 1000) + `\"}}"}}` + "\n"
	lines := []byte(strings.Repeat(line, 1000))
	require.Less(t, testing.AllocsPerRun(5, func() {
		_, err := ParseAdds(lines)
		require.NoError(t, err)
	}), 4000.0)
}
