package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// CompactOptions say which files a rewrite takes and what it makes of them. Names and defaults are those of Iceberg's rewrite_data_files.
type CompactOptions struct {
	Target       int64   // bytes of a file that is written
	Min, Max     int64   // bytes of files that are left alone
	MinFiles     int     // so many in a partition are worth a rewrite
	All          bool    // every file
	MaxGroup     int64   // bytes that are sorted together, or are one unit of work
	DeleteFiles  int     // a file with so many delete files is rewritten
	DeletedRatio float64 // or with so many of its rows deleted
}

// Defaults of rewrite_data_files, but for MaxGroup: Iceberg's 100 GB are shared by many tasks, ours are one task's.
const (
	compactMinRatio     = 0.75
	compactMaxRatio     = 1.8
	compactMinFiles     = 5
	compactMaxGroup     = 10 << 30 // bytes
	compactDeletedRatio = 0.3
	compactAtOnce       = 4 // files of the target size that one task writes, where order does not matter
)

// DefaultCompactOptions are those for a table whose files are to have a size.
func DefaultCompactOptions(target int64) CompactOptions {
	return CompactOptions{
		Target: target, Min: int64(float64(target) * compactMinRatio), Max: int64(float64(target) * compactMaxRatio),
		MinFiles: compactMinFiles, MaxGroup: compactMaxGroup, DeleteFiles: 1 << 30, DeletedRatio: compactDeletedRatio,
	}
}

// compactSettings read one option each. Those that say how Spark runs mean nothing here and are not known.
var compactSettings = map[string]func(*CompactOptions, string) error{
	"target-file-size-bytes": func(o *CompactOptions, v string) error { return number(v, 1, 1<<50, &o.Target) },
	"min-file-size-bytes":    func(o *CompactOptions, v string) error { return number(v, 0, 1<<50, &o.Min) },
	"max-file-size-bytes":    func(o *CompactOptions, v string) error { return number(v, 1, 1<<50, &o.Max) },
	"min-input-files":        func(o *CompactOptions, v string) error { return number(v, 1, 1<<30, &o.MinFiles) },
	"rewrite-all": func(o *CompactOptions, v string) (err error) {
		if o.All, err = strconv.ParseBool(strings.ToLower(v)); err != nil {
			return fmt.Errorf("want true or false")
		}
		return nil
	},
	"max-file-group-size-bytes": func(o *CompactOptions, v string) error { return number(v, 1, 1<<50, &o.MaxGroup) },
	"delete-file-threshold":     func(o *CompactOptions, v string) error { return number(v, 0, 1<<31-1, &o.DeleteFiles) },
	"delete-ratio-threshold": func(o *CompactOptions, v string) (err error) {
		if o.DeletedRatio, err = strconv.ParseFloat(v, 64); err != nil || !(o.DeletedRatio > 0 && o.DeletedRatio <= 1) {
			return fmt.Errorf("want a number above 0 and up to 1")
		}
		return nil
	},
	"partial-progress.enabled": func(_ *CompactOptions, v string) error {
		if !strings.EqualFold(v, "false") {
			return fmt.Errorf("all groups are committed together; want false")
		}
		return nil
	},
	"use-starting-sequence-number": func(_ *CompactOptions, v string) error {
		if !strings.EqualFold(v, "true") {
			return fmt.Errorf("rewritten files always have the sequence number of the snapshot that was read: rows that others delete meanwhile would come back; want true")
		}
		return nil
	},
}

