package write

import (
	"math/bits"
	"strconv"
	"strings"
)

// DuckDB prints dates as 2026-05-01, 12026-05-01 and 0044-03-15 (BC), times as 01:02:03[.000001], timestamps as a date, a space and a time,
// and instants in UTC with +00. time.Parse knows neither the long years nor BC.

// parseDate reads a date at the start of text: days since 1970-01-01.
func parseDate(text string) (day int64, rest string, ok bool) {
	date, rest, _ := strings.Cut(text, " ")
	bc := false
	if after, found := strings.CutPrefix(rest, "(BC)"); found {
		bc, rest = true, strings.TrimPrefix(after, " ")
	}
	parts := strings.Split(date, "-")
	if len(parts) != 3 {
		return 0, "", false
	}
	y, err1 := strconv.ParseInt(parts[0], 10, 32)
	m, err2 := strconv.ParseInt(parts[1], 10, 8)
	d, err3 := strconv.ParseInt(parts[2], 10, 8)
	if err1 != nil || err2 != nil || err3 != nil || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, "", false
	}
	if bc {
		y = 1 - y // 1 BC is year 0
	}
	return daysOf(y, m, d), rest, true
}

// daysOf counts days in the proleptic Gregorian calendar (Howard Hinnant, days_from_civil).
func daysOf(y, m, d int64) int64 {
	if m <= 2 {
		y--
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	doy := (153*((m+9)%12)+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

// parseTime reads a time of day in units of a second.
func parseTime(text string, units int64) (int64, bool) {
	whole, frac, _ := strings.Cut(text, ".")
	parts := strings.Split(whole, ":")
	if len(parts) != 3 {
		return 0, false
	}
	var secs int64
	for _, p := range parts {
		n, err := strconv.ParseInt(p, 10, 16)
		if err != nil || n < 0 || len(p) != 2 {
			return 0, false
		}
		secs = secs*60 + n
	}
	sub := int64(0)
	for u := units / 10; len(frac) > 0; u, frac = u/10, frac[1:] {
		digit := int64(frac[0]) - '0'
		if digit < 0 || digit > 9 || u == 0 && digit != 0 {
			return 0, false
		}
		sub += digit * u
	}
	return secs*units + sub, true
}

func parseTimestamp(text string, units int64) (int64, bool) {
	day, clock, ok := parseDate(strings.TrimSuffix(text, "+00"))
	if !ok {
		return 0, false
	}
	sub, ok := parseTime(clock, units)
	if !ok {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(max(day, -day)), uint64(86400*units))
	if hi != 0 || lo > 1<<63 {
		return 0, false
	}
	if day < 0 {
		return -int64(lo) + sub, true
	}
	sum := int64(lo) + sub
	return sum, sum >= 0
}
