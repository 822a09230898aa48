package sql

import (
	"errors"
	"testing"
	"unicode/utf8"
)

var seeds = []string{
	"INSERT INTO a.b.\"c\"\"d\" (x, \"y z\") BY NAME SELECT * FROM 'f.parquet' WHERE a = E'\\'' AND b = $t$;$t$ -- c\n;",
	"CREATE TABLE IF NOT EXISTS t (a DECIMAL(10,2) NOT NULL COMMENT 'x', b STRUCT(a INT[], m MAP<STRING, LIST(INT)>)) PARTITIONED BY (bucket(16, a), month(b)) ORDERED BY (a DESC NULLS LAST) WITH ('k' = 'v', a.b = -1)",
	"CREATE TABLE t (a, b) WITH ('sort-order' = 'a desc, bucket(4, b)') AS WITH x AS (SELECT 1) FROM x",
	"EXPLAIN SELECT /* a /* b */ c */ 1", "SHOW TABLES FROM a.b", "SHOW SCHEMAS IN c", "DROP TABLE IF EXISTS x", "DESCRIBE größe",
	"SELECT '日本' || E'\\u65e5\\x41\\101\\U0010FFFF' || $$a$$", "VALUES (1), (0x1F), (1e10), (.5), (1_000)", "/*", "'", "\"", "$a$", "E'\\",
	"SELECT ((1)", "MERGE INTO t", "insert into t values (1); select 2; ; -- x", "\x00", "\xff", "CREATE TABLE t (a TIMESTAMP(9) WITH TIME ZONE, f FIXED[3])",
}

// FuzzParse: no text makes Parse panic or fail with anything but an *Error whose place lies in the text; what it accepts keeps its
// query verbatim, and Split agrees that it is one statement.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			checkError(t, text, err)
			return
		}
		if !utf8.ValidString(text) {
			t.Fatal("accepted invalid UTF-8")
		}
		if q := queryOf(s); q != nil {
			if q.Text != text[q.Offset:q.Offset+len(q.Text)] || q.Text == "" {
				t.Fatalf("query %q is not at %d", q.Text, q.Offset)
			}
		}
		pieces, err := Split(text)
		if err != nil || len(pieces) != 1 {
			t.Fatalf("Split sees %d statements, %v", len(pieces), err)
		}
		again, err := Parse(pieces[0])
		if err != nil || !sameDump(s, again) {
			t.Fatalf("the piece parses differently: %v", err)
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("not an *Error: %T", err)
	}
	if e.Offset < 0 || e.Offset > len(text) || e.Line < 1 || e.Column < 1 || e.Message == "" || !utf8.ValidString(err.Error()) {
		t.Fatalf("bad error %#v", e)
	}
}

// sameDump compares all but offsets, which the cutting shifted.
func sameDump(a, b Statement) bool {
	qa, qb := queryOf(a), queryOf(b)
	if (qa == nil) != (qb == nil) {
		return false
	}
	if qa != nil {
		qb.Offset = qa.Offset
	}
	return dump(a) == dump(b)
}

// FuzzParseType: types neither panic nor nest without bound.
func FuzzParseType(f *testing.F) {
	for _, s := range []string{"STRUCT(a INT, \"b c\" MAP<STRING, DECIMAL(3)[]>)[]", "FIXED[16]", "TIMESTAMP(9) WITH TIME ZONE", "ROW(a: INT COMMENT 'x')"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		typ, err := ParseType(text)
		if err != nil {
			checkError(t, text, err)
		} else if typ.GetKind() == 0 {
			t.Fatal("no kind")
		}
	})
}
