package format

import (
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// point is a date, a time of day, a timestamp, a duration or an interval, split into parts without a calendar library: those end at
// year 9999 or change old dates.
type point struct {
	days     int64 // since 1970-01-01
	nanos    int64 // of the day
	hasDate  bool
	hasTime  bool
	instant  bool   // UTC
	infinite string // infinity, -infinity
	spoken   string // intervals and durations
}

func moment(a arrow.Array, i int) (point, bool) {
	switch a := a.(type) {
	case *array.Date32:
		v := int64(a.Value(i))
		if inf := infinity(v, math.MaxInt32); inf != "" {
			return point{infinite: inf}, true
		}
		return point{days: v, hasDate: true}, true
	case *array.Date64:
		days, _ := floorDiv(int64(a.Value(i)), 86_400_000)
		return point{days: days, hasDate: true}, true
	case *array.Time32:
		return point{nanos: int64(a.Value(i)) * unitNanos(a.DataType()), hasTime: true}, true
	case *array.Time64:
		return point{nanos: int64(a.Value(i)) * unitNanos(a.DataType()), hasTime: true}, true
	case *array.Timestamp:
		return timestamp(a, i), true
	case *array.Duration:
		return point{spoken: clock(span{}, int64(a.Value(i)), unitNanos(a.DataType()))}, true
	case *array.MonthInterval:
		return point{spoken: clock(span{months: int64(a.Value(i))}, 0, 1)}, true
	case *array.DayTimeInterval:
		v := a.Value(i)
		return point{spoken: clock(span{days: int64(v.Days)}, int64(v.Milliseconds), 1_000_000)}, true
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		return point{spoken: clock(span{months: int64(v.Months), days: int64(v.Days)}, v.Nanoseconds, 1)}, true
	}
	return point{}, false
}

func timestamp(a *array.Timestamp, i int) point {
	v := int64(a.Value(i))
	if inf := infinity(v, math.MaxInt64); inf != "" {
		return point{infinite: inf}
	}
	unit := unitNanos(a.DataType())
	perDay := int64(86_400_000_000_000) / unit
	days, rest := floorDiv(v, perDay)
	tz := ""
	if t, ok := a.DataType().(*arrow.TimestampType); ok {
		tz = t.TimeZone
	}
	return point{days: days, nanos: rest * unit, hasDate: true, hasTime: true, instant: tz != ""}
}

// infinity: DuckDB's infinite dates are the largest value and its negative.
func infinity(v, limit int64) string {
	switch v {
	case limit:
		return "infinity"
	case -limit:
		return "-infinity"
	}
	return ""
}

func unitNanos(dt arrow.DataType) int64 {
	t, ok := dt.(arrow.TemporalWithUnit)
	if !ok {
		return 1
	}
	switch t.TimeUnit() {
	case arrow.Second:
		return 1_000_000_000
	case arrow.Millisecond:
		return 1_000_000
	case arrow.Microsecond:
		return 1_000
	}
	return 1
}

// text is DuckDB's form: 0044-03-15 (BC) 12:00:00.5+00
func (p point) text(b []byte) []byte {
	switch {
	case p.infinite != "":
		return append(b, p.infinite...)
	case p.spoken != "":
		return append(b, p.spoken...)
	}
	if p.hasDate {
		y, m, d := civil(p.days)
		suffix := ""
		if y <= 0 {
			y, suffix = 1-y, " (BC)"
		}
		b = fmt.Appendf(b, "%04d-%02d-%02d%s", y, m, d, suffix)
	}
	if p.hasTime {
		if p.hasDate {
			b = append(b, ' ')
		}
		b = appendClock(b, p.nanos)
	}
	if p.instant {
		b = append(b, "+00"...)
	}
	return b
}

// iso is ISO 8601, with a sign where the year needs one.
func (p point) iso(b []byte) []byte {
	if p.infinite != "" || p.spoken != "" {
		return p.text(b)
	}
	if p.hasDate {
		y, m, d := civil(p.days)
		switch {
		case y < 0:
			b = append(b, '-')
			y = -y
		case y > 9999:
			b = append(b, '+')
		}
		b = fmt.Appendf(b, "%04d-%02d-%02d", y, m, d)
		if p.hasTime {
			b = append(b, 'T')
		}
	}
	if p.hasTime {
		b = appendClock(b, p.nanos)
	}
	if p.instant {
		b = append(b, 'Z')
	}
	return b
}

// appendClock prints hours, minutes, seconds and as many digits of the fraction as say something.
func appendClock(b []byte, nanos int64) []byte {
	secs, frac := nanos/1_000_000_000, nanos%1_000_000_000
	b = fmt.Appendf(b, "%02d:%02d:%02d", secs/3600, secs/60%60, secs%60)
	if frac == 0 {
		return b
	}
	digits := fmt.Sprintf("%09d", frac)
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return append(append(b, '.'), digits...)
}

// civil turns days since 1970-01-01 into a date of the proleptic Gregorian calendar (year 0 is 1 BC), after Howard Hinnant's
// days_from_civil.
func civil(days int64) (y, m, d int64) {
	era, doe := floorDiv(days+719_468, 146_097)
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d, m, y = doy-(153*mp+2)/5+1, mp+3, yoe+era*400
	if m > 12 {
		m -= 12
		y++
	}
	return y, m, d
}

func floorDiv(a, b int64) (q, r int64) {
	q, r = a/b, a%b
	if r < 0 {
		q, r = q-1, r+b
	}
	return q, r
}

type span struct{ months, days int64 }

// clock is DuckDB's text of an interval: 1 year 2 months 3 days 04:05:06.7
func clock(s span, count, unit int64) string {
	var b []byte
	word := func(n int64, w string) {
		if n == 0 {
			return
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(append(strconv.AppendInt(b, n, 10), ' '), w...)
		if n != 1 && n != -1 {
			b = append(b, 's')
		}
	}
	word(s.months/12, "year")
	word(s.months%12, "month")
	word(s.days, "day")
	// Seconds and the rest apart: count times unit may not fit.
	perSec := 1_000_000_000 / unit
	secs, frac := count/perSec, count%perSec*unit
	if count == 0 && len(b) > 0 {
		return string(b)
	}
	if len(b) > 0 {
		b = append(b, ' ')
	}
	if count < 0 {
		b, secs, frac = append(b, '-'), -secs, -frac
	}
	b = fmt.Appendf(b, "%02d:", secs/3600)
	rest := appendClock(nil, secs%3600*1_000_000_000+frac)
	return string(append(b, rest[3:]...))
}
