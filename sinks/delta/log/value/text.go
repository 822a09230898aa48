package value

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// FormatFloat writes a float as Java does: with a point, with an exponent outside of 0.001 to 10000000. bits is 32 or 64. A zero has no sign.
func FormatFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	s := strconv.FormatFloat(f, 'e', -1, bits)
	digits, exponent, _ := strings.Cut(s, "e")
	if !strings.Contains(digits, ".") {
		// Java wants two digits, and of those that stand for f the nearest to it: 4.9E-324, not 5.0E-324.
		digits += ".0"
		two := strconv.FormatFloat(f, 'e', 1, bits)
		if back, err := strconv.ParseFloat(two, bits); err == nil && back == f {
			digits, exponent, _ = strings.Cut(two, "e")
		}
	}
	e, _ := strconv.Atoi(exponent)
	return digits + "E" + strconv.Itoa(e)
}

// ParseFloat reads what FormatFloat or any other writer of decimal numbers writes, NaN and Infinity in any case included. A number beyond the type is an error.
func ParseFloat(s string, bits int) (float64, error) {
	if strings.ContainsAny(s, "xX_pP") {
		return 0, fmt.Errorf("%q is not a number", clip(s))
	}
	f, err := strconv.ParseFloat(s, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of %d bits", clip(s), bits)
	}
	return f, nil
}

// clip shortens a text for a message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

func formatDecimal(unscaled *big.Int, scale int) string {
	return string(appendDecimal(nil, unscaled, scale))
}

// appendDecimal writes all digits that the scale demands, and no exponent.
func appendDecimal(dst []byte, unscaled *big.Int, scale int) []byte {
	start := len(dst)
	dst = unscaled.Append(dst, 10)
	if scale <= 0 {
		return dst
	}
	if unscaled.Sign() < 0 {
		start++
	}
	if missing := scale + 1 - (len(dst) - start); missing > 0 {
		dst = append(dst[:start], strings.Repeat("0", missing)+string(dst[start:])...)
	}
	point := len(dst) - scale
	dst = append(dst, 0)
	copy(dst[point+1:], dst[point:])
	dst[point] = '.'
	return dst
}

// maxDecimalText bounds what is parsed: 38 digits, zeros around them, an exponent.
const maxDecimalText = 120

// ParseDecimal reads a decimal number exactly, exponent and all.
func ParseDecimal(s string) (unscaled *big.Int, scale int, err error) {
	bad := fmt.Errorf("%q is not a decimal number", clip(s))
	if len(s) > maxDecimalText {
		return nil, 0, bad
	}
	number, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		number = s[:i]
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil || exponent < -maxDecimalText || exponent > maxDecimalText {
			return nil, 0, bad
		}
	}
	whole, fraction, _ := strings.Cut(number, ".")
	digits := strings.TrimLeft(whole, "+-")
	if len(whole)-len(digits) > 1 || digits+fraction == "" || strings.Trim(digits+fraction, "0123456789") != "" {
		return nil, 0, bad
	}
	unscaled, _ = new(big.Int).SetString(digits+fraction, 10)
	if strings.HasPrefix(whole, "-") {
		unscaled.Neg(unscaled)
	}
	scale = len(fraction) - exponent
	if scale < 0 {
		unscaled.Mul(unscaled, power(-scale))
		scale = 0
	}
	return unscaled, scale, nil
}

// Rescale changes a decimal's scale. What does not fit the new one is rounded down (towards negative infinity), or up; exact says that nothing was lost.
func Rescale(unscaled *big.Int, from, to int, up bool) (out *big.Int, exact bool) {
	if from <= to {
		return new(big.Int).Mul(unscaled, power(to-from)), true
	}
	quotient, rest := new(big.Int).QuoRem(unscaled, power(from-to), new(big.Int))
	switch {
	case up && rest.Sign() > 0:
		quotient.Add(quotient, powers[0])
	case !up && rest.Sign() < 0:
		quotient.Sub(quotient, powers[0])
	}
	return quotient, rest.Sign() == 0
}

// AppendDate writes YYYY-MM-DD. The day has passed Check.
func AppendDate(dst []byte, day int64) []byte {
	return time.Unix(day*24*60*60, 0).UTC().AppendFormat(dst, "2006-01-02")
}

