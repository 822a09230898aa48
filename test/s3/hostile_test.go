package s3_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

// hostile are names of which one policy engine or another, a shell, a URL or a file system makes more than they say.
var hostile = []string{
	"*", "?", "a*", "a?b", "**", "[a-z]", "{a,b}", "(a|b)", "^a$", `a\`, `a\*`, "a/b", "/", "a//b", "..", ".", "../../metadata", "..%2f..%2fmetadata", "%2e%2e", "%2a", "%", "${aws:username}", "${*}", "$",
	"$(id)", "`id`", `a"b`, `","Effect":"Allow`, "a'b", "a;b", "a&b", "a#b", "a b", " ", "a+b", "é", "e\u0301", "ａ", "\u202eatad", "a\u200bb", "a\u2044b", "日本", "İ", "<a>", "a:b", "a!b", "a=b", "A", "metadata", "data",
}

// A table, and a namespace, of any name works or is refused by name; whatever session an attempt gets for it reaches below the table's own data and nowhere else.
func TestHostileNames(t *testing.T) {
	w := start(t, 1)
	ctx := t.Context()
	admin := w.admin()
	_, err := admin.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("victim/metadata/v1.metadata.json"), Body: strings.NewReader("v")})
	require.NoError(t, err)
	w.SQL("CREATE SCHEMA s3.s; CREATE TABLE s3.s.victim AS SELECT 1 AS i")
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	worked, sessions := 0, 0
	for _, name := range hostile {
		for table, first := range map[string]string{"s3.s." + quote(name): "", "s3." + quote(name) + ".t": "CREATE SCHEMA IF NOT EXISTS s3." + quote(name) + "; "} {
			before := len(w.given())
			made := w.Run("sql", first+"CREATE TABLE "+table+" AS SELECT i FROM range(10) r(i)")
			if made.Code != 0 {
				require.NotEmpty(t, made.Err, table)
				require.NotContains(t, made.Err, "internal error", table)
				t.Logf("%s is refused: %.200s", table, made.Err)
				continue
			}
			worked++
			w.SQL("INSERT INTO " + table + " SELECT i + 10 FROM range(5) r(i)")
			require.Equal(t, "15", w.Value("SELECT count(*) FROM "+table), table)
			for _, given := range w.given()[before:] {
				sessions++
				require.Regexp(t, `^wh/[A-Za-z0-9_.=@,+~-]+/[A-Za-z0-9_.=@,+~-]+/data/[0-9a-f-]{36}/\d+/\d+/[0-9a-f-]{36}/$`, given.prefix(), table)
				x := w.client(given)
				for _, key := range []string{"victim/metadata/v1.metadata.json", "wh/s/victim/data/x", "wh/s/victim/metadata/x", "wh/x", "x", "wh/" + name + "/x", "wh/s/" + name + "/data/x"} {
					_, err := x.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: strings.NewReader("taken")})
					require.Error(t, err, "%s: a session for %s wrote %q", table, given.prefix(), key)
				}
			}
		}
	}
	require.Greater(t, worked, len(hostile), "most names work")
	require.Positive(t, sessions)
	require.Equal(t, "1", w.Value("SELECT count(*) FROM s3.s.victim"))
	t.Logf("%d of %d tables were made, %d sessions given", worked, 2*len(hostile), sessions)
}
