package log

import (
	"fmt"
	"slices"
	"strings"
)

const (
	featureInCommitTimestamp = "inCommitTimestamp"
	featureColumnMapping     = "columnMapping"
)

// What this package does not know is refused ("Table Features"): catalogManaged, rowTracking, icebergCompat*, variantType, geospatial and whatever comes later need no entry.
var (
	// readable are the reader features that readers of this module honour. Column mapping is there since a table may list it without using it.
	readable = []string{featureColumnMapping, "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck"}

	// writable are the writer features that cost a writer of whole files nothing, and those that are refused where a table uses them and not for being listed.
	writable = append([]string{
		"allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "clustering", "domainMetadata", "generatedColumns", "identityColumns",
		featureInCommitTimestamp, "invariants",
	}, readable...)
)

// columnUses are the keys of a column's metadata that ask something of writers which they cannot do, by the feature that they belong to. They count
// whether or not the protocol names the feature.
var columnUses = []struct{ key, feature string }{
	{"delta.invariants", "invariants"},
	{"delta.generationExpression", "generatedColumns"},
	{"delta.identity.", "identityColumns"},
	{"CURRENT_DEFAULT", "allowColumnDefaults"},
}

// CheckRead refuses a table that cannot be read with ErrUnsupported, whose message names every feature, with the columns or settings that use it.
func CheckRead(p Protocol, m Metadata) error { return refuse("read", readProblems(p, m)) }

// CheckWrite refuses a table to which nothing can be written, as CheckRead does; what cannot be read cannot be written.
func CheckWrite(p Protocol, m Metadata) error {
	return refuse("written", append(readProblems(p, m), writeProblems(p, m)...))
}

// CheckRowLevel is CheckWrite for writers that replace files by copies with some rows changed. A change data feed would take the copied rows for changes, since such a writer
// leaves no files of changes; whole files, added or removed, need none ("Change Data Files").
func CheckRowLevel(p Protocol, m Metadata) error {
	problems := append(readProblems(p, m), writeProblems(p, m)...)
	if changeDataFeed(p, m) {
		problems = append(problems, "changeDataFeed (delta.enableChangeDataFeed is set, and rows of a file are to be changed)")
	}
	return refuse("changed row by row", problems)
}

func refuse(what string, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return fmt.Errorf("%w: it cannot be %s, since it needs: %s", ErrUnsupported, what, strings.Join(slices.Compact(problems), "; "))
}

// writes tells whether a writer's feature is listed.
func (p Protocol) writes(feature string) bool {
	return p.MinWriterVersion >= 7 && slices.Contains(p.WriterFeatures, feature)
}

func changeDataFeed(p Protocol, m Metadata) bool {
	supported := p.MinWriterVersion >= 4 && p.MinWriterVersion <= 6 || p.writes("changeDataFeed")
	return supported && isTrue(m.Configuration["delta.enableChangeDataFeed"])
}

func isTrue(setting string) bool { return strings.EqualFold(setting, "true") }

func readProblems(p Protocol, m Metadata) (out []string) {
	switch {
	case p.MinReaderVersion < 1 || p.MinReaderVersion > 3:
		out = append(out, fmt.Sprintf("minReaderVersion %d", p.MinReaderVersion))
	case p.MinReaderVersion == 3 && p.MinWriterVersion < 7:
		out = append(out, fmt.Sprintf("minWriterVersion %d, which does not go with minReaderVersion 3", p.MinWriterVersion))
	case p.MinReaderVersion == 3 && p.ReaderFeatures == nil:
		out = append(out, "readerFeatures, which are missing beside minReaderVersion 3")
	case p.MinReaderVersion == 3:
		out = append(out, unknown(p.ReaderFeatures, readable)...)
	}
	if mode := m.Configuration["delta.columnMapping.mode"]; mode != "" && !strings.EqualFold(mode, "none") {
		out = append(out, fmt.Sprintf("columnMapping (delta.columnMapping.mode is %q)", mode))
	}
	if m.Format.Provider != "" && m.Format.Provider != "parquet" {
		out = append(out, fmt.Sprintf("files of format %q", m.Format.Provider))
	}
	err := walkSchema(m.SchemaString, func(column, kind string) {
		if !readableType(kind) {
			out = append(out, fmt.Sprintf("column %s of type %.100q", column, kind))
		}
	}, func(string, string) {})
	if err != nil {
		out = append(out, fmt.Sprintf("a schemaString that can be read (%v)", err))
	}
	return out
}

func writeProblems(p Protocol, m Metadata) (out []string) {
	switch {
	case p.MinWriterVersion < 1 || p.MinWriterVersion > 7:
		out = append(out, fmt.Sprintf("minWriterVersion %d", p.MinWriterVersion))
	case p.MinWriterVersion == 7 && p.WriterFeatures == nil:
		out = append(out, "writerFeatures, which are missing beside minWriterVersion 7")
	case p.MinWriterVersion == 7:
		out = append(out, unknown(p.WriterFeatures, writable)...)
	}
	for name := range m.Configuration {
		if constraint, ok := strings.CutPrefix(name, "delta.constraints."); ok {
			out = append(out, fmt.Sprintf("checkConstraints (constraint %q)", constraint))
		}
	}
	// An error was said by readProblems.
	_ = walkSchema(m.SchemaString, func(string, string) {}, func(column, key string) {
		for _, use := range columnUses {
			if key == use.key || strings.HasSuffix(use.key, ".") && strings.HasPrefix(key, use.key) {
				out = append(out, fmt.Sprintf("%s (column %s has %s)", use.feature, column, key))
			}
		}
	})
	return out
}

func unknown(listed, known []string) (out []string) {
	for _, f := range listed {
		if !slices.Contains(known, f) {
			out = append(out, f)
		}
	}
	return out
}

// readableType tells whether values of a primitive type are understood. void is not: files may or may not hold such a column.
func readableType(kind string) bool {
	switch kind {
	case "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp", "timestamp_ntz", "decimal":
		return true
	}
	return strings.HasPrefix(kind, "decimal(") && strings.HasSuffix(kind, ")")
}
