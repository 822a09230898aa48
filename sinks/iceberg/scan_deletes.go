package iceberg

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
)

// pathField is the field id of the data file's path in position delete files.
const pathField = 2147483546

// deletes are the delete files of a snapshot, arranged by what they may apply to (specification, "Scan Planning").
type deletes struct {
	vectors   map[string]*deletion   // deletion vectors, by data file
	byFile    map[string][]*deletion // position deletes of one data file
	positions map[string][]*deletion // position deletes of a partition
	equality  map[string][]*deletion // equality deletes of a partition
	global    []*deletion            // equality deletes of an unpartitioned spec: for every partition of every spec
	any       bool
}

type deletion struct {
	file         *planv1.DeleteFile
	sequence     int64
	lower, upper []byte // of the data files' paths; nil: not known
}

func newDeletes() *deletes {
	return &deletes{
		vectors: map[string]*deletion{}, byFile: map[string][]*deletion{}, positions: map[string][]*deletion{}, equality: map[string][]*deletion{},
	}
}

func (d *deletes) empty() bool { return !d.any }

// partitionKey names a partition of a spec.
func partitionKey(spec int32, e *icefile.Entry) string {
	return strconv.Itoa(int(spec)) + "/" + e.PartitionKey()
}

// checkFile refuses files that cannot be read.
func checkFile(what string, e *icefile.Entry, d icefile.Detail) error {
	switch {
	case d.Key != nil:
		return fmt.Errorf("%s %s is encrypted, which is not supported", what, e.Path)
	case !strings.EqualFold(e.Format, "parquet"):
		return fmt.Errorf("%s %s has format %s; only Parquet is read", what, e.Path, e.Format)
	}
	return nil
}

// add takes an entry of a manifest of deletes.
func (d *deletes) add(e *icefile.Entry, m *icefile.Manifest, spec *scanSpec) error {
	detail := e.Detail()
	del := &deletion{sequence: e.DataSequence(m), file: &planv1.DeleteFile{Path: e.Path, SizeBytes: e.Size, RecordCount: e.Records}}
	d.any = true
	switch {
	case e.Content == icefile.FilePositions && strings.EqualFold(e.Format, "puffin"):
		return d.addVector(e, detail, del)
	case e.Content == icefile.FilePositions:
		if err := checkFile("position delete file", e, detail); err != nil {
			return err
		}
		d.addPositions(e, m, detail, del)
		return nil
	case e.Content != icefile.FileEquality:
		return fmt.Errorf("%s has content %d, in a manifest of delete files", e.Path, e.Content)
	}
	if err := checkFile("equality delete file", e, detail); err != nil {
		return err
	}
	if len(detail.EqualityIDs) == 0 {
		return fmt.Errorf("equality delete file %s names no columns", e.Path)
	}
	del.file.Content, del.file.EqualityIds = planv1.FileContent_FILE_CONTENT_EQUALITY_DELETES, detail.EqualityIDs
	if spec.plain {
		d.global = append(d.global, del)
		return nil
	}
	key := partitionKey(m.SpecID, e)
	d.equality[key] = append(d.equality[key], del)
	return nil
}

func (d *deletes) addVector(e *icefile.Entry, detail icefile.Detail, del *deletion) error {
	switch {
	case detail.Key != nil:
		return fmt.Errorf("deletion vector %s is encrypted, which is not supported", e.Path)
	case detail.ReferencedFile == "" || detail.ContentOffset == nil || detail.ContentSize == nil:
		return fmt.Errorf("deletion vector %s: its entry lacks the data file, the offset or the size of the blob", e.Path)
	case d.vectors[detail.ReferencedFile] != nil:
		return fmt.Errorf("data file %s has two deletion vectors, in %s and in %s", detail.ReferencedFile, d.vectors[detail.ReferencedFile].file.GetPath(), e.Path)
	}
	del.file.Content = planv1.FileContent_FILE_CONTENT_DELETION_VECTOR
	del.file.ContentOffset, del.file.ContentSize = *detail.ContentOffset, *detail.ContentSize
	d.vectors[detail.ReferencedFile] = del
	return nil
}

func (d *deletes) addPositions(e *icefile.Entry, m *icefile.Manifest, detail icefile.Detail, del *deletion) {
	del.file.Content = planv1.FileContent_FILE_CONTENT_POSITION_DELETES
	if bounds := e.Metrics(pathField); bounds != nil {
		del.lower, del.upper = bounds.Lower, bounds.Upper
	}
	if del.file.Single = detail.ReferencedFile != ""; del.file.Single {
		del.file.Name = e.Path
		d.byFile[detail.ReferencedFile] = append(d.byFile[detail.ReferencedFile], del)
		return
	}
	key := partitionKey(m.SpecID, e)
	d.positions[key] = append(d.positions[key], del)
}

// of lists what applies to a data file of this data sequence number, in this partition.
func (d *deletes) of(path string, sequence int64, partition string) ([]*planv1.DeleteFile, error) {
	var out []*planv1.DeleteFile
	for _, list := range [][]*deletion{d.global, d.equality[partition]} {
		for _, del := range list {
			if sequence < del.sequence { // rows that were added with the deletes stay
				out = append(out, del.file)
			}
		}
	}
	if v := d.vectors[path]; v != nil {
		if v.sequence < sequence {
			return nil, fmt.Errorf("the deletion vector of data file %s is older than the file (sequence numbers %d and %d)", path, v.sequence, sequence)
		}
		return append(out, v.file), nil // it holds what position delete files of the same rows hold
	}
	for _, list := range [][]*deletion{d.byFile[path], d.positions[partition]} {
		for _, del := range list {
			if sequence <= del.sequence && del.mayName(path) {
				if string(del.lower) == path && string(del.upper) == path {
					del.file.Single = true
				}
				out = append(out, del.file)
			}
		}
	}
	return out, nil
}

// mayName reports whether the paths in a position delete file may include this one. Not every writer raises an upper bound that it cuts.
func (d *deletion) mayName(path string) bool {
	p := []byte(path)
	return (d.lower == nil || bytes.Compare(d.lower, p) <= 0) && (d.upper == nil || bytes.Compare(d.upper, p) >= 0 || bytes.HasPrefix(p, d.upper))
}
