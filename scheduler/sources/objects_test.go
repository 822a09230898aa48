package sources

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// stored are objects with their own keys as bodies, but for markers of directories.
func stored(t *testing.T, s *objectstest.Server, keys ...string) {
	t.Helper()
	for _, k := range keys {
		body := []byte(k)
		if strings.HasSuffix(k, "/") {
			body = nil
		}
		_, err := s.Client(t).Put(t.Context(), k, objects.Bytes(body), objects.PutOptions{})
		require.NoError(t, err, k)
	}
}

// onStore resolves below prefixes of a store.
func onStore(t *testing.T, s *objectstest.Server, more Rules, prefixes ...string) *Resolver {
	t.Helper()
	for _, p := range prefixes {
		more.Remote = append(more.Remote, Remote{Prefix: p, Open: func(bucket string) (objects.Client, error) {
			return objects.NewS3(s.Props(), bucket, objects.Static(s.Props()))
		}})
	}
	return resolver(t, more)
}

func uris(files []*planv1.PinnedFile) (out []string) {
	for _, f := range files {
		out = append(out, strings.TrimPrefix(f.GetUri(), "s3://"+objectstest.Bucket+"/"))
	}
	return out
}

// X23: the SQL text names the literal key. What is listed is used as it is.
func TestObjects_KeysAreLiteral(t *testing.T) {
	keys := []string{
		"raw/test+1", "raw/test 1", "raw/test%2B1", "raw/report 24", "raw/report%2024", "raw/t:12", "raw/col=a%20b/x", "raw/col=a b/x", "raw/a//b", "raw/a/b", "raw/größe", "raw/日本/x",
		"raw/a'b\"c", "raw/back\\slash", "raw/{b,c}", "raw/x&y=z;u?v#w",
	}
	for _, empty := range []bool{false, true} {
		s := objectstest.Start(t)
		stored(t, s, keys...)
		s.Pages(3, empty)
		r := onStore(t, s, Rules{}, "s3://lake/raw")
		for _, k := range keys {
			files, err := r.Resolve(t.Context(), "", []string{"s3://lake/" + k})
			require.NoError(t, err, k)
			require.Equal(t, []string{k}, uris(files))
			require.EqualValues(t, len(k), files[0].GetSizeBytes())
			require.NotEmpty(t, files[0].GetEtag())
			require.Equal(t, "s3://lake/"+k, files[0].GetName())
			require.NoError(t, r.Changed(t.Context(), files[0]))
		}
		files, err := r.Resolve(t.Context(), "", []string{"s3a://lake/raw/**"})
		require.NoError(t, err)
		require.ElementsMatch(t, keys, uris(files))
		for _, f := range files { // lists and looks agree about versions
			require.NoError(t, r.Changed(t.Context(), f), f.GetUri())
		}
	}
}

func TestObjects_Patterns(t *testing.T) {
	s := objectstest.Start(t)
	stored(t, s, "raw/2026/a.csv", "raw/2026/b.csv", "raw/2026/c.json", "raw/2026/01/a.csv", "raw/2026/01/x/a.csv", "raw/2026/02/b.csv", "raw/2026/", "raw/2026/01/",
		"raw/2026/data[1].csv", "raw/2026/data1.csv", "raw/2026/[d]/q.csv", "raw/2026/d/q.csv", "raw/2026/k=1/z.csv", "raw/2026/k=2/z.csv", "raw/20260/a.csv", "other/a.csv", "raw/2026/{a,b}.csv")
	r := onStore(t, s, Rules{}, "s3://lake/raw/2026")
	for pattern, want := range map[string]string{
		"raw/2026/*.csv":          "a.csv b.csv data1.csv data[1].csv {a,b}.csv",
		"raw/2026/?.csv":          "a.csv b.csv",
		"raw/2026/[!a].csv":       "b.csv",
		"raw/2026/data[1].csv":    "data[1].csv", // an exact name wins
		"raw/2026/data[1-2].csv":  "data1.csv",
		"raw/2026/[d]/*.csv":      "[d]/q.csv",
		"raw/2026/[de]/*.csv":     "d/q.csv",
		"raw/2026/*/a.csv":        "01/a.csv",
		"raw/2026/**/a.csv":       "01/a.csv 01/x/a.csv a.csv",
		"raw/2026/*/*/*":          "01/x/a.csv",
		"raw/2026/k=*/z.csv":      "k=1/z.csv k=2/z.csv",
		"raw/2026/{a,b}*.csv":     "{a,b}.csv",
		"raw/2026/0[12]/**":       "01/a.csv 01/x/a.csv 02/b.csv",
		"raw/2026/**/**/01/*.csv": "01/a.csv",
	} {
		files, err := r.Resolve(t.Context(), "", []string{"s3://lake/" + pattern})
		require.NoError(t, err, pattern)
		var got []string
		for _, u := range uris(files) {
			got = append(got, strings.TrimPrefix(u, "raw/2026/"))
		}
		require.Equal(t, want, strings.Join(got, " "), pattern)
	}
}

