package duckdb

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	csvLine   = regexp.MustCompile(`CSV Error on Line: (\d+)`)
	csvFile   = regexp.MustCompile(`(?m)^\s*file = (.+)$`)
	csvReason = regexp.MustCompile(`(?m)^Error when converting column "(.*)"\. (.+)$`)
)

// csvError puts a CSV file's name, the line and the reason into one sentence. DuckDB spreads them over a page with advice that does not
// apply here.
func csvError(msg string) (message, hint string, ok bool) {
	line, file := csvLine.FindStringSubmatch(msg), csvFile.FindStringSubmatch(msg)
	if line == nil || file == nil {
		return "", "", false
	}
	where := fmt.Sprintf("file %q, line %s: ", strings.TrimSpace(file[1]), line[1])
	if m := csvReason.FindStringSubmatch(msg); m != nil {
		hint = fmt.Sprintf("read_csv('…', types = {'%s': 'VARCHAR'}) gives the column another type", strings.ReplaceAll(m[1], "'", "''"))
		if strings.Contains(msg, "auto-detected") {
			hint = "types are guessed from the first rows: sample_size = -1 looks at all of them; " + hint
		}
		return where + fmt.Sprintf("column %q: %s", m[1], m[2]), hint, true
	}
	reason := "the line cannot be read"
	for _, l := range strings.Split(msg, "\n")[1:] {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "Original Line") {
			reason = l
			break
		}
	}
	return where + reason, "correct the line, or say how to read it: read_csv('…', null_padding = true), ignore_errors = true, strict_mode = false", true
}
