package ast

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRewrite_CopiesAndReplaces(t *testing.T) {
	in, err := Parse([]byte(`{"a":{"class":"X","v":1},"b":[{"class":"Y"},{"class":"CONSTANT","value":1}]}`))
	require.NoError(t, err)
	before := string(Bytes(in))
	out, err := Rewrite(in, func(o *Object) (Value, error) {
		if o.Str("class") == "Y" {
			return New("class", "Z"), nil
		}
		return nil, nil
	}, func(r Raw) Value {
		if string(r) == "1" {
			return Raw("2")
		}
		return r
	})
	require.NoError(t, err)
	require.Equal(t, `{"a":{"class":"X","v":2},"b":[{"class":"Z"},{"class":"CONSTANT","value":1}]}`, string(Bytes(out)))
	out.(*Object).Obj("a").Set("more", String("x"))
	require.Equal(t, before, string(Bytes(in)), "the original stays as it is")
	failed := errors.New("no")
	_, err = Rewrite(in, func(o *Object) (Value, error) {
		if o.Str("class") == "Y" {
			return nil, failed
		}
		return nil, nil
	}, nil)
	require.ErrorIs(t, err, failed)
}

func TestClone_SharesNothingThatChanges(t *testing.T) {
	a := New("k", "v")
	b, c := Clone(a).(*Object), Clone(a).(*Object)
	b.Set("x", String("b"))
	c.Set("x", String("c"))
	require.Equal(t, `{"k":"v"}{"k":"v","x":"b"}{"k":"v","x":"c"}`, string(Bytes(a))+string(Bytes(b))+string(Bytes(c)))
}

func TestVisit_LeavesOut(t *testing.T) {
	in, err := Parse([]byte(`{"n":"1","c":[{"n":"2","c":{"n":"3"}},{"n":"4"}]}`))
	require.NoError(t, err)
	var seen []string
	Visit(in, func(o *Object) bool {
		seen = append(seen, o.Str("n"))
		return o.Str("n") != "2"
	})
	require.Equal(t, []string{"1", "2", "4"}, seen)
}

func TestNamed_AndNode(t *testing.T) {
	v, err := Parse([]byte(`{"class":"CONSTANT","type":"VALUE_CONSTANT","alias":"old","value":{"type":{"id":"INTEGER"},"is_null":false,"value":5}}`))
	require.NoError(t, err)
	require.Equal(t, "new", Alias(Named(v, "new")))
	require.Equal(t, "INTEGER", Node(v).Obj("value").Obj("type").Str("id"))
	require.Nil(t, Node(New("class", "X")))
	require.Equal(t, Raw("5"), Named(Raw("5"), "x"))
}
