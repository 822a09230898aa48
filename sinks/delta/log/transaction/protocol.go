package transaction

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/schema"
)

// The features that this package can put on a table.
var (
	readerFeatures = []string{"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck"}
	writerFeatures = append([]string{
		"allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "clustering", "domainMetadata", "generatedColumns", "identityColumns", "inCommitTimestamp", "invariants",
	}, readerFeatures...)
)

// impliedFeatures are those of writer versions that list none, each with the ones before it ("Table Features").
var impliedFeatures = []struct {
	version  int
	features []string
}{
	{2, []string{"appendOnly", "invariants"}},
	{3, []string{"checkConstraints"}},
	{4, []string{"changeDataFeed", "generatedColumns"}},
	{5, []string{"columnMapping"}},
	{6, []string{"identityColumns"}},
}

// requirements are the features that table properties ask for where they are on.
var requirements = []struct{ property, value, feature string }{
	{appendOnly, "true", "appendOnly"},
	{ictEnabled, "true", featureInCommitTime},
	{"delta.enableChangeDataFeed", "true", "changeDataFeed"},
	{"delta.enableDeletionVectors", "true", "deletionVectors"},
	{"delta.enableTypeWidening", "true", "typeWidening"},
	{"delta.checkpointPolicy", "v2", "v2Checkpoint"},
}

const featureProperty = "delta.feature."

// allFeatures are those that a table may use: the listed ones, or those that its versions imply.
func allFeatures(p log.Protocol) []string {
	if p.MinWriterVersion >= featuresListedVersion {
		return append(slices.Clone(p.WriterFeatures), p.ReaderFeatures...)
	}
	var out []string
	for _, v := range impliedFeatures {
		if v.version <= p.MinWriterVersion {
			out = append(out, v.features...)
		}
	}
	return out
}

// Protocol is the least that a table with this metadata needs: base (nil: a new table) and what the schema and the properties ask for. Properties delta.feature.NAME ask for a feature
// by its name and are no part of the metadata: Protocol takes them out of it. A feature that is not known here is log.ErrUnsupported. changed says whether
// it differs from base.
func Protocol(base *log.Protocol, m *log.Metadata) (p log.Protocol, changed bool, err error) {
	s, _, err := schemaOf(m)
	if err != nil {
		return p, false, err
	}
	needed := s.Features()
	for _, r := range requirements {
		if strings.EqualFold(m.Configuration[r.property], r.value) {
			needed = append(needed, r.feature)
		}
	}
	asked, err := askedFeatures(m)
	if err != nil {
		return p, false, err
	}
	if needed = append(needed, asked...); slices.Contains(needed, "clustering") {
		needed = append(needed, "domainMetadata") // where the clustering columns are
	}
	p = log.Protocol{MinReaderVersion: 1, MinWriterVersion: 2}
	if base != nil {
		p = *base
	}
	missing := slices.DeleteFunc(needed, func(f string) bool { return slices.Contains(allFeatures(p), f) })
	if len(missing) > 0 {
		p = withFeatures(p, missing)
	}
	if err := checkColumns(s); err != nil {
		return p, false, err
	}
	return p, base == nil || len(missing) > 0, nil
}

// askedFeatures takes the features that are asked for by name out of the properties.
func askedFeatures(m *log.Metadata) ([]string, error) {
	var out []string
	kept := map[string]string{}
	for key, value := range m.Configuration {
		name, ok := strings.CutPrefix(key, featureProperty)
		switch {
		case !ok:
			kept[key] = value
		case !slices.Contains(writerFeatures, name):
			return nil, fmt.Errorf("%w: property %s: the feature is not known; known are %s", log.ErrUnsupported, key, strings.Join(writerFeatures, ", "))
		case value != "supported" && value != "enabled":
			return nil, fmt.Errorf("%w: property %s is %q; it can be \"supported\"", ErrInvalid, key, value)
		default:
			out = append(out, name)
		}
	}
	m.Configuration = kept
	sort.Strings(out)
	return out, nil
}

// checkColumns refuses what a new column's metadata would ask of writers, which they would have to do from then on.
func checkColumns(s *schema.Schema) error {
	for _, u := range s.Uses() {
		switch u.What {
		case schema.TypeWidening, schema.CharVarchar:
		default:
			return fmt.Errorf("%w: column %s has %s (%s)", log.ErrUnsupported, u.Column, u.What, u.Key)
		}
	}
	return nil
}

// withFeatures gives a protocol that lists its features and more. Version 4 of writers is the one that says change data feed without a list; it stands alone
// as what every reader of old tables knows.
func withFeatures(p log.Protocol, more []string) log.Protocol {
	if p.MinWriterVersion < featuresListedVersion && len(more) == 1 && more[0] == "changeDataFeed" {
		p.MinWriterVersion = 4
		return p
	}
	writers := append(slices.Clone(allFeatures(p)), more...)
	sort.Strings(writers)
	p.WriterFeatures, p.MinWriterVersion = slices.Compact(writers), featuresListedVersion
	for _, f := range p.WriterFeatures {
		// Column mapping without a list is reader version 2; with one it is listed among both.
		if slices.Contains(readerFeatures, f) {
			p.MinReaderVersion = 3
		}
	}
	if p.MinReaderVersion == 3 {
		readers := slices.Clone(p.ReaderFeatures)
		for _, f := range p.WriterFeatures {
			if slices.Contains(readerFeatures, f) {
				readers = append(readers, f)
			}
		}
		sort.Strings(readers)
		p.ReaderFeatures = slices.Compact(readers)
	}
	return p
}
