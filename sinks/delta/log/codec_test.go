package log

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log/partition"
)

func write(t *testing.T, actions ...Action) string {
	t.Helper()
	var out []byte
	var err error
	for i := range actions {
		out, err = AppendAction(out, &actions[i])
		require.NoError(t, err)
	}
	return string(out)
}

func parse(t *testing.T, text string) []Action {
	t.Helper()
	actions, err := ParseCommit([]byte(text))
	require.NoError(t, err)
	return actions
}

// Each line is written as it was read: known and unknown fields, features, null values, numbers beyond 2^53.
func TestCodec_KeepsWhatItReads(t *testing.T) {
	lines := []string{
		`{"commitInfo":{"inCommitTimestamp":1749830855993,"timestamp":1749830855992,"operation":"WRITE","operationParameters":{"mode":"Append"},"readVersion":9007199254740993,"isolationLevel":"Serializable","isBlindAppend":true,"operationMetrics":{"numFiles":"1"},"userMetadata":"u","engineInfo":"e","txnId":"t","clusterId":"x","notebook":{"id":[1,2]}}}`,
		`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["appendOnly","x-unknown"],"later":1.50}}`,
		`{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}`,
		`{"metaData":{"id":"i","name":"n","description":"d","format":{"provider":"parquet","options":{"a":"b"}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":["p"],"configuration":{"delta.appendOnly":"true"},"createdTime":1,"new":null}}`,
		`{"add":{"path":"p=a%2520b/x.parquet","partitionValues":{"p":"a b","q":null},"size":9223372036854775807,"modificationTime":-1,"dataChange":false,"stats":"{\"numRecords\":1}","tags":{"k":null,"l":"v"},"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6,"maxRowIndex":9,"z":{}},"baseRowId":4071,"defaultRowCommitVersion":41,"clusteringProvider":"liquid","foo":[{"bar":1e400}]}}`,
		`{"remove":{"path":"x","deletionTimestamp":1515488792485,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":0,"stats":"s","tags":{},"baseRowId":1,"defaultRowCommitVersion":2,"u":true}}`,
		`{"remove":{"path":"x","dataChange":false}}`,
		`{"txn":{"appId":"3ba13872","version":-9223372036854775808,"lastUpdated":5,"e":"x"}}`,
		`{"domainMetadata":{"domain":"d","configuration":"{\"a\":1}","removed":true,"v":2}}`,
		`{"cdc":{"path":"_change_data/c.parquet","partitionValues":{},"size":1,"dataChange":false,"tags":{"a":"b"},"w":1}}`,
		`{"sidecar":{"path":"3a.parquet","sizeInBytes":1,"modificationTime":2,"tags":{},"w":1}}`,
		`{"checkpointMetadata":{"version":3,"tags":{"a":"b"},"w":1}}`,
		`{"brandNew":{"a":[1,2,{"b":"\u0000"}]}}`,
		`{"brandNew":17}`,
	}
	for _, line := range lines {
		require.Equal(t, line+"\n", write(t, parse(t, line)...))
	}
	require.Len(t, parse(t, strings.Join(lines, "\n")), len(lines))
	require.Len(t, parse(t, "\n\n "+strings.Join(lines, "\r\n \n")+"\n"), len(lines), "empty lines and white space are nothing")
}

func TestCodec_PathsAreDecodedOnceAndWrittenAsTheyWere(t *testing.T) {
	for raw, path := range map[string]string{
		"p=x%253Ay/a.parquet": "p=x%3Ay/a.parquet", "a%20b": "a b", "ä": "ä", "a+b": "a+b", "p%3D1/a": "p=1/a", "p%3d1/a": "p=1/a", "a b": "a b",
		"s3://b/k%20l": "s3://b/k l", "file:///t/%25": "file:///t/%", "%C3%A4": "ä",
	} {
		for _, kind := range []string{"add", "remove", "cdc"} {
			line := `{"` + kind + `":{"path":"` + raw + `","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true}}`
			a := parse(t, line)[0]
			got, keep := "", ""
			switch kind {
			case "add":
				got, keep = a.Add.Path, a.Add.RawPath
			case "remove":
				got, keep = a.Remove.Path, a.Remove.RawPath
			case "cdc":
				got, keep = a.CDC.Path, a.CDC.RawPath
			}
			require.Equal(t, path, got)
			require.Equal(t, keep != "", partition.EncodePath(path) != raw)
			require.Contains(t, write(t, a), `"path":"`+raw+`"`)
		}
	}
	require.Equal(t, "{\"add\":{\"path\":\"p=100%25%20%5B%5D/%23ä\",\"partitionValues\":{},\"size\":0,\"modificationTime\":0,\"dataChange\":false}}\n", write(t, Action{Add: &Add{Path: "p=100% []/#ä"}}))
}

func TestCodec_CommitInfoMayHoldAnything(t *testing.T) {
	c := parse(t, `{"commitInfo":{"timestamp":"2020","operation":{"a":1},"operationParameters":{"s":"x","n":1.50,"b":true,"z":null,"o":{"p":["q"]}},"operationMetrics":[],"readVersion":1.5,"isBlindAppend":"true","txnId":3}}`)[0].CommitInfo
	require.Equal(t, map[string]string{"s": "x", "n": "1.50", "b": "true", "z": "null", "o": `{"p":["q"]}`}, c.OperationParameters)
	require.Equal(t, Extra{
		"timestamp": json.RawMessage(`"2020"`), "operation": json.RawMessage(`{"a":1}`), "operationMetrics": json.RawMessage(`[]`), "readVersion": json.RawMessage(`1.5`),
		"isBlindAppend": json.RawMessage(`"true"`), "txnId": json.RawMessage(`3`),
	}, c.Extra)
	require.Equal(t, Extra{"commitInfo": json.RawMessage(`"free text"`)}, parse(t, `{"commitInfo":"free text"}`)[0].CommitInfo.Extra)
}