// S70: nothing outside of a configured prefix is looked at, however it is written; what may be there is not told.
func TestObjects_OutsideOfPrefixes(t *testing.T) {
	s := objectstest.Start(t)
	stored(t, s, "raw/2026/a.csv", "raw/20261/a.csv", "secret/a.csv", "wh/t/data/a.parquet", "wh//x.csv")
	r := onStore(t, s, Rules{RemoteTables: []string{"s3://lake/wh"}}, "s3://lake/raw/2026", "s3://lake/wh", "https://data.example.org/pub")
	s.Log()
	for _, name := range []string{
		"s3://lake/secret/a.csv", "s3://lake/raw/20261/a.csv", "s3://lake/raw/*/a.csv", "s3://lake/raw/2026*/a.csv", "s3://lake/*", "s3://lake/**", "s3://lake/raw//2026/a.csv", "s3://lake/RAW/2026/a.csv",
		"s3://other/raw/2026/a.csv", "s3://lake/raw/2026/../../secret/a.csv", "s3://lake/raw/2026/./a.csv", "s3://lake/raw/2026", "s3://lake/", "s3://lake", "s3://", "s3://user:pw@lake/raw/2026/a.csv",
		"s3://lake/wh/t/data/a.parquet", "s3://lake/wh/**", "s3://lake/wh//x.csv", "s3n://lake/secret/a.csv", "S3://lake/secret/a.csv", "gs://lake/raw/2026/a.csv", "http://data.example.org/pub/a.csv",
		"https://data.example.org/public/a.csv", "https://data.example.org:8443/pub/a.csv", "https://evil.example.org/pub/a.csv", "https://data.example.org.evil.org/pub/a.csv",
		"https://data.example.org@evil.org/pub/a.csv", "https://data.example.org/pub/../a.csv", "https://data.example.org/pub/%2e%2e/a.csv", "https://data.example.org/pub/%252e%252E/a.csv",
		"https://data.example.org/pub/..;x/a.csv", "https://data.example.org/pub/a%2f..%2fb.csv", "https://data.example.org/pub/a\\..\\b", "https://data.example.org/pub/a.csv?x=1",
		"https://data.example.org/pub/a.csv#x", "https://data.example.org/pub/100%.csv", "https://data.example.org/pub", "https:///pub/a.csv", "https://data.example.org\\@evil/pub/a.csv",
	} {
		_, err := r.Resolve(t.Context(), "/", []string{name})
		require.Error(t, err, name)
		require.NotErrorIs(t, err, ErrNotFound, name)
		require.NotContains(t, err.Error(), "pw@", name)
	}
	require.Empty(t, s.Log())
	_, err := resolver(t, Rules{}).Resolve(t.Context(), "/", []string{"s3://lake/raw/2026/a.csv"})
	require.ErrorIs(t, err, ErrDenied)
	require.ErrorContains(t, err, "sources.remote")
	_, err = r.Sign(t.Context(), "s3://lake/secret/a.csv", objects.Signing{Method: http.MethodGet})
	require.ErrorIs(t, err, ErrDenied)
}

// A restricted table inside a prefix is passed by in silence by patterns.
func TestObjects_PatternsPassTablesBy(t *testing.T) {
	s := objectstest.Start(t)
	stored(t, s, "a/x.csv", "a/wh/t.csv", "a/wh2/t.csv")
	files, err := onStore(t, s, Rules{RemoteTables: []string{"s3://lake/a/wh"}}, "s3://lake/a").Resolve(t.Context(), "", []string{"s3://lake/a/**"})
	require.NoError(t, err)
	require.Equal(t, []string{"a/wh2/t.csv", "a/x.csv"}, uris(files))
}

// X25: lists of many pages, also small and empty ones, are followed to their ends.
func TestObjects_ManyInSmallPages(t *testing.T) {
	s := objectstest.Start(t)
	var keys []string
	for _, dir := range []string{"many/a/", "many/b/", "many/c/"} {
		for n := range 85 {
			keys = append(keys, dir+strings.Repeat("x", n)+".csv")
		}
	}
	stored(t, s, append(keys, "many/", "many/a/")...)
	s.Pages(10, true)
	r := onStore(t, s, Rules{}, "s3://lake/many/")
	for _, pattern := range []string{"s3://lake/many/*/*.csv", "s3://lake/many/**/*.csv"} {
		files, err := r.Resolve(t.Context(), "", []string{pattern})
		require.NoError(t, err)
		require.ElementsMatch(t, keys, uris(files))
	}
	_, err := onStore(t, s, Rules{MaxFiles: 254}, "s3://lake/many").Resolve(t.Context(), "", []string{"s3://lake/many/**"})
	require.ErrorIs(t, err, ErrTooMany)
}

