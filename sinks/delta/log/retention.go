package log

import (
	"strconv"
	"strings"
	"time"
)

// durationOf reads an interval of a table's settings, as Spark writes them: "interval 1 week", "interval 30 days 12 hours". False: there is none, or it is not understood.
func durationOf(m Metadata, setting string) (time.Duration, bool) {
	words := strings.Fields(strings.ToLower(m.Configuration[setting]))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, false
	}
	var sum time.Duration
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		unit, ok := units[strings.TrimSuffix(words[i+1], "s")]
		if err != nil || !ok || n < 0 || n > int64(100*365*24*time.Hour/unit) {
			return 0, false
		}
		sum += time.Duration(n) * unit
	}
	return sum, true
}

var units = map[string]time.Duration{
	"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond,
	"microsecond": time.Microsecond,
}

// expired tells whether a tombstone is no longer kept: delta.deletedFileRetentionDuration, one week if it is not set. What is not understood expires nothing.
func (s *Snapshot) expired(now time.Time) func(*Remove) bool {
	keep, ok := durationOf(s.Metadata, "delta.deletedFileRetentionDuration")
	if _, set := s.Metadata.Configuration["delta.deletedFileRetentionDuration"]; !ok && set {
		return func(*Remove) bool { return false }
	} else if !ok {
		keep = 7 * 24 * time.Hour
	}
	limit := now.Add(-keep).UnixMilli()
	return func(m *Remove) bool { return m.DeletionTimestamp == nil || *m.DeletionTimestamp <= limit }
}

// forgotten tells whether a transaction identifier is no longer kept: delta.setTransactionRetentionDuration, for ever if it is not set. One without a time is kept.
func (s *Snapshot) forgotten(now time.Time) func(Txn) bool {
	keep, ok := durationOf(s.Metadata, "delta.setTransactionRetentionDuration")
	limit := now.Add(-keep).UnixMilli()
	return func(t Txn) bool { return ok && t.LastUpdated != nil && *t.LastUpdated <= limit }
}
