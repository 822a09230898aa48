package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// CreateTable writes the definition. That there is a table is what _schema.json says: whoever creates it second is told so by the host.
func (hive) CreateTable(ctx context.Context, req *sinkv1.CreateTableRequest) (*sinkv1.CreateTableResponse, error) {
	def := req.GetDefinition()
	if len(def.GetSort()) > 0 {
		return nil, sdk.Refuse(sdk.Permanent, "the hive sink keeps no sort order: create the table without one")
	}
	location, err := sdk.HostFrom(ctx).Location(ctx)
	if err != nil {
		return nil, err
	}
	number(def.GetSchema().GetFields(), new(int32))
	t := &sinkv1.DescribeTableResponse{Schema: def.GetSchema(), TableUuid: rand.Text(), Location: location, FormatVersion: 1, Properties: def.GetProperties()}
	if t.Partition, err = partitionFields(def); err != nil {
		return nil, err
	}
	err = sdk.HostFrom(ctx).PutJSON(ctx, location+"/_schema.json", t)
	return &sinkv1.CreateTableResponse{TableUuid: t.TableUuid, Location: location}, err
}

// number gives every field, nested ones included, the id by which readers find it.
func number(fields []*planv1.Field, last *int32) {
	for _, f := range fields {
		*last++
		f.Id = *last
		number(f.GetType().GetFields(), last)
	}
}

// success is one commit: a file of _success. It is all that a reader needs.
type success struct {
	Version string `json:"version"`
	// Landed tells of each job's marker at which version it came in.
	Landed []landed   `json:"landed"`
	Files  []dataFile `json:"files"`
}

type landed struct {
	Marker  string `json:"marker"`
	Version string `json:"version"`
}

// dataFile is a file of the table. Path is relative to the table, so that a copy of the directory is a copy of the table.
type dataFile struct {
	Path      string `json:"path"`
	Partition string `json:"partition,omitempty"`
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"`
}

// pointer is _SUCCESS.
type pointer struct {
	Version string `json:"version"`
	Path    string `json:"path"`
}

func version(n int) string { return fmt.Sprintf("%020d", n) }

func path(version string) string { return "_success/" + version + ".json" }

// load reads the table and its newest commit. A table that nothing was committed to has an empty one.
func load(ctx context.Context, ref *sinkv1.TableRef) (*sinkv1.DescribeTableResponse, *success, error) {
	h, t, head := sdk.HostFrom(ctx), &sinkv1.DescribeTableResponse{}, &success{}
	location, err := h.Location(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := h.GetJSON(ctx, location+"/_schema.json", t); errors.Is(err, sdk.ErrNotFound) {
		return nil, nil, sdk.Refuse(sdk.NotFound, "table %s.%s does not exist", strings.Join(ref.GetNamespace(), "."), ref.GetName())
	} else if err != nil {
		return nil, nil, err
	}
	t.Location = location // a copied directory is a table where it is
	var p pointer
	if err := h.GetJSON(ctx, location+"/_SUCCESS", &p); err != nil && !errors.Is(err, sdk.ErrNotFound) {
		return nil, nil, err
	}
	next := 0
	if p.Version != "" {
		if next, err = strconv.Atoi(p.Version); err != nil || next < 0 || p.Version != version(next) {
			return nil, nil, sdk.Refuse(sdk.Permanent, "_SUCCESS of table %s names version %q, which is none: remove the file", ref.GetName(), p.Version)
		}
	}
	for ; ; next++ { // numbers have no gaps: the first one missing ends the table
		var s success
		if err := h.GetJSON(ctx, location+"/"+path(version(next)), &s); errors.Is(err, sdk.ErrNotFound) && version(next) != p.Version {
			t.Version = head.Version
			return t, head, nil
		} else if err != nil {
			return nil, nil, err
		}
		head = &s
	}
}

// find gives the version that a marker came in with, or nothing.
func (s *success) find(marker string) string {
	if i := slices.IndexFunc(s.Landed, func(l landed) bool { return l.Marker == marker }); i >= 0 {
		return s.Landed[i].Version
	}
	return ""
}

func (hive) DescribeTable(ctx context.Context, req *sinkv1.DescribeTableRequest) (*sinkv1.DescribeTableResponse, error) {
	t, _, err := load(ctx, req.GetTable())
	return t, err
}

// number is the version's own; -1: there is none.
func (s *success) number() int {
	if n, err := strconv.Atoi(s.Version); err == nil {
		return n
	}
	return -1
}

// PlanScan lists the files of one version: each commit has them all.
func (hive) PlanScan(ctx context.Context, req *sinkv1.PlanScanRequest, send func(*sinkv1.PlanScanResponse) error) error {
	t, s, err := load(ctx, req.GetTable())
	if err != nil {
		return err
	}
	if v := req.GetVersion(); v != "" && v != s.Version {
		n, err := strconv.Atoi(v)
		s = &success{}
		if err == nil {
			err = sdk.HostFrom(ctx).GetJSON(ctx, t.GetLocation()+"/"+path(version(n)), s)
		}
		if errors.Is(err, sdk.ErrNotFound) || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
			return sdk.Refuse(sdk.Permanent, "the table has no version %q", v)
		}
		if err != nil {
			return err
		}
	}
	if req.AsOfMillis != nil {
		return sdk.Refuse(sdk.Permanent, "the hive sink keeps no times: name a version")
	}
	err = send(&sinkv1.PlanScanResponse{Schema: t.GetSchema(), Version: s.Version, TableUuid: t.GetTableUuid(), TotalFiles: int64(len(s.Files))})
	for files := range slices.Chunk(s.Files, 1000) {
		if err != nil {
			break
		}
		var out []*sinkv1.ScanFile
		for _, f := range files {
			out = append(out, &sinkv1.ScanFile{Uri: t.GetLocation() + "/" + f.Path, SizeBytes: f.Bytes, RecordCount: f.Rows, Partition: []byte(f.Partition)})
		}
		err = send(&sinkv1.PlanScanResponse{Files: out})
	}
	return err
}