// Each refusal names the file, says what was tried, and what to do.
func TestObjects_Errors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		is         error
		fault      []objectstest.Fault
	}{
		{name: "s3://lake/raw/none.csv", want: "no such object", is: ErrNotFound},
		{name: "s3://lake/raw/none*.csv", want: "none matches it as a pattern", is: ErrNotFound},
		{name: "s3://lake/raw/[a", want: "broken", is: ErrNotFound},
		{name: "s3://lake/raw/dir", want: `a directory: not a source; write "s3://lake/raw/dir/*.parquet"`, is: ErrInvalid},
		{name: "s3://lake/raw/dir/", want: "a directory", is: ErrInvalid},
		{name: "s3://lake/raw/empty.parquet", want: "0 bytes", is: ErrInvalid},
		{name: "s3://nobucket/a.csv", want: "create the bucket, or correct its name", is: objects.ErrNoBucket},
		{name: "s3://nobucket/*.csv", want: "create the bucket, or correct its name", is: objects.ErrNoBucket},
		{
			name: "s3://lake/raw/a.csv", want: "the store does not know the access key", is: objects.ErrDenied,
			fault: []objectstest.Fault{{Method: http.MethodHead, Status: 403}, {Method: http.MethodGet, Status: 403, Code: "InvalidAccessKeyId"}},
		},
		{
			name: "s3://lake/raw/a.csv", want: "s3:GetObject is needed for it)", is: objects.ErrDenied,
			fault: []objectstest.Fault{{Method: http.MethodHead, Status: 403}, {Method: http.MethodGet, Status: 403, Code: "AccessDenied"}},
		},
		{
			name: "s3://lake/raw/a.csv", want: "without s3:ListBucket a missing object is denied, too", is: objects.ErrDenied,
			fault: []objectstest.Fault{{Method: http.MethodHead, Status: 403}, {Method: http.MethodGet, Status: 403, Code: "AccessDenied", Times: 9}},
		},
		{
			name: "s3://lake/raw/*.csv", want: "the objects below s3://lake/raw/ cannot be listed", is: objects.ErrDenied,
			fault: []objectstest.Fault{{Method: http.MethodGet, Status: 403, Code: "AccessDenied", Times: 3}},
		},
		{
			name: "s3://lake/raw/a.csv", want: "set s3.region to eu-north-1", is: objects.ErrRegion,
			fault: []objectstest.Fault{{Method: http.MethodHead, Status: 301, Region: "eu-north-1"}, {Method: http.MethodGet, Status: 301, Code: "PermanentRedirect", Region: "eu-north-1"}},
		},
		{
			name: "s3://lake/raw/a.csv", want: "set s3.region", is: objects.ErrRegion,
			fault: []objectstest.Fault{{Method: http.MethodHead, Status: 400, Times: 9}, {Method: http.MethodGet, Status: 400, Code: "AuthorizationHeaderMalformed"}},
		},
	} {
		s := objectstest.Start(t)
		stored(t, s, "raw/a.csv", "raw/dir/a.csv")
		for _, k := range []string{"raw/empty.parquet", "raw/dir/"} {
			_, err := s.Client(t).Put(t.Context(), k, objects.Bytes(nil), objects.PutOptions{})
			require.NoError(t, err)
		}
		s.Fail(c.fault...)
		_, err := onStore(t, s, Rules{}, "s3://lake/raw", "s3://nobucket").Resolve(t.Context(), "", []string{c.name})
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, `"`+c.name+`"`)
		require.ErrorIs(t, err, c.is)
	}
	_, err := New(Rules{Remote: []Remote{{Prefix: "s3://b", Open: func(bucket string) (objects.Client, error) { return objects.NewS3(objects.Props{}, bucket, nil) }}}})
	require.ErrorContains(t, err, "s3.region is missing")
}

// S73: another object of the same size is another version.
func TestObjects_Changed(t *testing.T) {
	s := objectstest.Start(t)
	r := onStore(t, s, Rules{}, "s3://lake")
	stored(t, s, "a")
	files, err := r.Resolve(t.Context(), "", []string{"s3://lake/a"})
	require.NoError(t, err)
	_, err = s.Client(t).Put(t.Context(), "a", objects.Bytes([]byte("b")), objects.PutOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, r.Changed(t.Context(), files[0]), ErrChanged)
	_, err = s.Client(t).Put(t.Context(), "a", objects.Bytes([]byte("longer")), objects.PutOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, r.Changed(t.Context(), files[0]), "1 bytes then, 6 now")
	require.NoError(t, s.Client(t).Remove(t.Context(), "a"))
	require.ErrorIs(t, r.Changed(t.Context(), files[0]), ErrChanged)
	s.Fail(objectstest.Fault{Method: http.MethodHead, Status: 403})
	require.NotErrorIs(t, r.Changed(t.Context(), files[0]), ErrChanged)
}
