package sdk

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// NumberFields gives every field of a new table, nested ones included, the id by which readers find it: 1 and up, in the order of the schema.
// It changes the schema that it is given.
func NumberFields(schema *planv1.Schema) {
	number(schema.GetFields(), new(int32))
}

func number(fields []*planv1.Field, last *int32) {
	for _, f := range fields {
		*last++
		f.Id = *last
		number(f.GetType().GetFields(), last)
	}
}

// filesInRef are so few that a reference is small: compressed, some 20 kB.
const filesInRef = 1000

// StageFiles is Stage for a sink that keeps nothing of a data file but its URI, size and record count: the references hold those, so that no
// object has to be written. StagedFiles reads them. They are gzipped JSON, some 20 bytes a file. All references of a job have to fit into one
// CommitRequest of 16 MiB, and the host keeps them in its journal: jobs of many 100,000 files are for a sink that writes objects instead.
func StageFiles(manifests *ManifestSource) (*sinkv1.StageResponse, error) {
	var files []*sinkv1.ScanFile
	for m, err := range manifests.All() {
		if err != nil {
			return nil, err
		}
		for f, err := range m.EachFile() {
			if err != nil {
				return nil, err
			}
			files = append(files, &sinkv1.ScanFile{Uri: f.GetPath(), RecordCount: f.GetRecordCount(), SizeBytes: f.GetSizeBytes()})
		}
	}
	resp := &sinkv1.StageResponse{}
	for part := range slices.Chunk(files, filesInRef) {
		var data bytes.Buffer
		w := gzip.NewWriter(&data)
		if err := errors.Join(json.NewEncoder(w).Encode(part), w.Close()); err != nil {
			return nil, err
		}
		resp.Refs = append(resp.Refs, &sinkv1.StagedRef{Data: data.Bytes()})
	}
	return resp, nil
}

// StagedFiles are the files and the markers of units that StageFiles staged, in their order; never nil.
func StagedFiles(units []*sinkv1.Unit) (files []*sinkv1.ScanFile, markers []string, err error) {
	files, markers = []*sinkv1.ScanFile{}, []string{}
	for _, unit := range units {
		markers = append(markers, unit.GetMarker())
		for _, ref := range unit.GetRefs() {
			var part []*sinkv1.ScanFile
			r, err := gzip.NewReader(bytes.NewReader(ref.GetData()))
			if err == nil {
				err = json.NewDecoder(r).Decode(&part)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("a staged reference of job %s is not one of StageFiles: %w", unit.GetJobId(), err)
			}
			files = append(files, part...)
		}
	}
	return files, markers, nil
}