// AppendTime writes a timestamp in a layout of package time. It has passed Check.
func AppendTime(dst []byte, micros int64, layout string) []byte {
	return time.UnixMicro(micros).UTC().AppendFormat(dst, layout)
}

// ParseDate reads year-month-day, the latter two of one or two digits.
func ParseDate(s string) (day int64, err error) {
	t, rest, ok := parseDay(s)
	if !ok || rest != "" {
		return 0, fmt.Errorf("%q is not a date of the years 1 to 9999 in the form YYYY-MM-DD", clip(s))
	}
	return t.Unix() / (24 * 60 * 60), nil
}

func parseDay(s string) (t time.Time, rest string, ok bool) {
	year, rest, okY := digits(s, 4, 4)
	month, rest, okM := digits(after(rest, "-"), 1, 2)
	day, rest, okD := digits(after(rest, "-"), 1, 2)
	if !okY || !okM || !okD || year == 0 || month < 1 || month > 12 || day < 1 {
		return t, rest, false
	}
	t = time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return t, rest, t.Day() == day
}

// after is what follows a sign; without the sign it is nothing that digits would take.
func after(s, sign string) string {
	if rest, ok := strings.CutPrefix(s, sign); ok {
		return rest
	}
	return "?"
}

// digits reads a number of so many digits from the beginning.
func digits(s string, least, most int) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && i < most && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		i++
	}
	return n, s[i:], i >= least
}

// Instant is a timestamp that was read.
type Instant struct {
	Micros   int64 // since 1970-01-01 00:00:00
	Digits   int   // how many there were behind the seconds' point
	Zoned    bool  // Z or an offset stood at its end
	DateOnly bool
}

// ParseTimestamp reads the forms in which writers leave timestamps: a date, then T or a space and the time, its seconds with up to nine digits behind the point, of which
// those behind the sixth are dropped; then nothing, Z, or an offset as +01:00, +0100 or +01. A date alone is its midnight. Without Z or offset it is taken for UTC.
func ParseTimestamp(s string) (Instant, error) {
	bad := fmt.Errorf("%q is not a timestamp of the years 1 to 9999 in the form YYYY-MM-DDTHH:MM:SS.ffffffZ", clip(s))
	day, rest, ok := parseDay(s)
	if !ok {
		return Instant{}, bad
	}
	at := Instant{Micros: day.UnixMicro()}
	if rest == "" {
		at.DateOnly = true
		return at, nil
	}
	if rest[0] != 'T' && rest[0] != ' ' {
		return Instant{}, bad
	}
	hour, rest, okH := digits(rest[1:], 1, 2)
	minute, rest, okM := digits(after(rest, ":"), 1, 2)
	second, rest, okS := digits(after(rest, ":"), 1, 2)
	if !okH || !okM || !okS || hour > 23 || minute > 59 || second > 59 {
		return Instant{}, bad
	}
	at.Micros += int64((hour*60+minute)*60+second) * 1_000_000
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		nanos, left, ok := digits(fraction, 1, 9)
		if !ok {
			return Instant{}, bad
		}
		at.Digits, rest = len(fraction)-len(left), left
		for i := at.Digits; i < 9; i++ {
			nanos *= 10
		}
		at.Micros += int64(nanos / 1000)
	}
	offset, ok := parseZone(rest)
	if !ok {
		return Instant{}, bad
	}
	at.Zoned = rest != ""
	at.Micros -= offset
	if at.Micros < minDay*dayMicros || at.Micros >= (maxDay+1)*dayMicros {
		return Instant{}, bad
	}
	return at, nil
}

// parseZone reads an offset from UTC, in microseconds.
func parseZone(s string) (micros int64, ok bool) {
	if s == "" || s == "Z" {
		return 0, true
	}
	hours, rest, ok := digits(s[1:], 2, 2)
	minutes := 0
	if ok && rest != "" {
		minutes, rest, ok = digits(strings.TrimPrefix(rest, ":"), 2, 2)
	}
	if !ok || rest != "" || hours > 18 || minutes > 59 || (s[0] != '+' && s[0] != '-') {
		return 0, false
	}
	micros = int64(hours*60+minutes) * 60 * 1_000_000
	if s[0] == '-' {
		micros = -micros
	}
	return micros, true
}
