package value

import (
	"bytes"
	"math"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// maxFixedBound is the longest value of type fixed that is kept as a bound: readers expect all of its bytes or none.
const maxFixedBound = 64

// Lower is the binary form of a lower bound, at most limit code points or bytes long (0: no limit), and whether there is one.
func Lower(t *planv1.Type, v *planv1.Value, limit int) ([]byte, bool) {
	if !bounds(t, v, limit) {
		return nil, false
	}
	b := Append(nil, t, zero(v, math.Copysign(0, -1)))
	if limit > 0 {
		switch t.GetKind() {
		case planv1.TypeKind_TYPE_KIND_STRING:
			b = LowerString(b, limit)
		case planv1.TypeKind_TYPE_KIND_BINARY:
			b = b[:min(len(b), limit)]
		}
	}
	return b, true
}

// Upper is the same for an upper bound. A value that was cut is raised; one that cannot be raised is no bound.
func Upper(t *planv1.Type, v *planv1.Value, limit int) ([]byte, bool) {
	if !bounds(t, v, limit) {
		return nil, false
	}
	b := Append(nil, t, zero(v, 0))
	if limit > 0 {
		switch t.GetKind() {
		case planv1.TypeKind_TYPE_KIND_STRING:
			return UpperString(b, limit)
		case planv1.TypeKind_TYPE_KIND_BINARY:
			if len(b) > limit {
				return raiseBytes(b[:limit])
			}
		}
	}
	return b, true
}

// LowerString cuts a string in UTF-8 to so many code points (0: not at all). The answer is part of b.
func LowerString(b []byte, limit int) []byte {
	if limit == 0 {
		return b
	}
	return b[:prefix(b, limit)]
}

// UpperString is the same for an upper bound, which is raised when it was cut; not ok: it cannot be.
func UpperString(b []byte, limit int) (upper []byte, ok bool) {
	if cut := LowerString(b, limit); len(cut) < len(b) {
		return raiseString(cut)
	}
	return b, true
}

func bounds(t *planv1.Type, v *planv1.Value, limit int) bool {
	if IsNull(v) || IsNaN(v) {
		return false
	}
	return limit == 0 || t.GetKind() != planv1.TypeKind_TYPE_KIND_FIXED || int(t.GetLength()) <= max(limit, maxFixedBound)
}

// prefix is the length in bytes of the first n code points.
func prefix(b []byte, n int) int {
	if len(b) <= n { // a code point has at least one byte
		return len(b)
	}
	i := 0
	for ; n > 0 && i < len(b); n-- {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// raiseString makes the smallest string that is greater than every string with this prefix and not longer in code points.
func raiseString(b []byte) ([]byte, bool) {
	for len(b) > 0 {
		r, size := utf8.DecodeLastRune(b)
		b = b[:len(b)-size]
		switch next := r + 1; {
		case next == 0xD800: // surrogates are no code points of their own
			return utf8.AppendRune(bytes.Clone(b), 0xE000), true
		case next <= utf8.MaxRune:
			return utf8.AppendRune(bytes.Clone(b), next), true
		}
	}
	return nil, false
}

func raiseBytes(b []byte) ([]byte, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			out := bytes.Clone(b[:i+1])
			out[i]++
			return out, true
		}
	}
	return nil, false
}
