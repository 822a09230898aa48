package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// loadDeletes prepares what the view's functions answer: the deleted positions of every data file, each delete file read once, and the numbers of row
// lineage.
func (v *tableView) loadDeletes(ctx context.Context) error {
	if err := v.inst.newView(); err != nil {
		return err
	}
	if err := v.loadLineage(ctx); err != nil || v.inst.access.NoDeletes {
		return err
	}
	bitmaps, err := DeletedPositions(ctx, v.scan.GetFiles())
	if err != nil {
		return err
	}
	return v.keepPositions(ctx, bitmaps)
}

// DeletedPositions are the rows of data files that deletion vectors and position delete files have deleted, by the path of the data file; each delete file is
// read once. Files without such deletes are not in it.
func DeletedPositions(ctx context.Context, files []*planv1.PinnedFile) (map[string]*roaring64.Bitmap, error) {
	wanted := map[string]*positionFile{} // position delete files, by path
	bitmaps := map[string]*roaring64.Bitmap{}
	for _, f := range files {
		if bitmaps[f.GetPath()] != nil {
			continue // another range of its rows
		}
		for _, d := range f.GetDeletes() {
			switch d.GetContent() {
			case planv1.FileContent_FILE_CONTENT_DELETION_VECTOR:
				b, err := readVector(d)
				if err != nil {
					return nil, deleteFileError(f, err)
				}
				bitmaps[f.GetPath()] = b
			case planv1.FileContent_FILE_CONTENT_POSITION_DELETES:
				if bitmaps[f.GetPath()] == nil {
					bitmaps[f.GetPath()] = roaring64.New()
				}
				p := wanted[d.GetPath()]
				if p == nil {
					p = &positionFile{file: d, into: map[string]*roaring64.Bitmap{}}
					wanted[d.GetPath()] = p
				}
				p.into[f.GetName()] = bitmaps[f.GetPath()]
			case planv1.FileContent_FILE_CONTENT_EQUALITY_DELETES:
			default:
				return nil, fmt.Errorf("%s: a delete file of kind %s", d.GetPath(), d.GetContent())
			}
		}
	}
	for _, p := range wanted {
		if err := p.read(ctx); err != nil {
			return nil, err
		}
	}
	return bitmaps, nil
}

func (v *tableView) keepPositions(ctx context.Context, bitmaps map[string]*roaring64.Bitmap) error {
	if len(bitmaps) == 0 {
		return nil
	}
	paths := make([]string, 0, len(bitmaps))
	for p := range bitmaps {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	hashes, err := v.inst.hashes(ctx, paths, keyPositions)
	if err != nil {
		return err
	}
	for p, b := range bitmaps {
		b.RunOptimize()
		v.inst.rows.positions[hashes[p]] = b
	}
	return nil
}

func (v *tableView) loadLineage(ctx context.Context) error {
	if !v.scan.GetWithPositions() || !v.scan.GetRowLineage() {
		return nil
	}
	var paths []string
	for _, f := range v.scan.GetFiles() {
		paths = append(paths, f.GetPath())
	}
	first, err := v.inst.hashes(ctx, paths, keyFirstRow)
	if err != nil {
		return err
	}
	sequence, err := v.inst.hashes(ctx, paths, keySequence)
	if err != nil {
		return err
	}
	for _, f := range v.scan.GetFiles() {
		if f.FirstRowId != nil { // without it the rows have no ids yet, and no sequence number of a last change
			v.inst.rows.values[first[f.GetPath()]] = f.GetFirstRowId()
			v.inst.rows.values[sequence[f.GetPath()]] = f.GetDataSequenceNumber()
		}
	}
	return nil
}

// deleteFileError names the data file whose deletes cannot be read, and says what it means that one is gone.
func deleteFileError(f *planv1.PinnedFile, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return userErrorf(missingHint, "a delete file of data file %s is not there: %v", displayName(f), err)
	case errors.Is(err, errVector), errors.Is(err, errPositions):
		return userErrorf("the table is damaged; read an older version of it, or restore the file", "data file %s: %v", displayName(f), err)
	}
	return fmt.Errorf("deletes of data file %s: %w", displayName(f), err)
}

// checkDeletes compares the sizes of delete files with what was planned.
func checkDeletes(f *planv1.PinnedFile) error {
	for _, d := range f.GetDeletes() {
		if len(d.GetInline()) > 0 || d.GetUri() != "" && d.GetPath() == "" {
			continue // there is no file, or it was not fetched because no row is read
		}
		st, err := os.Stat(d.GetPath())
		if err != nil {
			return deleteFileError(f, err)
		}
		if d.GetSizeBytes() > 0 && st.Size() != d.GetSizeBytes() {
			return userErrorf("restore the file, or read another version of the table", "delete file %s of data file %s has %d bytes, and its manifest says %d: the table is damaged",
				d.GetPath(), displayName(f), st.Size(), d.GetSizeBytes())
		}
	}
	return nil
}
