package evolve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// history is a table with snapshots 1 to 6, an hour old for each number that is missing to 7: 1←2←3←4 is main, 5 was made on 2, and 6 on nothing.
func history(t *testing.T, refs, properties string) *Table {
	t.Helper()
	parents := map[int]int{2: 1, 3: 2, 4: 3, 5: 2}
	var snapshots []string
	for id := 1; id <= 6; id++ {
		parent := ""
		if p := parents[id]; p > 0 {
			parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, p)
		}
		snapshots = append(snapshots, fmt.Sprintf(`{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"l%d","summary":{"operation":"append"}}`,
			id, parent, id, now.Add(-time.Duration(7-id)*time.Hour).UnixMilli(), id))
	}
	if refs != "" {
		refs = "," + refs
	}
	raw := fmt.Sprintf(`{"format-version":2,"table-uuid":"u","location":"l","last-column-id":1,"current-schema-id":0,
		"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"variant"}]}],
		"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],
		"properties":{%s},"current-snapshot-id":4,"snapshots":[%s],"refs":{"main":{"snapshot-id":4,"type":"branch"}%s}}`, properties, strings.Join(snapshots, ","), refs)
	table, err := Parse([]byte(raw))
	require.NoError(t, err)
	return table
}

var now = time.UnixMilli(1_800_000_000_000)

func ago(h float64) *int64 {
	ms := now.Add(-time.Duration(h * float64(time.Hour))).UnixMilli()
	return &ms
}

func TestExpire_KeepsWhatReferencesRetain(t *testing.T) {
	two := int32(2)
	for name, x := range map[string]struct {
		refs, properties string
		expire           *sinkv1.ExpireSnapshots
		want, dropped    string
		err              string
	}{
		"by default what is older than five days": {expire: &sinkv1.ExpireSnapshots{}},
		"older than an instant, but the head":     {expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(0)}, want: "1,2,3,5,6"},
		"only those before it":                    {expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(4.5)}, want: "1,2"},
		"the last two of each branch":             {expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(0), RetainLast: &two}, want: "1,2,5,6"},
		"the table's own word":                    {expire: &sinkv1.ExpireSnapshots{}, properties: `"history.expire.max-snapshot-age-ms":"1","history.expire.min-snapshots-to-keep":"3"`, want: "1,5,6"},
		"a tag keeps its one":                     {refs: `"g":{"snapshot-id":2,"type":"tag"}`, expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(0)}, want: "1,3,5,6"},
		"a branch keeps its own number":           {refs: `"b":{"snapshot-id":5,"type":"branch","min-snapshots-to-keep":3}`, expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(0)}, want: "3,6"},
		"a branch keeps its own age":              {refs: `"b":{"snapshot-id":5,"type":"branch","max-snapshot-age-ms":18000000}`, expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(0)}, want: "1,3,6"},
		"a reference that is too old goes":        {refs: `"g":{"snapshot-id":5,"type":"tag","max-ref-age-ms":60000}`, expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(0)}, want: "1,2,3,5,6", dropped: "g"},
		"one that leads nowhere, too":             {refs: `"g":{"snapshot-id":9,"type":"tag"}`, expire: &sinkv1.ExpireSnapshots{}, dropped: "g"},
		"those that are named":                    {expire: &sinkv1.ExpireSnapshots{Snapshots: []string{"3", "6"}}, want: "3,6"},
		"not where a reference points to":         {expire: &sinkv1.ExpireSnapshots{Snapshots: []string{"4"}}, err: "snapshot 4 is where main points to"},
		"not one that is not there":               {expire: &sinkv1.ExpireSnapshots{Snapshots: []string{"7"}}, err: "no snapshot 7"},
		"not where files may be others'":          {properties: `"gc.enabled":"false"`, expire: &sinkv1.ExpireSnapshots{OlderThanMillis: ago(0)}, err: "gc.enabled is false"},
		"not by a property that cannot be read":   {properties: `"history.expire.max-snapshot-age-ms":"soon"`, expire: &sinkv1.ExpireSnapshots{}, err: "must be a positive number"},
	} {
		t.Run(name, func(t *testing.T) {
			table := history(t, x.refs, x.properties)
			p, err := Changes(table, []*sinkv1.Change{{Kind: &sinkv1.Change_ExpireSnapshots{ExpireSnapshots: x.expire}}}, Options{Now: now})
			if x.err != "" {
				require.ErrorContains(t, err, x.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, x.want, p.Values[ValueExpired])
			require.Equal(t, x.dropped, p.Values[ValueDropped])
			require.Equal(t, x.want == "" && x.dropped == "", p.Unchanged())
			for _, r := range p.Requirements {
				require.NotEqual(t, "main", r.(object)["ref"], "appends go on beside an expiry")
			}
		})
	}
}

