package uri

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"/a/b": "file:///a/b", "file:/a/b": "file:///a/b", "file:///a//b/": "file:///a/b", "FILE://localhost/a/b": "file:///a/b", "/": "file://", "/a:b/c": "file:///a:b/c",
		"//a/b": "file:///a/b", "/a b/%20": "file:///a b/%20", "/a\nb": "file:///a\nb",
		"s3://b": "s3://b", "s3://b/": "s3://b", "s3://b/k/l": "s3://b/k/l", "s3a://b/k/": "s3://b/k", "S3N://b/k": "s3://b/k", "s3://b/a b+%2B/ü": "s3://b/a b+%2B/ü",
		"gs://b/k": "gs://b/k", "abfss://c@acc.dfs.core.windows.net/k": "abfss://c@acc.dfs.core.windows.net/k", "wasb://c@acc.blob.core.windows.net/k": "abfss://c@acc.dfs.core.windows.net/k", "https://h:8080/a": "https://h:8080/a",
	} {
		l, err := Parse(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, l.String(), in)
		assert.Equal(t, !strings.HasPrefix(want, "file:"), l.Remote())
		again, err := Parse(l.String() + "/")
		require.NoError(t, err, in)
		assert.Equal(t, l, again, in)
	}
	for _, in := range []string{
		"", "a/b", "file:a", "file://host/a", "hdfs://n/a", "s3:", "s3:/b/k", "s3://", "s3:///k", "s3://user@b/k", "s3://k:secret@b/k", "abfs://a@b@c/k", "s3://b c/k", "s3://b?x/k",
		"s3://%62/k", "s3://../k", "/a/../b", "/a/./b", "/a\x00", "s3://b/../k", "s3://b/./k", "s3://b//k", "s3://b/k//", "s3://b/a//k", "s3://b/a\nk", "s3://b/\x7f", "s3://b/\x00",
	} {
		_, err := Parse(in)
		require.Error(t, err, "%q", in)
	}
	_, err := Parse("s3://AKIA:topsecret@b/k")
	require.NotContains(t, err.Error(), "topsecret")
}

func TestParseKey_IsLiteral(t *testing.T) {
	for _, key := range []string{"a", "a//b", "a/../b", "+", "%2B", " ", "a?b#c", "a/", "/a", "\n", "日本"} {
		scheme, bucket, got, err := ParseKey("s3a://b/" + key)
		require.NoError(t, err, key)
		assert.Equal(t, []string{"s3", "b", key}, []string{scheme, bucket, got})
	}
	for _, in := range []string{"/a", "file:///a", "s3://b", "s3://b/", "x://b/k", "s3://u@b/k"} {
		_, _, _, err := ParseKey(in)
		require.Error(t, err, in)
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct{ location, uri, want string }{
		{"/a", "file:///a/b/c", "b/c"}, {"file:/a/", "/a", ""}, {"/", "/a", "a"}, {"s3://b/t1", "s3a://b/t1/x", "x"}, {"s3://b", "s3://b/x/y", "x/y"}, {"s3://b/t1/", "s3://b/t1", ""},
	} {
		got, err := Below(c.location, c.uri)
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.Join(got, "/"))
	}
	for _, c := range [][2]string{
		{"s3://b/t1", "s3://b/t10/x"},
		{"s3://b/t1", "s3://c/t1/x"},
		{"s3://b/t1", "gs://b/t1/x"},
		{"s3://b/a", "/a/x"},
		{"/b/a", "s3://b/a/x"},
		{"s3://b/t1", "s3://b/t1/../t2/x"},
		{"s3://b/t1", "s3://b/T1/x"},
		{"s3://b/t1", "s3://B/t1/x"},
		{"s3://b/t1", "s3://b//t1/x"},
		{"s3://b/t1", "s3://b/t1//x"},
		{"/a", "/ab"},
		{"/a", "relative"},
		{"/a", ""},
	} {
		_, err := Below(c[0], c[1])
		require.ErrorIs(t, err, ErrOutside, "%s in %s", c[1], c[0])
	}
}

func TestKey(t *testing.T) {
	for in, want := range map[string]string{
		"/a/b": "/a/b", "file:/a/b": "/a/b", "file:///a//b": "/a/b", "file://localhost/a": "/a", "/a/b/": "/a/b", "/a/.b": "/a/.b", "relative": "relative", "": "", "/a/../b": "/a/../b",
		"s3a://b/k": "s3://b/k", "s3://b/k": "s3://b/k", "s3://b/k//l": "s3://b/k//l", "s3n://b/a/../b": "s3://b/a/../b", "s3://b/k/": "s3://b/k/", "x://b/k": "x://b/k", "file://h/a": "file://h/a",
	} {
		assert.Equal(t, want, Key(in), in)
		assert.Equal(t, want, Key(Key(in)), in)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"/a", "s3://b/k", "file://localhost/x", "s3://b//", "abfs://c@a/k"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		l, err := Parse(in)
		if err != nil {
			return
		}
		again, err := Parse(l.String() + "/")
		if err != nil || again.String() != l.String() {
			t.Fatalf("%q: %q, then %q %v", in, l, again, err)
		}
		if _, err := l.Below(in); err != nil {
			t.Fatal(err)
		}
	})
}