// ParseCompactOptions puts options over the defaults for a table whose files are to have a size.
func ParseCompactOptions(given map[string]string, target int64) (CompactOptions, error) {
	out := DefaultCompactOptions(target)
	if v, ok := given["target-file-size-bytes"]; ok { // minimum and maximum follow it
		if err := number(v, 1, 1<<50, &out.Target); err == nil {
			out = DefaultCompactOptions(out.Target)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		set, ok := compactSettings[name]
		if !ok {
			return out, &Error{Message: fmt.Sprintf("rewrite_data_files has no option %q", name), Hint: "options are " + strings.Join(slices.Sorted(maps.Keys(compactSettings)), ", ")}
		}
		if err := set(&out, given[name]); err != nil {
			return out, &Error{Message: fmt.Sprintf("rewrite_data_files: option %s is %q: %v", name, given[name], err)}
		}
	}
	switch {
	case out.Min >= out.Target:
		return out, &Error{Message: fmt.Sprintf("rewrite_data_files: min-file-size-bytes is %d, which is not below target-file-size-bytes, %d", out.Min, out.Target)}
	case out.Max <= out.Target:
		return out, &Error{Message: fmt.Sprintf("rewrite_data_files: max-file-size-bytes is %d, which is not above target-file-size-bytes, %d", out.Max, out.Target)}
	}
	return out, nil
}

// CompactFile is a data file as the planning of a rewrite sees it.
type CompactFile struct {
	File      *planv1.PinnedFile
	Partition string // files with the same are in one partition; files of an earlier partitioning have one of their own
}

// CompactGroups chooses the files of a rewrite, and divides them: each group is rewritten as one, within its partition. With sorted, what is in one partition
// stays together up to MaxGroup, since the order of rows is that of a group.
func CompactGroups(files []CompactFile, o CompactOptions, sorted bool) [][]*planv1.PinnedFile {
	var keys []string
	byPartition := map[string][]*planv1.PinnedFile{}
	for _, f := range files {
		if !o.All && !o.candidate(f.File) {
			continue
		}
		if byPartition[f.Partition] == nil {
			keys = append(keys, f.Partition)
		}
		byPartition[f.Partition] = append(byPartition[f.Partition], f.File)
	}
	limit := o.MaxGroup
	if !sorted {
		limit = min(limit, max(compactAtOnce*o.Target, 1))
	}
	var out [][]*planv1.PinnedFile
	for _, key := range keys {
		for _, group := range packed(byPartition[key], o.MaxGroup) {
			if o.All || o.worth(group) {
				out = append(out, evenly(group, limit)...)
			}
		}
	}
	return out
}

func (o *CompactOptions) candidate(f *planv1.PinnedFile) bool {
	return f.GetSizeBytes() < o.Min || f.GetSizeBytes() > o.Max || o.deleted(f)
}

// deleted tells whether delete files alone are a reason to rewrite a file.
func (o *CompactOptions) deleted(f *planv1.PinnedFile) bool {
	if len(f.GetDeletes()) > 0 && len(f.GetDeletes()) >= o.DeleteFiles {
		return true
	}
	rows := int64(0) // of deletes that are about this file alone
	for _, d := range f.GetDeletes() {
		if d.GetContent() == planv1.FileContent_FILE_CONTENT_DELETION_VECTOR {
			rows += d.GetRecordCount()
		}
	}
	return rows > 0 && f.GetRecordCount() > 0 && float64(min(rows, f.GetRecordCount()))/float64(f.GetRecordCount()) >= o.DeletedRatio
}

func (o *CompactOptions) worth(group []*planv1.PinnedFile) bool {
	total := bytesOf(group)
	return len(group) > 1 && (len(group) >= o.MinFiles || total > o.Target) || total > o.Max || slices.ContainsFunc(group, o.deleted)
}

func bytesOf(files []*planv1.PinnedFile) int64 {
	total := int64(0)
	for _, f := range files {
		total += f.GetSizeBytes()
	}
	return total
}

// packed divides files into groups of at most limit bytes, in their order; a file that is larger is a group of its own.
func packed(files []*planv1.PinnedFile, limit int64) [][]*planv1.PinnedFile {
	var out [][]*planv1.PinnedFile
	var group []*planv1.PinnedFile
	size := int64(0)
	for _, f := range files {
		if len(group) > 0 && size+f.GetSizeBytes() > limit {
			out, group, size = append(out, group), nil, 0
		}
		group, size = append(group, f), size+f.GetSizeBytes()
	}
	if len(group) > 0 {
		out = append(out, group)
	}
	return out
}

// evenly divides a group into parts of about the same size, none much above limit bytes: the last one must not be a small file again.
func evenly(group []*planv1.PinnedFile, limit int64) [][]*planv1.PinnedFile {
	total := bytesOf(group)
	parts := (total + limit - 1) / max(limit, 1)
	if parts <= 1 {
		return [][]*planv1.PinnedFile{group}
	}
	var out [][]*planv1.PinnedFile
	var part []*planv1.PinnedFile
	seen := int64(0)
	for _, f := range group {
		part = append(part, f)
		if seen += f.GetSizeBytes(); seen >= total/parts*int64(len(out)+1) && int64(len(out)) < parts-1 {
			out, part = append(out, part), nil
		}
	}
	if len(part) > 0 {
		out = append(out, part)
	}
	return out
}

// TaskBytes is how much of small groups one task takes together.
func (o *CompactOptions) TaskBytes() int64 { return min(o.MaxGroup, compactAtOnce*o.Target) }
