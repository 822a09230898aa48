package iceberg

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// What happens to a table between the planning of a write and its commit, for each kind of write (C28 to C32).

// meanwhileTable has two files of one row each.
type meanwhileTable struct {
	*testHost
	c   sinkv1.SinkClient
	old []*planv1.DataFile
}

const jsonIntID = `{"id":1,"name":"id","required":false,"type":"int"}`

func newMeanwhile(t *testing.T) *meanwhileTable {
	h := newHost(t, "meanwhile")
	c := h.client(impatient())
	createTable(t, h, c, &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{field("id", kInt), field("name", kStr)}}})
	m := &meanwhileTable{testHost: h, c: c}
	for i := range 2 {
		j := newJob(t, h, c)
		files := j.write(row{vInt(int64(i)), vStr("old")})
		j.land(files)
		m.old = append(m.old, files...)
	}
	return m
}

// meanwhileWrites are the kinds of writes: each stages itself, and says which of the old files stay. All but the first of them remove old[0].
var meanwhileWrites = map[string]func(m *meanwhileTable) (j *job, added, kept []*planv1.DataFile){
	"append": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := newJob(m.t, m.testHost, m.c)
		return j, j.write(row{vInt(7), null}), m.old
	},
	"overwrite of all": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := newOverwrite(m.testHost, m.c, scopeAll())
		return j, j.write(row{vInt(7), null}), nil
	},
	"overwrite of partitions": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := newOverwrite(m.testHost, m.c, scopePartitions())
		return j, j.write(row{vInt(7), null}), nil
	},
	"overwrite by condition": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := newOverwrite(m.testHost, m.c, scopeFilter(1, planv1.CompareOp_COMPARE_OP_LT, vInt(1)))
		return j, j.write(row{vInt(-7), null}), m.old[1:]
	},
	"truncation": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		return newOverwrite(m.testHost, m.c, scopeAll()), nil, nil
	},
	"deletion of a file": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := newRowLevel(m.testHost, m.c, "delete")
		j.replaced = replacedFiles(m.old[0])
		return j, nil, m.old[1:]
	},
	"update": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := newRowLevel(m.testHost, m.c, "update")
		j.replaced = replacedFiles(m.old[0])
		return j, j.write(row{vInt(7), null}), m.old[1:]
	},
	"merge": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := newRowLevel(m.testHost, m.c, "merge")
		j.replaced = replacedFiles(m.old[0])
		return j, j.write(row{vInt(7), null}), m.old[1:]
	},
	"rewrite": func(m *meanwhileTable) (*job, []*planv1.DataFile, []*planv1.DataFile) {
		j := m.prepared(m.c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_REWRITE})
		j.replaced = replacedFiles(m.old...)
		j.replaced[0].DeletedRows, j.replaced[1].DeletedRows = 0, 0
		return j, j.write(row{vInt(0), null}, row{vInt(1), null}), nil
	},
}

func TestMeanwhile_HarmlessChangesLand(t *testing.T) { // C28, C31
	for change, do := range map[string]func(*testHost){
		"column renamed": func(h *testHost) {
			h.alterSchema(jsonIntID, `{"id":2,"name":"title","required":false,"type":"string"}`)
		},
		"optional column": func(h *testHost) {
			h.alterSchema(jsonIntID, jsonName, `{"id":3,"name":"new","required":false,"type":"int"}`)
		},
		"type widened":   func(h *testHost) { h.alterSchema(jsonID, jsonName) },
		"column dropped": func(h *testHost) { h.alterSchema(jsonIntID) },
		"a column of the old name, but another": func(h *testHost) {
			h.alterSchema(jsonIntID)
			h.alterSchema(jsonIntID, `{"id":3,"name":"name","required":false,"type":"boolean"}`)
		},
		"default spec changed": func(h *testHost) {
			spec := json.RawMessage(`{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"name":"id_bucket","transform":"bucket[4]"}]}`)
			h.alter(map[string]any{"action": "add-spec", "spec": spec}, map[string]any{"action": "set-default-spec", "spec-id": -1})
		},
		"properties set":   func(h *testHost) { h.setProperties("write.parquet.compression-codec", "gzip") },
		"format version 3": func(h *testHost) { h.alter(map[string]any{"action": "upgrade-format-version", "format-version": 3}) },
	} {
		for write, stage := range meanwhileWrites {
			t.Run(change+" during "+write, func(t *testing.T) {
				m := newMeanwhile(t)
				j, added, kept := stage(m)
				require.NoError(t, j.stage(group(added)...))
				do(m.testHost)
				resp := j.commit()
				require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
				require.Equal(t, pathsOf(added, kept), m.livePaths())
				readBack(t, m.testHost, int64(len(added)+len(kept)+twice(write)))
				for manifest, err := range m.table().AllManifests(t.Context()) {
					require.NoError(t, err)
					require.EqualValues(t, 0, manifest.PartitionSpecID(), "under the spec that the files were written for")
				}
				if snap := m.table().CurrentSnapshot(); m.table().Metadata().Version() == 3 {
					require.NotNil(t, snap.FirstRowID, "rows are numbered (C31)")
					require.EqualValues(t, *snap.FirstRowID+*snap.AddedRows, m.table().Metadata().NextRowID())
				}
			})
		}
	}
}

