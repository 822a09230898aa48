package delta

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Properties of Delta tables that the sink heeds.
const (
	propAppendOnly         = "delta.appendOnly"
	propChangeDataFeed     = "delta.enableChangeDataFeed"
	propDeletionVectors    = "delta.enableDeletionVectors"
	propInCommitTimestamps = "delta.enableInCommitTimestamps"
	propCheckpointInterval = "delta.checkpointInterval"
	propCodec              = "delta.parquet.compression.codec"
	propTargetSize         = "delta.targetFileSize"
	propIsolation          = "delta.isolationLevel"
	propStringPrefix       = "delta.dataSkippingStringPrefixLength"
	propDeletedRetention   = "delta.deletedFileRetentionDuration"

	// Those of Signet that a table's owner may set.
	propSplice    = "signet.splice.enabled"
	propAcceptAny = "signet.accept-any-schema"
	propNoExpiry  = "signet.maintenance.expire-snapshots"
)

const defaultCodec = "zstd"

// codecs by the names that Parquet writers of the Delta world take.
var codecs = map[string]string{
	"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "lz4": "lz4", "lz4_raw": "lz4", "brotli": "brotli", "none": "uncompressed", "uncompressed": "uncompressed",
}

// intervalUnits are those of Delta's intervals. Months and years have no certain length, and Delta takes none.
var intervalUnits = map[string]time.Duration{
	"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond, "microsecond": time.Microsecond,
}

// parseInterval reads an interval as Spark writes it: interval 1 week, 30 days 12 hours.
func parseInterval(text string) (time.Duration, bool) {
	words := strings.Fields(strings.ToLower(text))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	var sum time.Duration
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 32)
		unit, ok := intervalUnits[strings.TrimSuffix(words[i+1], "s")]
		if err != nil || !ok || n < 0 || time.Duration(n) > (math.MaxInt64-sum)/unit {
			return 0, false
		}
		sum += time.Duration(n) * unit
	}
	return sum, len(words) > 0 && len(words)%2 == 0
}

func isBool(text string) error {
	if !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false") {
		return fmt.Errorf("want true or false")
	}
	return nil
}

func isInterval(text string) error {
	if _, ok := parseInterval(text); !ok {
		return fmt.Errorf("want an interval such as 'interval 7 days' or 'interval 36 hours', without months and years")
	}
	return nil
}

func isNumber(least int64) func(string) error {
	return func(text string) error {
		if n, err := strconv.ParseInt(text, 10, 32); err != nil || n < least {
			return fmt.Errorf("want a whole number of at least %d", least)
		}
		return nil
	}
}

func anything(string) error { return nil }

// checks are the properties beginning with delta. that a statement may set, and what is asked of their values.
var checks = map[string]func(string) error{
	propAppendOnly: isBool, propChangeDataFeed: isBool, propDeletionVectors: isBool, propInCommitTimestamps: isBool, propCheckpointInterval: isNumber(1),
	propStringPrefix: isNumber(1), propDeletedRetention: isInterval, "delta.logRetentionDuration": isInterval, "delta.setTransactionRetentionDuration": isInterval,
	"delta.checkpoint.writeStatsAsJson": isBool, "delta.checkpoint.writeStatsAsStruct": isBool, "delta.enableExpiredLogCleanup": isBool,
	"delta.dataSkippingNumIndexedCols": isNumber(-1), "delta.dataSkippingStatsColumns": anything, "delta.autoOptimize.autoCompact": anything,
	"delta.autoOptimize.optimizeWrite": isBool, "delta.tuneFileSizesForRewrites": isBool,
	propSplice: isBool, propAcceptAny: isBool, propNoExpiry: isBool,
	propTargetSize: func(text string) error { _, err := parseSize(text); return err },
	propCodec: func(text string) error {
		if _, ok := codecs[strings.ToLower(text)]; !ok {
			return fmt.Errorf("want one of %s", strings.Join(slices.Sorted(maps.Keys(codecs)), ", "))
		}
		return nil
	},
	propIsolation: func(text string) error {
		if text != "Serializable" {
			return fmt.Errorf("want Serializable: open-source Delta refuses tables with another one")
		}
		return nil
	},
}

// reserved are the properties that are Signet's own record, in whatever case.
func reserved(key string) bool {
	return key != propSplice && key != propAcceptAny && key != propNoExpiry && strings.HasPrefix(strings.ToLower(key), "signet.")
}

// checkProperty refuses properties that a statement must not set, and values that are none. For some of them the table needs a feature: see features.
func checkProperty(key, text string) error {
	check, known := checks[key]
	switch {
	case key == "":
		return fmt.Errorf("a property needs a name")
	case reserved(key):
		return fmt.Errorf("names that begin with signet. are reserved")
	case known:
		return check(text)
	case strings.HasPrefix(key, "delta.feature."): // for the protocol
		return nil
	case strings.HasPrefix(strings.ToLower(key), "delta.constraints."):
		return fmt.Errorf("CHECK constraints are not supported")
	case strings.HasPrefix(strings.ToLower(key), "delta."):
		return fmt.Errorf("it is none of the properties of Delta that Signet can set, which are %s", strings.Join(slices.Sorted(maps.Keys(checks)), ", "))
	}
	return nil
}

// checkProperties is checkProperty for all of them; the first refusal by name.
func checkProperties(all map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := checkProperty(key, all[key]); err != nil {
			return fmt.Errorf("property %s=%s: %w", key, all[key], err)
		}
	}
	return nil
}

func isTrue(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }

var sizeUnits = map[string]int64{"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "t": 1 << 40, "tb": 1 << 40}

// parseSize reads a size as Spark writes it: 104857600, 100mb, 1g.
func parseSize(text string) (int64, error) {
	digits := strings.TrimSpace(strings.ToLower(text))
	i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if i < 0 {
		i = len(digits)
	}
	n, err := strconv.ParseInt(digits[:i], 10, 64)
	unit, ok := sizeUnits[strings.TrimSpace(digits[i:])]
	if err != nil || !ok || n <= 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("want a size such as 128mb or 134217728")
	}
	return n * unit, nil
}

// fileRules are how data files are to be written, by the table's properties, and warnings of those that cannot be honoured.
func fileRules(properties map[string]string) (*planv1.FileRules, []string) {
	r := &planv1.FileRules{Codec: defaultCodec, AnyCodec: true, NoFieldIds: true, OmitPartitionColumns: true, FourDigitYears: true}
	var warnings []string
	warn := func(key string, err error) {
		warnings = append(warnings, fmt.Sprintf("property %s=%s is not honoured: %v", key, properties[key], err))
	}
	if text, ok := properties[propCodec]; ok {
		if codec, known := codecs[strings.ToLower(text)]; known {
			r.Codec, r.AnyCodec = codec, false
		} else {
			warn(propCodec, checks[propCodec](text))
		}
	}
	if text, ok := properties[propTargetSize]; ok {
		var err error
		if r.TargetFileSizeBytes, err = parseSize(text); err != nil {
			warn(propTargetSize, err)
		}
	}
	if text, ok := properties[propSplice]; ok {
		r.NoSplice = strings.EqualFold(text, "false")
	}
	return r, warnings
}
