package ast

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParse_RoundTrips(t *testing.T) {
	for _, in := range []string{
		`{}`, `[]`, `null`, `"a\"b\\"`, `{"a":[1,2.50,-1e300,18446744073709551615],"b":{"c":"ü日本"},"d":""}`,
		`{"class":"CONSTANT","type":"VALUE_CONSTANT","alias":"","value":{"type":{"id":"VARCHAR"},"is_null":false,"value":"}\"{"}}`,
		`[{"class":"CONSTANT","value":{}},{"class":"COLUMN_REF","column_names":["a"]}]`,
	} {
		v, err := Parse([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, in, string(Bytes(v)))
	}
	v, err := Parse([]byte(" { \"a\" : [ 1 , 2 ] } \n"))
	require.NoError(t, err)
	require.Equal(t, `{"a":[1,2]}`, string(Bytes(v)))
}

func TestParse_RefusesMalformed(t *testing.T) {
	for _, in := range []string{``, `{`, `[`, `"a`, `{"a"}`, `{"a":}`, `[1,]2`, `{} {}`, `{"class":"CONSTANT"`, `{"class":"CONSTANT","x":"`, `{"a":1,}x`, `[1 2]`} {
		_, err := Parse([]byte(in))
		require.Error(t, err, in)
	}
	deep := make([]byte, 2*maxDepth)
	for i := range deep {
		deep[i] = '['
	}
	_, err := Parse(deep)
	require.Error(t, err)
}

func TestParse_NeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.SampledFrom([]byte(`{}[]":,\ a1"class""CONSTANT"`))).Draw(t, "in")
		v, err := Parse(in)
		if err == nil {
			again, err := Parse(Bytes(v))
			require.NoError(t, err)
			require.Equal(t, Bytes(v), Bytes(again))
		}
	})
}

func TestString_IsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var back string
		require.NoError(t, json.Unmarshal(String(s), &back))
		require.Equal(t, s, back)
		require.Equal(t, s, Text(String(s)))
	})
}

func TestConstant(t *testing.T) {
	node := func(alias, value string) Value {
		v, err := Parse([]byte(`{"class":"CONSTANT","type":"VALUE_CONSTANT","alias":"` + alias + `","query_location":1,"value":` + value + `}`))
		require.NoError(t, err)
		require.IsType(t, Raw{}, v, "constants stay bytes")
		return v
	}
	text, isString, isNull, ok := Constant(node("", `{"type":{"id":"VARCHAR","type_info":null},"is_null":false,"value":"a\"is_null\":true"}`))
	require.Equal(t, []any{`a"is_null":true`, true, false, true}, []any{text, isString, isNull, ok})
	isString, isNull, ok = ConstantKind(node("", `{"type":{"id":"VARCHAR","type_info":null},"is_null":false,"value":"a\"is_null\":true"}`))
	require.Equal(t, []any{true, false, true}, []any{isString, isNull, ok})
	isString, isNull, ok = ConstantKind(node("x", `{"type":{"id":"NULL","type_info":null},"is_null":true}`))
	require.Equal(t, []any{false, true, true}, []any{isString, isNull, ok})
	text, isString, _, _ = Constant(node("x", `{"type":{"id":"INTEGER","type_info":null},"is_null":false,"value":5}`))
	require.Equal(t, []any{"5", false}, []any{text, isString})
	require.Equal(t, "name", Alias(node("name", `{}`)))
	require.Empty(t, Alias(Unname(node("name", `{}`))))
	_, _, _, ok = Constant(Raw(`5`))
	require.False(t, ok)
}

func TestObject_SetAndReplace(t *testing.T) {
	v, err := Parse([]byte(`{"a":1,"b":"x","c":null}`))
	require.NoError(t, err)
	o := v.(*Object)
	o.Set("b", String("y"))
	o.Set("d", &Array{Items: []Value{Raw("1")}})
	require.JSONEq(t, `{"a":1,"b":"y","c":null,"d":[1]}`, string(Bytes(o)))
	require.True(t, IsNull(o.Get("c")) && IsNull(o.Get("zzz")) && !IsNull(o.Get("a")))
	require.Nil(t, o.Obj("a"))
	require.Empty(t, o.List("a"))
	o.Replace(New("k", "v", "n", nil))
	require.Equal(t, `{"k":"v","n":null}`, string(Bytes(o)))
}
