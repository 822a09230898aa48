package upkeep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/tableprops"
)

// A table with snapshots 1 to 5, an hour old for each number that is missing to 6: 1←2←3←4 is main, and 5 was made on 2.
func TestExpires_AsTheSinkWould(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	const hours = `"history.expire.max-snapshot-age-ms":"`
	for name, x := range map[string]struct {
		refs, properties string
		want             bool
	}{
		"by default what is older than five days":          {},
		"what is older than the table says":                {properties: hours + `9000000"`, want: true},
		"all are younger":                                  {properties: hours + `18000001"`},
		"the number that stays":                            {properties: hours + `1","history.expire.min-snapshots-to-keep":"4"`, refs: `"b":{"snapshot-id":5,"type":"branch"}`},
		"one more than it":                                 {properties: hours + `1","history.expire.min-snapshots-to-keep":"3"`, refs: `"b":{"snapshot-id":5,"type":"branch","min-snapshots-to-keep":2}`, want: true},
		"one that no branch has":                           {properties: hours + `3000000","history.expire.min-snapshots-to-keep":"4"`, want: true},
		"a branch keeps its own number":                    {properties: hours + `18000001"`, refs: `"b":{"snapshot-id":5,"type":"branch","min-snapshots-to-keep":3,"max-snapshot-age-ms":1}`},
		"a branch keeps less, of what main does not":       {properties: hours + `18000001"`, refs: `"b":{"snapshot-id":5,"type":"branch","max-snapshot-age-ms":1}`},
		"a tag that is too old":                            {refs: `"g":{"snapshot-id":3,"type":"tag","max-ref-age-ms":10800000}`},
		"a tag that is a little older":                     {refs: `"g":{"snapshot-id":3,"type":"tag","max-ref-age-ms":10799999}`, want: true},
		"one that is older than the table's references be": {refs: `"g":{"snapshot-id":3,"type":"tag"}`, properties: `"history.expire.max-ref-age-ms":"1"`, want: true},
		"a property that says nothing":                     {properties: hours + `soon"`, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			parents := map[int]int{2: 1, 3: 2, 4: 3, 5: 2}
			var snapshots []string
			for id := 1; id <= 5; id++ {
				parent := ""
				if p := parents[id]; p > 0 {
					parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, p)
				}
				snapshots = append(snapshots, fmt.Sprintf(`{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"l%d","summary":{"operation":"append"}}`,
					id, parent, id, now.Add(-time.Duration(6-id)*time.Hour).UnixMilli(), id))
			}
			refs := `"main":{"snapshot-id":4,"type":"branch"}`
			if x.refs != "" {
				refs += "," + x.refs
			}
			md, err := table.ParseMetadataString(fmt.Sprintf(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"file:///l","last-column-id":1,
				"last-sequence-number":5,"last-updated-ms":%d,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}],
				"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],
				"properties":{%s},"current-snapshot-id":4,"snapshots":[%s],"refs":{%s}}`, now.UnixMilli(), x.properties, strings.Join(snapshots, ","), refs))
			require.NoError(t, err)
			require.Equal(t, x.want, Expires(md, now))
		})
	}
}

// J18.
func TestExcluded_ByEitherProperty(t *testing.T) {
	for text, want := range map[string]bool{"": false, "true": false, "false": true, " FALSE ": true, "no": false} {
		require.Equal(t, want, Excluded(map[string]string{tableprops.ExpireSnapshots: text}), text)
		require.Equal(t, want, Excluded(map[string]string{"gc.enabled": text}), text)
	}
}
