package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// keptMarkers is how many markers stay besides those that the host asks to keep: a job is settled long before as many others have landed.
const keptMarkers = 256

// Stage makes of each task manifest a reference that holds its files. It writes nothing: what is not committed leaves nothing.
func (hive) Stage(_ context.Context, header *sinkv1.StageHeader, manifests *sdk.ManifestSource) (*sinkv1.StageResponse, error) {
	spec, resp := header.GetSpec(), &sinkv1.StageResponse{}
	table := strings.TrimSuffix(spec.GetDataLocation(), "data")
	for m, err := range manifests.All() {
		if err != nil {
			return nil, err
		}
		var files []dataFile
		for f, err := range m.Files() {
			if err != nil {
				return nil, err
			}
			path, below := strings.CutPrefix(f.GetPath(), table)
			if !below {
				return nil, sdk.Refuse(sdk.Permanent, "data file %s is not below the table", f.GetPath())
			}
			partition, err := partitionText(spec.GetPartition(), f.GetPartition())
			if err != nil {
				return nil, sdk.Refuse(sdk.Permanent, "data file %s: %v", f.GetPath(), err)
			}
			files = append(files, dataFile{Path: path, Partition: partition, Rows: f.GetRecordCount(), Bytes: f.GetSizeBytes()})
		}
		data, err := json.Marshal(files)
		if err != nil {
			return nil, err
		}
		resp.Refs = append(resp.Refs, &sinkv1.StagedRef{Data: data})
	}
	return resp, nil
}

// Commit creates the next number. Every error is returned as it is: the SDK knows how far the attempt came, and turns it into an outcome.
func (hive) Commit(ctx context.Context, req *sinkv1.CommitRequest) (*sinkv1.CommitResponse, error) {
	unit := req.GetUnits()[0] // one job at a time: the sink does not say that it can group
	var added []dataFile
	for _, ref := range unit.GetRefs() {
		var files []dataFile
		if err := json.Unmarshal(ref.GetData(), &files); err != nil {
			return nil, fmt.Errorf("staged reference: %w", err)
		}
		added = append(added, files...)
	}
	for attempt := int32(1); ; attempt++ {
		t, head, err := load(ctx, req.GetTable())
		if err == nil && t.GetTableUuid() != req.GetSpec().GetTableUuid() {
			err = sdk.Refuse(sdk.Permanent, "the table was dropped and created again since the write began")
		}
		if err != nil {
			return nil, err
		}
		resp := &sinkv1.CommitResponse{Outcome: sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, Attempts: attempt, Version: head.find(unit.GetMarker())}
		if resp.Version != "" {
			return resp, nil
		}
		next := head.follow(added, req)
		resp.Outcome, resp.Version, resp.Location = sinkv1.Outcome_OUTCOME_COMMITTED, next.Version, t.GetLocation()+"/"+path(next.Version)
		err = sdk.HostFrom(ctx).PutJSON(ctx, resp.Location, next, sdk.AsCommitPoint(next.Version, head.Version, unit.GetMarker()))
		if err == nil {
			point(ctx, t.GetLocation(), next.Version)
		}
		if !errors.Is(err, sdk.ErrConflict) || attempt >= req.GetMaxAttempts() {
			return resp, err
		}
	}
}

// follow is the commit that comes behind this one: what an overwrite removes is decided on the table as it is now.
func (s *success) follow(added []dataFile, req *sinkv1.CommitRequest) *success {
	next := &success{Version: version(s.number() + 1), Files: []dataFile{}}
	written := map[string]bool{}
	for _, f := range added {
		written[f.Partition] = true
	}
	scope, overwrite := req.GetSpec().GetScope(), req.GetMode() == sinkv1.WriteMode_WRITE_MODE_OVERWRITE
	for _, f := range s.Files {
		if !overwrite || !scope.GetAll() && !written[f.Partition] {
			next.Files = append(next.Files, f)
		}
	}
	next.Files = append(next.Files, added...)

	marker := req.GetUnits()[0].GetMarker()
	for i, l := range s.Landed {
		if i >= len(s.Landed)-keptMarkers || slices.Contains(req.GetKeepMarkers(), l.Marker) {
			next.Landed = append(next.Landed, l)
		}
	}
	next.Landed = append(next.Landed, landed{Marker: marker, Version: next.Version})
	return next
}

// point moves _SUCCESS. Nothing depends on it but how fast the newest commit is found, so that what fails here fails no commit.
func point(ctx context.Context, location, version string) {
	h, uri := sdk.HostFrom(ctx), location+"/_SUCCESS"
	body, err := json.Marshal(pointer{Version: version, Path: path(version)})
	etag := ""
	if err == nil {
		head, missing := h.Head(ctx, uri)
		if etag, err = head.GetEtag(), missing; errors.Is(missing, sdk.ErrNotFound) {
			err = nil
		}
	}
	if err == nil {
		_, err = h.ReplaceIf(ctx, uri, etag, body)
	}
	if err != nil && !errors.Is(err, sdk.ErrConflict) {
		_ = h.Log(ctx, "warn", "_SUCCESS was not moved; the commit has landed all the same", map[string]string{"version": version, "error": err.Error()})
	}
}

func (hive) Lookup(ctx context.Context, req *sinkv1.LookupRequest) (*sinkv1.LookupResponse, error) {
	_, head, err := load(ctx, req.GetTable())
	if err != nil {
		return nil, err
	}
	v := head.find(req.GetMarker())
	return &sinkv1.LookupResponse{Found: v != "", Version: v}, nil
}
