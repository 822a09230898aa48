package log

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// schemaOf is a schema with one column of a type, and another one with metadata.
func schemaOf(kind, metadata string) string {
	return fmt.Sprintf(`{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"comment":"c"}},{"metadata":{%s},"name":"b","nullable":true,"type":%s}]}`, metadata, kind)
}

func listing7(features ...string) Protocol {
	return Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: features}
}

func both(feature string) Protocol {
	return Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{feature}, WriterFeatures: []string{feature}}
}

func settings(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// gateCase says what the gate makes of a protocol, settings, and the metadata and type of a column b. An empty want lets pass.
type gateCase struct {
	protocol       Protocol
	configuration  map[string]string
	metadata, kind string
	read, write    string
}

func (c gateCase) run(t *testing.T, name string) {
	t.Helper()
	kind := c.kind
	if kind == "" {
		kind = `"string"`
	}
	m := Metadata{SchemaString: schemaOf(kind, c.metadata), Configuration: c.configuration, Format: Format{Provider: "parquet"}}
	for want, err := range map[*string]error{&c.read: CheckRead(c.protocol, m), &c.write: CheckWrite(c.protocol, m)} {
		if *want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, ErrUnsupported, name)
		require.ErrorContains(t, err, *want, name)
	}
}

// Each feature that is supported passes where it is listed, each other one is refused by its name: by readers too if it is theirs.
func TestGate_ListedFeatures(t *testing.T) {
	for _, f := range []string{"appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "changeDataFeed", "identityColumns", "domainMetadata", "inCommitTimestamp", "clustering"} {
		gateCase{protocol: listing7(f)}.run(t, f)
		gateCase{protocol: Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{}, WriterFeatures: []string{f}}}.run(t, f)
		gateCase{protocol: both(f), read: f, write: f}.run(t, f+" is no reader feature")
	}
	for _, f := range []string{"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "typeWidening-preview"} {
		gateCase{protocol: both(f)}.run(t, f)
	}
	for _, f := range []string{
		"catalogManaged", "catalogOwned-preview", "variantType", "variantType-preview", "variantShredding", "variantShredding-preview", "geospatial", "geospatial-dev",
		"redirectReaderWriter-preview", "adaptiveMetadata-preview", "not-yet-invented",
	} {
		gateCase{protocol: both(f), read: f, write: f}.run(t, f)
	}
	for _, f := range []string{
		"icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV1", "icebergWriterCompatV3", "rowTracking", "collations", "collations-preview", "redirectWriterOnly-preview",
		"coordinatedCommits-preview", "checkpointProtection", "materializePartitionColumns", "not-yet-invented",
	} {
		gateCase{protocol: listing7(f), write: f}.run(t, f)
	}
	gateCase{protocol: Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"x", "variantType"}, WriterFeatures: []string{"rowTracking", "x", "variantType"}}, read: "variantType; x", write: "rowTracking; variantType; x"}.run(t, "all are named")
}

func TestGate_Versions(t *testing.T) {
	for reader := -1; reader <= 4; reader++ {
		for writer := -1; writer <= 8; writer++ {
			c := gateCase{protocol: Protocol{MinReaderVersion: reader, MinWriterVersion: writer}}
			switch {
			case reader < 1 || reader > 3:
				c.read = fmt.Sprintf("minReaderVersion %d", reader)
				c.write = c.read
			case reader == 3 && writer < 7:
				c.read = "does not go with minReaderVersion 3"
				c.write = c.read
			}
			if writer < 1 || writer > 7 {
				c.write = fmt.Sprintf("minWriterVersion %d", writer)
			}
			lists := c
			lists.protocol.ReaderFeatures, lists.protocol.WriterFeatures = []string{}, []string{}
			lists.run(t, fmt.Sprint(reader, " ", writer))
			if reader == 3 && c.read == "" {
				c.read, c.write = "readerFeatures, which are missing", "readerFeatures, which are missing"
			}
			if writer == 7 {
				c.write = "which are missing"
				if reader < 1 || reader > 3 {
					c.write = c.read
				}
			}
			c.run(t, fmt.Sprint(reader, " ", writer))
		}
	}
}

