// Command signet-sink-webhook is a sink that tells a URL of each commit. A table is a directory:
//
//	_schema.json                          the table as CREATE TABLE made it, written once
//	_manifest/00000000000000000000.json   one for each commit, numbered without gaps: the files it added, and whose job it was
//	_told/00000000000000000000.json       one for each commit that the receiver has acknowledged
//	data/...                              Parquet files, written by executors
//
// The commit is the creation of the next manifest, as in examples/sinks/minimal; tell.go is what comes after it.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func main() { sdk.Serve(webhook{}) }

type webhook struct{}

// manifest is one commit.
type manifest struct {
	Version   string             `json:"version"`
	Marker    string             `json:"marker"`
	CommitKey string             `json:"commit_key"`
	JobID     string             `json:"job_id"`
	Rows      int64              `json:"rows"`
	Bytes     int64              `json:"bytes"`
	Files     []*sinkv1.ScanFile `json:"files"`
}

func (webhook) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "webhook", Version: "0.1.0", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE,
		Creates: []string{"_schema.json", "_manifest/*.json", "_told/*.json"}, CommitPoints: []string{"_manifest/*.json"},
		Summary: "Parquet files in a directory; a URL is told of each commit",
	}
}

func (webhook) CreateTable(ctx context.Context, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error) {
	def := req.GetDefinition()
	if len(def.GetPartition())+len(def.GetSort()) > 0 {
		return nil, sdk.Refuse(sdk.Permanent, "the webhook sink has no partitions and no sort order: create the table without them")
	}
	location, err := sdk.HostFrom(ctx).Location(ctx)
	if err != nil {
		return nil, err
	}
	sdk.NumberFields(def.GetSchema())
	t := &sinkv1.DescribeTableResponse{Schema: def.GetSchema(), TableUuid: rand.Text(), Location: location, FormatVersion: 1}
	err = sdk.HostFrom(ctx).PutJSON(ctx, location+"/_schema.json", t)
	return &sinkv1.CreateTableResponse{TableUuid: t.TableUuid, Location: location}, err
}

// load reads the table, with its current version, and its commits, oldest first.
func load(ctx context.Context, ref *sinkv1.TableRef) (*sinkv1.DescribeTableResponse, []manifest, error) {
	h, t := sdk.HostFrom(ctx), &sinkv1.DescribeTableResponse{}
	location, err := h.Location(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err = h.GetJSON(ctx, location+"/_schema.json", t); errors.Is(err, sdk.ErrNotFound) {
		return nil, nil, sdk.Refuse(sdk.NotFound, "table %s does not exist", nameOf(ref))
	} else if err != nil {
		return nil, nil, err
	}
	for commits := []manifest(nil); ; { // numbers have no gaps: the first one missing ends the table
		var m manifest
		if err := h.GetJSON(ctx, uri(t, "_manifest", version(len(commits))), &m); errors.Is(err, sdk.ErrNotFound) {
			return t, commits, nil
		} else if err != nil {
			return nil, nil, err
		}
		t.Version, commits = m.Version, append(commits, m)
	}
}

func nameOf(ref *sinkv1.TableRef) string {
	return strings.Join(append(slices.Clone(ref.GetNamespace()), ref.GetName()), ".")
}

func version(n int) string { return fmt.Sprintf("%020d", n) }

func uri(t *sinkv1.DescribeTableResponse, directory, version string) string {
	return t.GetLocation() + "/" + directory + "/" + version + ".json"
}

// PrepareWrite refuses a write that nobody could be told of: before any row is read, not after the commit.
func (webhook) PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	t, _, err := load(ctx, req.GetTable())
	if err == nil {
		_, err = receiverOf(ctx)
	}
	return &sinkv1.PrepareWriteResponse{Spec: &planv1.WriteSpec{
		TableUuid: t.GetTableUuid(), Schema: t.GetSchema(), DataLocation: t.GetLocation() + "/data", BaseVersion: t.GetVersion(),
		FormatVersion: 1, Files: &planv1.FileRules{Codec: "zstd"},
	}}, err
}

func (webhook) Stage(_ context.Context, _ *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	return sdk.StageFiles(manifests)
}

// Commit makes the commit, and then tells the receiver. It is told, too, where a job that landed is asked for once more: the call before may have been cut off in between.
func (webhook) Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	resp, err := commit(ctx, req)
	if err != nil {
		return resp, err // nothing has landed as far as this call knows, so that nobody is told
	}
	if resp.GetOutcome() == sinkv1.Outcome_OUTCOME_COMMITTED || resp.GetOutcome() == sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED {
		resp.Message = tell(ctx, req.GetTable())
	}
	return resp, nil
}

func commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	files, _, err := sdk.StagedFiles(req.GetUnits())
	if err != nil {
		return nil, err
	}
	unit := req.GetUnits()[0] // one job at a time: the sink does not say that it can group
	next := manifest{
		Marker: unit.GetMarker(), CommitKey: unit.GetCommitKey(), JobID: unit.GetJobId(), Rows: unit.GetTotals().GetRows(), Bytes: unit.GetTotals().GetBytes(), Files: files,
	}
	for attempt := int32(1); ; attempt++ {
		t, commits, err := load(ctx, req.GetTable())
		if err == nil && t.GetTableUuid() != req.GetSpec().GetTableUuid() {
			err = sdk.Refuse(sdk.Permanent, "the table was dropped and created again since the write began")
		}
		if err != nil {
			return nil, err
		}
		resp := &sinkv1.CommitResponse{Outcome: sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, Attempts: attempt, Version: find(commits, next.Marker)}
		if resp.Version == "" {
			next.Version, resp.Version = version(len(commits)), version(len(commits))
			err = sdk.HostFrom(ctx).PutJSON(ctx, uri(t, "_manifest", next.Version), next, sdk.AsCommitPoint(next.Version, t.GetVersion(), next.Marker))
			resp.Outcome = sinkv1.Outcome_OUTCOME_COMMITTED
		}
		resp.Location = uri(t, "_manifest", resp.Version)
		if !errors.Is(err, sdk.ErrConflict) || attempt >= req.GetMaxAttempts() {
			return resp, err
		}
	}
}

// find gives the version that holds the marker, or nothing.
func find(commits []manifest, marker string) string {
	if i := slices.IndexFunc(commits, func(c manifest) bool { return c.Marker == marker }); i >= 0 {
		return commits[i].Version
	}
	return ""
}

func (webhook) Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	_, commits, err := load(ctx, req.GetTable())
	v := find(commits, req.GetMarker())
	return &sinkv1.LookupResponse{Found: v != "", Version: v}, err
}

func (webhook) DescribeTable(ctx context.Context, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	t, _, err := load(ctx, req.GetTable())
	return t, err
}

func (webhook) PlanScan(ctx context.Context, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error {
	t, commits, err := load(ctx, req.GetTable())
	if err != nil {
		return err
	}
	v := cmp.Or(req.GetVersion(), t.GetVersion())
	err = send(&sinkv1.PlanScanResponse{Schema: t.GetSchema(), Version: v, TableUuid: t.GetTableUuid()})
	for _, c := range commits {
		for files := range slices.Chunk(c.Files, 1000) {
			if err == nil && c.Version <= v {
				err = send(&sinkv1.PlanScanResponse{Files: files})
			}
		}
	}
	return err
}