// A column of a type that Signet does not know is in nobody's way.
func TestChanges_BesideAnUnknownType(t *testing.T) {
	table := history(t, "", "")
	change := func(c *sinkv1.Change) (*Plan, error) { return Changes(table, []*sinkv1.Change{c}, Options{Now: now}) }
	p, err := change(&sinkv1.Change{Kind: &sinkv1.Change_RenameColumn{RenameColumn: &sinkv1.RenameColumn{Path: []string{"id"}, Name: "v"}}})
	require.NoError(t, err)
	require.Len(t, p.Updates, 2)
	raw, err := p.want.schema.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(raw), `{"id":1,"name":"v","required":false,"type":"variant"}`)
}

func TestCherryPick_OfAStagedSnapshot(t *testing.T) {
	table := history(t, "", "")
	table.Snapshots[4].Summary["wap.id"] = "w"
	five := int64(2)
	for name, x := range map[string]struct {
		head              int64
		pick              *sinkv1.CherryPick
		done, dynamic     string
		orphan, v1, picks bool
		err               string
	}{
		"on its parent main moves to it":    {head: five, pick: &sinkv1.CherryPick{Snapshot: "5"}},
		"by its wap.id":                     {head: five, pick: &sinkv1.CherryPick{WapId: "w"}},
		"elsewhere its files are added":     {head: 4, pick: &sinkv1.CherryPick{WapId: "w"}},
		"not an ancestor":                   {head: 4, pick: &sinkv1.CherryPick{Snapshot: "2"}, err: "is an ancestor"},
		"not one that is not there":         {head: 4, pick: &sinkv1.CherryPick{WapId: "x"}, err: `no snapshot with the wap.id "x"`},
		"not what is no append":             {head: 4, pick: &sinkv1.CherryPick{Snapshot: "6"}, err: "only an append"},
		"not one whose wap.id is published": {head: 3, pick: &sinkv1.CherryPick{WapId: "w"}, err: `has published the wap.id "w"`},
		"not one whose changes are made":    {head: 4, done: "5", pick: &sinkv1.CherryPick{WapId: "w"}, err: "snapshot 3 has its changes"},
		"nor by its id":                     {head: 4, done: "5", pick: &sinkv1.CherryPick{Snapshot: "5"}, err: "snapshot 3 has its changes"},
		"an overwrite of partitions":        {head: 4, dynamic: "true", pick: &sinkv1.CherryPick{Snapshot: "6"}, picks: true},
		"not another overwrite":             {head: 4, dynamic: "false", pick: &sinkv1.CherryPick{Snapshot: "6"}, err: "only an append"},
		"nor one of another history":        {head: 4, dynamic: "true", orphan: true, pick: &sinkv1.CherryPick{Snapshot: "6"}, err: "no ancestor of main's head"},
		"nor in a table of version 1":       {head: 4, dynamic: "true", v1: true, pick: &sinkv1.CherryPick{Snapshot: "6"}, err: "format version 1"},
	} {
		t.Run(name, func(t *testing.T) {
			at := history(t, "", "")
			at.Snapshots[4].Summary["wap.id"] = "w"
			at.Snapshots[5].Summary["operation"] = "delete"
			at.Snapshots[4].ManifestList, at.Snapshots[5].ManifestList = "file:///l5", "file:///l6"
			if x.dynamic != "" {
				at.Snapshots[5].Summary["operation"], at.Snapshots[5].Summary["replace-partitions"] = "overwrite", x.dynamic
			}
			if x.orphan {
				other := int64(5)
				at.Snapshots[5].ParentID = &other
			}
			if x.v1 {
				at.FormatVersion = 1
			}
			if x.done != "" {
				at.Snapshots[2].Summary["source-snapshot-id"] = x.done
			}
			if x.head == 3 {
				at.Snapshots[2].Summary["published-wap-id"] = "w"
			}
			r := at.Refs["main"]
			r.SnapshotID = x.head
			at.Refs["main"], at.Current = r, &r.SnapshotID
			p, err := Changes(at, []*sinkv1.Change{{Kind: &sinkv1.Change_CherryPick{CherryPick: x.pick}}}, Options{Now: now})
			if x.err != "" {
				require.ErrorContains(t, err, x.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, x.head == 4 || x.picks, p.Pick != nil)
			require.Equal(t, p.Pick == nil, len(p.Updates) == 1)
		})
	}
}
