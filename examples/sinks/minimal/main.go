// Command signet-sink-minimal is a whole sink in one file. A table is a directory:
//
//	_schema.json                          the table as CREATE TABLE made it, written once
//	_manifest/00000000000000000000.json   one for each commit, numbered without gaps: the files it added, the markers of its jobs
//	data/...                              Parquet files, written by executors
//
// Readers take the files that the numbered manifests name; nothing else counts. A commit is the creation of the next number: the host makes
// that atomic and lets one through. Put-if-absent is all that a format needs to commit safely.
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

func main() { sdk.Serve(minimal{}) }

type minimal struct{}

// manifest is one commit.
type manifest struct {
	Version string             `json:"version"`
	Markers []string           `json:"markers"`
	Files   []*sinkv1.ScanFile `json:"files"`
}

func (minimal) Describe() *sinkv1.DescribeResponse {
	return &sinkv1.DescribeResponse{
		Name: "minimal", Version: "0.1.0", CommitPoint: sinkv1.CommitPoint_COMMIT_POINT_STORAGE,
		Creates: []string{"_schema.json", "_manifest/*.json"}, CommitPoints: []string{"_manifest/*.json"},
		Summary: "Parquet files in a directory, committed by numbered manifests",
	}
}

func (minimal) CreateTable(ctx context.Context, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error) {
	def := req.GetDefinition()
	if len(def.GetPartition())+len(def.GetSort()) > 0 {
		return nil, sdk.Refuse(sdk.Permanent, "the minimal sink has no partitions and no sort order: create the table without them")
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
		return nil, nil, sdk.Refuse(sdk.NotFound, "table %s.%s does not exist", strings.Join(ref.GetNamespace(), "."), ref.GetName())
	} else if err != nil {
		return nil, nil, err
	}
	for commits := []manifest(nil); ; { // numbers have no gaps: the first one missing ends the table
		var m manifest
		if err := h.GetJSON(ctx, uri(t, version(len(commits))), &m); errors.Is(err, sdk.ErrNotFound) {
			return t, commits, nil
		} else if err != nil {
			return nil, nil, err
		}
		t.Version, commits = m.Version, append(commits, m)
	}
}

func version(n int) string { return fmt.Sprintf("%020d", n) }

func uri(t *sinkv1.DescribeTableResponse, version string) string {
	return t.GetLocation() + "/_manifest/" + version + ".json"
}

func (minimal) PrepareWrite(ctx context.Context, req *sinkv1.PrepareWriteRequest) (*sinkv1.PrepareWriteResponse, error) {
	t, _, err := load(ctx, req.GetTable())
	return &sinkv1.PrepareWriteResponse{Spec: &planv1.WriteSpec{
		TableUuid: t.GetTableUuid(), Schema: t.GetSchema(), DataLocation: t.GetLocation() + "/data", BaseVersion: t.GetVersion(),
		FormatVersion: 1, Files: &planv1.FileRules{Codec: "zstd"},
	}}, err
}

// Stage needs no object: references hold the files of the task manifests themselves.
func (minimal) Stage(_ context.Context, _ *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	return sdk.StageFiles(manifests)
}

func (minimal) Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	files, markers, err := sdk.StagedFiles(req.GetUnits())
	if err != nil {
		return nil, err
	}
	next := manifest{Markers: markers, Files: files}
	for attempt := int32(1); ; attempt++ {
		t, commits, err := load(ctx, req.GetTable())
		if err == nil && t.GetTableUuid() != req.GetSpec().GetTableUuid() {
			err = sdk.Refuse(sdk.Permanent, "the table was dropped and created again since the write began")
		}
		if err != nil {
			return nil, err // the SDK turns errors into outcomes
		}
		resp := &sinkv1.CommitResponse{Outcome: sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, Attempts: attempt, Version: find(commits, next.Markers...)}
		if resp.Version == "" {
			next.Version, resp.Version = version(len(commits)), version(len(commits))
			point := sdk.AsCommitPoint(next.Version, t.GetVersion(), next.Markers...)
			err = sdk.HostFrom(ctx).PutJSON(ctx, uri(t, next.Version), next, point)
			resp.Outcome = sinkv1.Outcome_OUTCOME_COMMITTED
		}
		resp.Location = uri(t, resp.Version)
		if !errors.Is(err, sdk.ErrConflict) || attempt >= req.GetMaxAttempts() {
			return resp, err
		}
	}
}

// find gives the version that holds one of the markers, or nothing.
func find(commits []manifest, markers ...string) string {
	for _, c := range commits {
		if slices.ContainsFunc(markers, func(m string) bool { return slices.Contains(c.Markers, m) }) {
			return c.Version
		}
	}
	return ""
}

func (minimal) Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	_, commits, err := load(ctx, req.GetTable())
	v := find(commits, req.GetMarker())
	return &sinkv1.LookupResponse{Found: v != "", Version: v}, err
}

func (minimal) DescribeTable(ctx context.Context, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	t, _, err := load(ctx, req.GetTable())
	return t, err
}

func (minimal) PlanScan(ctx context.Context, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error {
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