// X13: what a version implies is refused where it is used, and only there, with the column or constraint.
func TestGate_Uses(t *testing.T) {
	for _, p := range []Protocol{{MinReaderVersion: 1, MinWriterVersion: 6}, listing7("invariants", "generatedColumns", "identityColumns", "allowColumnDefaults", "checkConstraints", "changeDataFeed")} {
		for metadata, want := range map[string]string{
			`"delta.invariants":"{\"expression\":{\"expression\":\"b > 3\"}}"`: "invariants (column b has delta.invariants)",
			`"delta.generationExpression":"YEAR(start)"`:                       "generatedColumns (column b has delta.generationExpression)",
			`"delta.identity.start":1`:                                         "identityColumns (column b has delta.identity.start)",
			`"CURRENT_DEFAULT":"7"`:                                            "allowColumnDefaults (column b has CURRENT_DEFAULT)",
		} {
			gateCase{protocol: p, metadata: metadata, write: want}.run(t, metadata)
			nested := fmt.Sprintf(`{"type":"array","containsNull":true,"elementType":{"type":"map","keyType":"string","valueContainsNull":true,"valueType":%s}}`, schemaOf(`"string"`, metadata))
			c := gateCase{protocol: p, kind: nested}
			c.write = replaceColumn(want, "b.element.value.b")
			c.run(t, "nested "+metadata)
		}
		gateCase{protocol: p, configuration: settings("delta.constraints.positive", "b > 0"), write: `checkConstraints (constraint "positive")`}.run(t, "constraint")
		gateCase{protocol: p, metadata: `"comment":"x","other":{"delta.invariants":1}`, configuration: settings("delta.appendOnly", "true")}.run(t, "nothing used")
	}
	for _, p := range []Protocol{{MinReaderVersion: 2, MinWriterVersion: 5}, both("columnMapping"), {MinReaderVersion: 1, MinWriterVersion: 2}} {
		for _, mode := range []string{"id", "name", "later"} {
			want := fmt.Sprintf("columnMapping (delta.columnMapping.mode is %q)", mode)
			gateCase{protocol: p, configuration: settings("delta.columnMapping.mode", mode), read: want, write: want}.run(t, mode)
		}
		gateCase{protocol: p, configuration: settings("delta.columnMapping.mode", "none")}.run(t, "none")
		gateCase{protocol: p}.run(t, "no mode")
	}
}

func replaceColumn(want, column string) string {
	var feature, key string
	_, _ = fmt.Sscanf(want, "%s (column b has %s", &feature, &key)
	return fmt.Sprintf("%s (column %s has %s", feature, column, key)
}

func TestGate_ChangeDataFeedForbidsChangesOfRowsOnly(t *testing.T) {
	m := Metadata{SchemaString: schemaOf(`"long"`, ""), Configuration: settings("delta.enableChangeDataFeed", "true")}
	for _, p := range []Protocol{{MinReaderVersion: 1, MinWriterVersion: 4}, listing7("changeDataFeed")} {
		require.NoError(t, CheckWrite(p, m))
		require.ErrorContains(t, CheckRowLevel(p, m), "changeDataFeed (delta.enableChangeDataFeed is set")
		require.NoError(t, CheckRowLevel(p, Metadata{SchemaString: m.SchemaString, Configuration: settings("delta.enableChangeDataFeed", "false")}))
	}
	for _, p := range []Protocol{{MinReaderVersion: 1, MinWriterVersion: 2}, listing7("appendOnly")} {
		require.NoError(t, CheckRowLevel(p, m), "the setting means nothing without the feature")
	}
	require.ErrorContains(t, CheckRowLevel(listing7("rowTracking"), m), "rowTracking")
}

func TestGate_TypesAndFormats(t *testing.T) {
	for _, kind := range []string{"string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp", "timestamp_ntz", "decimal", "decimal(38,18)"} {
		gateCase{protocol: Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, kind: `"` + kind + `"`}.run(t, kind)
	}
	for _, kind := range []string{"void", "null", "variant", "geometry(OGC:CRS84)", "interval", "decimal(1", ""} {
		want := fmt.Sprintf("column b of type %q", kind)
		gateCase{protocol: Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, kind: `"` + kind + `"`, read: want, write: want}.run(t, kind)
	}
	udt := `{"type":"udt","class":"x","sqlType":"string"}`
	gateCase{protocol: Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, kind: udt, read: `column b of type "udt"`, write: "udt"}.run(t, udt)
	for schema, want := range map[string]string{"": "want", "{": "want", `{"type":"struct","fields":[{"name":"x"}]}`: "column x has no type", `{"type":"struct","fields":[]} x`: "the end"} {
		require.ErrorContains(t, CheckRead(Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, Metadata{SchemaString: schema}), want)
	}
	deep := `"long"`
	for range maxSchemaDepth + 1 {
		deep = `{"type":"array","elementType":` + deep + `}`
	}
	require.ErrorContains(t, CheckRead(Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, Metadata{SchemaString: deep}), "nested deeper")
	require.ErrorContains(t, CheckRead(Protocol{MinReaderVersion: 1, MinWriterVersion: 2}, Metadata{SchemaString: schemaOf(`"long"`, ""), Format: Format{Provider: "orc"}}), `format "orc"`)
}
