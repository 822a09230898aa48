package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/scheduler/broker"
)

// altering is a lease that may change metadata, as ALTER TABLE takes it.
func altering(s *broker.LeaseSpec) { s.Gate, s.AllowAlter, s.Mode, s.Markers = nil, true, 0, nil }

func (j *job) alter(requirements, updates string) error {
	_, err := j.sink.send(j.sink.ctx, []byte(requirements), []byte(updates))
	return err
}

func uuidRequirement(t *catalog.Table) string {
	return fmt.Sprintf(`{"type":"assert-table-uuid","uuid":%q}`, t.UUID)
}

func TestVetAlter_WhatItLetsThrough(t *testing.T) {
	b := newBench(t)
	b.createTable()
	writer := b.job()
	_, err := writer.sink.append()
	require.NoError(t, err)
	tbl := b.load()
	id := tbl.Metadata.CurrentSnapshot().SnapshotID
	j := b.job(altering)
	uuid := uuidRequirement(tbl)
	require.NoError(t, j.alter("["+uuid+"]", `[{"action":"set-properties","updates":{"owner":"me","write.data.path":"`+tbl.Location+`/elsewhere"}}]`))
	require.NoError(t, j.alter("["+uuid+"]", `[{"action":"remove-properties","removals":["owner"]}]`))
	require.NoError(t, j.alter("["+uuid+`,{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":null}]`, fmt.Sprintf(`[{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":%d,"min-snapshots-to-keep":2}]`, id)))
	require.NoError(t, j.alter("["+uuid+"]", `[{"action":"upgrade-format-version","format-version":3}]`))
	raw, err := json.Marshal(tbl.Metadata.CurrentSchema())
	require.NoError(t, err)
	require.NoError(t, j.alter("["+uuid+`,{"type":"assert-current-schema-id","current-schema-id":0}]`, `[{"action":"add-schema","schema":`+string(raw)+`},{"action":"set-current-schema","schema-id":-1}]`))
	now := b.load()
	require.Equal(t, 3, now.Metadata.Version())
	require.NotContains(t, now.Metadata.Properties(), "owner")
	require.NotEmpty(t, now.Metadata.Properties()[markerProperty], "the record of what was committed stays")
}

func TestVetAlter_WhatItRefuses(t *testing.T) {
	b := newBench(t)
	b.createTable()
	writer := b.job()
	_, err := writer.sink.append()
	require.NoError(t, err)
	tbl := b.load()
	id := tbl.Metadata.CurrentSnapshot().SnapshotID
	uuid := uuidRequirement(tbl)
	main := fmt.Sprintf(`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}`, id)
	for updates, want := range map[string]string{
		`[]`: "without updates",
		`[{"action":"set-location","location":"file:///elsewhere"}]`:                                       `"set-location" is not allowed`,
		`[{"action":"assign-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}]`:                         `"assign-uuid" is not allowed`,
		`[{"action":"add-snapshot","snapshot":{}}]`:                                                        `"add-snapshot" is not allowed`,
		`[{"action":"set-statistics","statistics":{}}]`:                                                    `"set-statistics" is not allowed`,
		`[{"action":"set-properties","updates":{"` + markerProperty + `":"x"}}]`:                           "reserved",
		`[{"action":"set-properties","updates":{"signet.other":"x"}}]`:                                     "reserved",
		`[{"action":"set-properties","updates":{"write.metadata.path":"file:///etc"}}]`:                    "not below the table's location",
		`[{"action":"set-properties","updates":{"write.data.path":"file:///etc"}}]`:                        "write.data.path",
		`[{"action":"remove-properties","removals":["` + markerProperty + `"]}]`:                           "stays",
		`[{"action":"remove-properties","removals":["signet.landed.other"]}]`:                              "stays",
		`[{"action":"upgrade-format-version","format-version":1}]`:                                         "format version 1",
		`[{"action":"upgrade-format-version","format-version":4}]`:                                         "format version 4",
		`[{"action":"remove-snapshot-ref","ref-name":"main"}]`:                                             "main branch",
		fmt.Sprintf(`[{"action":"remove-snapshots","snapshot-ids":[%d]}]`, id):                             "points to",
		`[{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7}]`:                "no snapshot 7",
		fmt.Sprintf(`[{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":%d}]`, id): `"main" as "tag"`,
		fmt.Sprintf(`[{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":%d}]`, id): "without assert-ref-snapshot-id",
		`[{"action":"set-properties","updates":{}},{"action":"set-properties","updates":{}}]`:              "stands twice",
		`[{"action":"set-properties","updates":{},"more":1}]`:                                              `"more" is not allowed`,
	} {
		j := b.job(altering)
		sent := len(b.cat.Sent())
		requireRefusal(t, permanent, j.alter("["+uuid+","+main+"]", updates), want)
		require.Len(t, b.cat.Sent(), sent, updates)
	}
	harmless := `[{"action":"set-properties","updates":{"a":"b"}}]`
	for requirements, want := range map[string]string{
		`[]`: "assert-table-uuid must be",
		`[{"type":"assert-table-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}]`: "assert-table-uuid must be",
		`[{"type":"assert-create"}]`:  "assert-create is not allowed",
		`[` + uuid + `,` + uuid + `]`: "stands twice",
	} {
		j := b.job(altering)
		requireRefusal(t, permanent, j.alter(requirements, harmless), want)
	}
	for name, edit := range map[string]func(*broker.LeaseSpec){
		"a writer's": func(*broker.LeaseSpec) {}, "a reader's": func(s *broker.LeaseSpec) { altering(s); s.ReadOnly = true },
	} {
		j := b.job(edit)
		require.Error(t, j.alter("["+uuid+"]", harmless), name)
	}
}

func TestVetAlter_ExpiryIsToldBefore(t *testing.T) {
	b := newBench(t)
	b.createTable()
	for range 2 {
		_, err := b.job().sink.append()
		require.NoError(t, err)
	}
	tbl := b.load()
	first := tbl.Metadata.Snapshots()[0].SnapshotID
	updates := fmt.Sprintf(`[{"action":"remove-snapshots","snapshot-ids":[%d]}]`, first)
	sent := len(b.cat.Sent())
	var told []int64
	j := b.job(altering, func(s *broker.LeaseSpec) {
		s.BeforeExpire = func(at *catalog.Table, ids []int64) error {
			told = ids
			require.NotNil(t, at.Metadata.SnapshotByID(first))
			return errors.New("the journal is full")
		}
	})
	require.Error(t, j.alter("["+uuidRequirement(tbl)+"]", updates))
	require.Equal(t, []int64{first}, told)
	require.Len(t, b.cat.Sent(), sent, "nobody would remove the files")
	j = b.job(altering)
	require.NoError(t, j.alter("["+uuidRequirement(tbl)+"]", updates))
	require.Nil(t, b.load().Metadata.SnapshotByID(first))
}
