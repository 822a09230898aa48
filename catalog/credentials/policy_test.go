package credentials

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var attempt = []string{"j0000000-0000-7000-8000-000000000001", "0", "1", "a0000000-0000-4000-8000-000000000001"}

func below(segments ...string) []string { return append(segments, attempt...) }

func TestPolicy(t *testing.T) {
	got, err := Policy("aws", "lake", below("db", "t", "data"), []Object{{"raw", "a/b=c/d.parquet"}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"Version": "2012-10-17", "Statement": [
		{"Sid": "OwnPrefix", "Effect": "Allow", "Action": ["s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"],
		 "Resource": ["arn:aws:s3:::lake/db/t/data/j0000000-0000-7000-8000-000000000001/0/1/a0000000-0000-4000-8000-000000000001/*"]},
		{"Sid": "CopiedFrom", "Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::raw/a/b=c/d.parquet"]}]}`, got)

	got, err = Policy("aws-cn", "lake", below("db", "t", "data"), nil)
	require.NoError(t, err)
	assert.Contains(t, got, "arn:aws-cn:s3:::lake/db/")
	assert.NotContains(t, got, "CopiedFrom")
}

// hostileNames are names of tables, namespaces and directories that one engine or another reads as more than they say: wildcards, policy variables, escapes of URLs, JSON and
// regular expressions, places above, twins of other names under normalization, invisible characters.
var hostileNames = []string{
	"", ".", "..", "*", "?", "a*", "a?b", "**", "[a-z]", "{a,b}", "(a|b)", "a|b", "^a$", `a\`, `a\*`, "a/b", "/", "a//b", "../../metadata", "..%2f..%2fmetadata", "%2e%2e", "%2a", "a%00b",
	"${aws:username}", "${*}", "${?}", "$", "$(id)", "`id`", `a"`, `","Effect":"Allow`, "a'b", "a;b", "a&b", "a#b", "a b", " ", "a\tb", "a\nb", "a\r\nb", "a\x00b", "a\x7fb", "\xff",
	"é", "e\u0301", "ａ", "\u202eatad", "a\u200bb", "a\u2044b", "a\uff0fb", "\ufeffa", "日本", "İ", "<a>", "a:b", "a!b", "a^b",
}

func TestPolicy_RefusesWhatCouldMeanMore(t *testing.T) {
	for _, name := range hostileNames {
		for _, prefix := range [][]string{below("db", name, "data"), below(name, "t", "data"), below("db", "t", name), append(below("db", "t", "data"), name)} {
			_, err := Policy("aws", "lake", prefix, nil)
			require.ErrorIs(t, err, ErrUnsafe, "%q", prefix)
		}
		_, err := Policy("aws", "lake", below("db", "t", "data"), []Object{{"raw", "a/" + name}})
		require.Equal(t, name != "a/b", err != nil, "%q", name) // a key of three segments
		_, err = Policy("aws", name, below("db", "t", "data"), nil)
		require.ErrorIs(t, err, ErrUnsafe, "%q as a bucket", name)
	}
	for _, prefix := range [][]string{nil, {"a"}, {"a", "b", "c", "d"}} {
		_, err := Policy("aws", "lake", prefix, nil)
		require.ErrorIs(t, err, ErrUnsafe, "too near to the root: %q", prefix)
	}
	for _, bucket := range []string{"La", "lake/x", "a..b", ".a.", "lake*", strings.Repeat("a", 64)} {
		_, err := Policy("aws", bucket, below("db", "t", "data"), nil)
		require.ErrorIs(t, err, ErrUnsafe, bucket)
	}
	_, err := Policy("*", "lake", below("db", "t", "data"), nil)
	require.ErrorIs(t, err, ErrUnsafe)
	var many []Object
	for range 40 {
		many = append(many, Object{"raw", strings.Repeat("x", 60)})
	}
	_, err = Policy("aws", "lake", below("db", "t", "data"), many)
	require.ErrorIs(t, err, ErrUnsafe, "longer than STS takes")
}

// matches is how an engine matches a resource: * is any run of characters, ? is any one, ${…} is replaced first by what nobody here controls.
func matches(pattern, text string, fold bool) bool {
	pattern = regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(pattern, "*")
	flags := "(?s)"
	if fold {
		flags = "(?si)"
	}
	q := regexp.QuoteMeta(pattern)
	q = strings.ReplaceAll(strings.ReplaceAll(q, `\*`, ".*"), `\?`, ".")
	return regexp.MustCompile(flags + "^" + q + "$").MatchString(text)
}

// Whatever is accepted reaches keys below the prefix, and no other: with an engine that tells case apart as AWS does, and with one that does not, as SeaweedFS.
func TestPolicy_ReachesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.OneOf(rapid.SampledFrom(hostileNames), rapid.StringMatching(`[A-Za-z0-9_.=@,+~*?$ -]{1,6}`), rapid.StringMatching(`[ab]{1,2}`))
		prefix := rapid.SliceOfN(segment, 1, 8).Draw(t, "prefix")
		text, err := Policy("aws", "lake", prefix, nil)
		if err != nil {
			return
		}
		var doc policyDocument
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		key := strings.Join(rapid.SliceOfN(segment, 1, 9).Draw(t, "key"), "/")
		if rapid.Bool().Draw(t, "near") {
			key = strings.Join(prefix, "/") + rapid.SampledFrom([]string{"", "/", "/x", "1", "1/x", "/../x", "x/y"}).Draw(t, "tail")
		}
		own := strings.Join(prefix, "/") + "/"
		for _, fold := range []bool{false, true} {
			k, o := key, own
			if fold {
				k, o = strings.ToLower(key), strings.ToLower(own)
			}
			if got, want := matches(doc.Statement[0].Resource[0], "arn:aws:s3:::lake/"+key, fold), strings.HasPrefix(k, o); got != want {
				t.Fatalf("%s reaches %q: %v", text, key, got)
			}
			if matches(doc.Statement[0].Resource[0], "arn:aws:s3:::other/"+key, fold) {
				t.Fatalf("%s reaches another bucket", text)
			}
		}
	})
}