func TestCodec_ReadsOtherWritersForms(t *testing.T) {
	got := parse(t, `{"add":{"path":"a","partitionValues":{"i":1,"b":true},"size":12.0,"modificationTime":1.5e3,"dataChange":true,"stats":null,"deletionVector":null},"remove":null,"txn":null}`)
	require.Len(t, got, 1)
	require.Equal(t, "1", *got[0].Add.PartitionValues["i"])
	require.Equal(t, "true", *got[0].Add.PartitionValues["b"])
	require.EqualValues(t, 12, got[0].Add.Size)
	require.EqualValues(t, 1500, got[0].Add.ModificationTime)
	require.Nil(t, got[0].Add.Stats)
	got = parse(t, `{"txn":{"appId":"\ud83d\ude00\u0041\/\ud83dx\ud83d\u0041","version":1},"remove":{"path":"b","dataChange":true}}`)
	require.Len(t, got, 2, "each kind of a line is an action")
	require.Equal(t, "😀A/\ufffdx\ufffdA", got[0].Txn.AppID)
	require.Empty(t, parse(t, `{}`))
	require.Empty(t, parse(t, `{"add":null}`))
}

func TestCodec_WhatIsWrongNamesTheLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"add":{"path":"a"`: "line 2", `{"add":{"path":"a"}} x`: "want the end", `[]`: "want an object", `null`: "want an object",
		`{"add":{}}`: "add.path is missing", `{"add":7}`: "add is not an object", `{"remove":{"tags":{"a b":[]}}}`: `remove.tags."a b" is not a string`, `{"add":{"path":""}}`: "it is empty", `{"add":{"path":"%zz"}}`: "path in the log", `{"add":{"path":"%00"}}`: "path in the log",
		`{"add":{"path":"%ff"}}`: "path in the log", `{"add":{"path":"a","size":1.5}}`: "whole number", `{"add":{"path":"a","size":9223372036854775808}}`: "whole number",
		`{"add":{"path":"a","size":"1"}}`: "line 2: add.size is not a number (byte 26 of the line)", `{"add":{"path":"a","size":01}}`: "add.size is not a number", `{"add":{"path":"a","size":-}}`: "add.size is not a number",
		`{"add":{"path":"a","size":-1}}`: "negative size", `{"add":{"path":"a","partitionValues":{"p":[]}}}`: "add.partitionValues.p is not a string", `{"add":{"path":7}}`: "line 2: add.path is not a string (byte 15 of the line)",
		`{"add":{"path":"a","deletionVector":{"storageType":"","pathOrInlineDv":""}}}`:                       "storage type",
		`{"add":{"path":"a","deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":2147483648}}}`: "32 bits",
		`{"protocol":{"minReaderVersion":1}}`:                                                                "protocol.minWriterVersion is missing", `{"metaData":{"name":"x"}}`: "metaData.id is missing", `{"txn":{"appId":"a"}}`: "txn.version is missing",
		`{"x":` + strings.Repeat("[", 2000): "nested deeper", "{\"txn\":{\"appId\":\"\xff\",\"version\":1}}": "not UTF-8", "{\"txn\":{\"appId\":\"\x01\",\"version\":1}}": "control character",
		`{"txn":{"appId":"\x","version":1}}`: "escape", `{"txn":{"appId":"\u12g4","version":1}}`: "hexadecimal", `{"txn":{"appId":"\`: "end of a string",
		`{"a":tru}`: "a is not true or false", `{"a":nul}`: "a is not null", `{"a" 1}`: "want ':'", `{"a":1,}`: "want the name of a field", `{"x":{"a":1 "b":2}}`: "',' or '}'", `{"x":[1 2]}`: "',' or ']'",
	} {
		_, err := ParseCommit([]byte("{\"x\":1}\n" + line))
		require.ErrorIs(t, err, ErrCorrupt, line)
		require.ErrorContains(t, err, "line 2", line)
		require.ErrorContains(t, err, want, line)
	}
}

func TestCodec_RefusesToWrite(t *testing.T) {
	for want, a := range map[string]Action{
		"without a member": {},
		"not UTF-8":        {Txn: &Txn{AppID: "\xff"}},
		"comes twice":      {Txn: &Txn{AppID: "a", Extra: Extra{"version": json.RawMessage("1")}}},
		"in one line":      {Unknown: &Unknown{Name: "x", Body: json.RawMessage("{\n}")}},
		"not JSON":         {Unknown: &Unknown{Name: "x", Body: json.RawMessage("{")}},
	} {
		out, err := AppendAction([]byte("kept"), &a)
		require.ErrorContains(t, err, want)
		require.Equal(t, "kept", string(out))
	}
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte(`{"add":{"path":"a%20b","partitionValues":{"p":"a b","q":null},"size":1e3,"stats":"\u00e4"}}` + "\n" + `{"commitInfo":{"timestamp":[1]}}`))
	f.Add([]byte(`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["a"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		actions, err := ParseCommit(data)
		if err != nil {
			return
		}
		for _, line := range strings.Split(string(data), "\n") {
			require.True(t, strings.Trim(line, " \t\r") == "" || json.Valid([]byte(line)), "%q", line)
		}
		first := write(t, actions...)
		require.Equal(t, first, write(t, parse(t, first)...), "written and read again it is the same")
	})
}
