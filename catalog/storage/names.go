package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// EscapeSegment maps a name to a directory's name that means the same to every engine. Letters, digits, _ and - stay; every other
// byte becomes ~ and two hex digits. A percent sign is avoided on purpose: some implementations decode URIs, others do not.
func EscapeSegment(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch ch := name[i]; {
		case ch >= 'a' && ch <= 'z', ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', ch == '_', ch == '-':
			b.WriteByte(ch)
		default:
			fmt.Fprintf(&b, "~%02x", ch)
		}
	}
	return b.String()
}

// UnescapeSegment is the name that EscapeSegment made a directory's name of. What it did not make, such as a name that TableDir cut, stays
// as it is.
func UnescapeSegment(dir string) string {
	var b strings.Builder
	for i := 0; i < len(dir); i++ {
		if dir[i] == '~' && i+2 < len(dir) {
			if ch, err := hex.DecodeString(dir[i+1 : i+3]); err == nil {
				b.Write(ch)
				i += 2
				continue
			}
		}
		b.WriteByte(dir[i])
	}
	if name := b.String(); EscapeSegment(name) == dir {
		return name
	}
	return dir
}

// TableDir is where a table of that name goes below a root: <namespace>/<table>, always two levels, the namespace's parts joined by
// dots. With a level for each part, the table b of the namespace a would lie around the table c of the namespace a.b.
func TableDir(ident []string) string {
	if len(ident) == 0 {
		return ""
	}
	parts := make([]string, len(ident))
	for i, p := range ident {
		parts[i] = EscapeSegment(p)
	}
	last := len(parts) - 1
	return shorten(strings.Join(parts[:last], ".")) + "/" + shorten(parts[last])
}

// maxDirName leaves room below the 255 bytes that file systems take.
const maxDirName = 240

// shorten keeps long names apart by a hash; ~~ occurs in no escaped name.
func shorten(dir string) string {
	if len(dir) <= maxDirName {
		return dir
	}
	sum := sha256.Sum256([]byte(dir))
	return dir[:maxDirName-34] + "~~" + hex.EncodeToString(sum[:16])
}