// group is the files as those of one task, if there are any.
func group(files []*planv1.DataFile) [][]*planv1.DataFile {
	if files == nil {
		return nil
	}
	return [][]*planv1.DataFile{files}
}

// twice: the one file of a rewrite holds two rows.
func twice(write string) int {
	if write == "rewrite" {
		return 1
	}
	return 0
}

func TestMeanwhile_WhatFilesCannotSatisfyIsRefused(t *testing.T) { // C29, C30, C32
	for want, do := range map[string]func(*testHost){
		"column must was added as required": func(h *testHost) {
			h.rewriteMetadata(func(m map[string]any) {
				addSchema(m, `[`+jsonIntID+`,`+jsonName+`,{"id":3,"name":"must","required":true,"type":"int"}]`)
			})
		},
		"column name was made required": func(h *testHost) {
			h.rewriteMetadata(func(m map[string]any) {
				addSchema(m, `[`+jsonIntID+`,{"id":2,"name":"name","required":true,"type":"string"}]`)
			})
		},
		"schema 0, for which the files were written, has been removed": func(h *testHost) {
			h.rewriteMetadata(func(m map[string]any) {
				addSchema(m, `[`+jsonIntID+`]`)
				m["schemas"] = m["schemas"].([]any)[1:]
			})
		},
		"has been removed or replaced": func(h *testHost) { // the id given again to another schema
			h.rewriteMetadata(func(m map[string]any) {
				m["schemas"] = []any{map[string]any{"type": "struct", "schema-id": 0, "fields": json.RawMessage(`[` + jsonIntID + `,{"id":2,"name":"name","required":false,"type":"binary"}]`)}}
			})
		},
		"partition spec 0, for which the files were written": func(h *testHost) {
			h.rewriteMetadata(func(m map[string]any) {
				m["partition-specs"] = []any{map[string]any{"spec-id": 3, "fields": json.RawMessage(`[{"source-id":1,"field-id":1000,"name":"id","transform":"identity"}]`)}}
				m["default-spec-id"] = 3
			})
		},
		"was dropped and created again": func(h *testHost) {
			require.NoError(h.t, h.cat.DropTable(h.t.Context(), h.ident))
			createTable(h.t, h, h.client(New()), simple(nil))
		},
		"has been dropped since": func(h *testHost) { require.NoError(h.t, h.cat.DropTable(h.t.Context(), h.ident)) },
		"it is encrypted":        func(h *testHost) { h.setProperties("encryption.key-id", "k") },
	} {
		for write, stage := range meanwhileWrites {
			t.Run(want+" during "+write, func(t *testing.T) {
				m := newMeanwhile(t)
				j, added, kept := stage(m)
				require.NoError(t, j.stage(group(added)...))
				do(m.testHost)
				m.requests = 0
				resp, err := m.client(impatient()).Commit(t.Context(), j.request()) // of a process that remembers nothing
				require.NoError(t, err)
				if added == nil && strings.HasPrefix(want, "column ") { // nothing is written that could lack a value
					require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
					require.Equal(t, pathsOf(kept), m.livePaths())
					return
				}
				require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome(), resp.GetMessage())
				require.Contains(t, resp.GetMessage(), want)
				require.Zero(t, m.requests)
			})
		}
	}
}
