package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/signet-io/signet/internal/rawjson"
)

func TestObject_MembersInTheirOrder(t *testing.T) {
	got, err := rawjson.Object([]byte(" {\"a\" : [1, {\"x\":\"]}\"}] ,\n\"b\":\"q\\\"\\\\\",\"c\":-1.5e+3,\"d\":null,\"\":{}}\n"))
	require.NoError(t, err)
	var text []string
	for _, m := range got {
		text = append(text, m.Key+"="+string(m.Value))
	}
	require.Equal(t, []string{`a=[1, {"x":"]}"}]`, `b="q\"\\"`, "c=-1.5e+3", "d=null", "={}"}, text)
	require.JSONEq(t, `{"a":[1,{"x":"]}"}],"b":"q\"\\","c":-1500,"d":null,"":{}}`, string(rawjson.AppendObject(nil, got)))
}

func TestObject_UnusualIsRefused(t *testing.T) {
	for _, doc := range []string{
		"", " ", "[]", "{", `{"a"`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":1}x`, `{"a":1}{}`, `{"a":1,"a":2}`, `{"\u0061":1}`, `{a:1}`, `{"a":"x}`, `{"a":[1}`,
		`{"a":'x'}`, `{"a":"\"}`, `{1:2}`, `{,}`, `{"a":{"b":1}`,
	} {
		_, err := rawjson.Object([]byte(doc))
		require.ErrorIs(t, err, rawjson.ErrUnusual, "%q", doc)
	}
	for _, doc := range []string{"", "{}", "[", "[1", "[1,]", "[,1]", "[1]]", "[1 2]", `["x]`} {
		_, err := rawjson.Array([]byte(doc))
		require.ErrorIs(t, err, rawjson.ErrUnusual, "%q", doc)
	}
	for _, doc := range []string{"", "{}", "[", "]", "1"} {
		_, err := rawjson.Extend([]byte(doc), []byte("1"))
		require.ErrorIs(t, err, rawjson.ErrUnusual, "%q", doc)
	}
}

func TestExtend(t *testing.T) {
	for _, c := range [][2]string{{"[]", `[{"a":1},2]`}, {" [ ] ", `[{"a":1},2]`}, {"[0]", `[0,{"a":1},2]`}, {"[ \"]\" , 1 ]\n", `["]" , 1,{"a":1},2]`}} {
		got, err := rawjson.Extend([]byte(c[0]), []byte(`{"a":1}`), []byte("2"))
		require.NoError(t, err)
		require.Equal(t, c[1], string(got))
	}
}

// Whatever a decoder accepts is taken apart as the decoder reads it, or refused.
func TestSplits_AsTheDecoderReads(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c"\\\[\]{},: ]*`))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
			rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Just[any](nil))
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(text, value(depth-1), 0, 3), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.MapOfN(text, value(3), 0, 4).Draw(t, "object")
		raw, err := json.Marshal(doc)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "indented") {
			raw, err = json.MarshalIndent(doc, " ", "\t")
			require.NoError(t, err)
		}
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &want))
		got, err := rawjson.Object(raw)
		if err != nil {
			require.ErrorIs(t, err, rawjson.ErrUnusual)
			require.Contains(t, string(raw), `\`, "only names with escapes are refused")
			return
		}
		require.Len(t, got, len(want))
		for _, m := range got {
			require.Equal(t, string(want[m.Key]), strings.TrimSpace(string(m.Value)))
		}
		list := rapid.SliceOfN(value(3), 0, 4).Draw(t, "array")
		raw, err = json.Marshal(list)
		require.NoError(t, err)
		var elements []json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &elements))
		parts, err := rawjson.Array(raw)
		require.NoError(t, err)
		require.Len(t, parts, len(elements))
		for i, p := range parts {
			require.Equal(t, string(elements[i]), string(p))
		}
	})
}
