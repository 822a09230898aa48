package flightsql

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

const secondsOfDay = 24 * 60 * 60

var errNanos = errors.New("the engine's values of this type are microseconds, and this one has nanoseconds; nothing is rounded")

// dateText writes a day; years before the first have DuckDB's suffix.
func dateText(t time.Time) (string, error) {
	t = t.UTC()
	if y := t.Year(); y <= 0 {
		return fmt.Sprintf("%04d-%02d-%02d (BC)", 1-y, t.Month(), t.Day()), nil
	}
	return fmt.Sprintf("%04d-%02d-%02d", t.Year(), t.Month(), t.Day()), nil
}

func unitOf(t arrow.DataType) arrow.TimeUnit {
	if u, ok := t.(arrow.TemporalWithUnit); ok {
		return u.TimeUnit()
	}
	return arrow.Second
}

// perSecond is how many of a unit are in a second.
func perSecond(u arrow.TimeUnit) int64 { return int64(time.Second / u.Multiplier()) }

func timeText(v int64, t arrow.DataType) (string, error) {
	per := perSecond(unitOf(t))
	if v < 0 || v > secondsOfDay*per {
		return "", fmt.Errorf("a time of day outside of 00:00 to 24:00")
	}
	sec := v / per
	frac, err := fraction(v%per, unitOf(t), false)
	return fmt.Sprintf("%02d:%02d:%02d", sec/3600, sec/60%60, sec%60) + frac, err
}

// fraction writes what is below the second. Nanoseconds are for timestamps without a zone only.
func fraction(v int64, u arrow.TimeUnit, nanos bool) (string, error) {
	ns := v * int64(u.Multiplier())
	switch {
	case ns == 0:
		return "", nil
	case ns%1000 != 0 && !nanos:
		return "", errNanos
	}
	return "." + strings.TrimRight(fmt.Sprintf("%09d", ns), "0"), nil
}

func timestampText(v int64, t arrow.DataType) (string, error) {
	ts, ok := t.(*arrow.TimestampType)
	if !ok {
		return "", typeError(t)
	}
	per := perSecond(ts.Unit)
	sec, rest := v/per, v%per
	if rest < 0 {
		sec, rest = sec-1, rest+per
	}
	at := time.Unix(sec, 0).UTC()
	day, err := dateText(at)
	if err != nil {
		return "", err
	}
	frac, err := fraction(rest, ts.Unit, ts.TimeZone == "")
	if err != nil {
		return "", err
	}
	clock := fmt.Sprintf(" %02d:%02d:%02d%s", at.Hour(), at.Minute(), at.Second(), frac)
	if ts.TimeZone != "" {
		clock += "+00"
	}
	day, era, _ := strings.Cut(day, " ")
	if era != "" {
		return day + " " + era + clock, nil
	}
	return day + clock, nil
}

func durationText(v int64, t arrow.DataType) (string, error) {
	u := unitOf(t)
	switch u {
	case arrow.Second:
		return fmt.Sprintf("%d seconds", v), nil
	case arrow.Millisecond:
		return fmt.Sprintf("%d milliseconds", v), nil
	case arrow.Nanosecond:
		if v%1000 != 0 {
			return "", errNanos
		}
		v /= 1000
	}
	return fmt.Sprintf("%d microseconds", v), nil
}
