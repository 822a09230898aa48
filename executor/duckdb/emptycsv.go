package duckdb

import (
	"bytes"
	"context"
	"os"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// maxHeaderOnly bounds the files that are looked into for being nothing but a header.
const maxHeaderOnly = 64 << 10

// withRows drops text files that hold no row from a list of several: those of no bytes, and CSV files that consist of the others' header (X6). DuckDB detects headers file by file and takes a line without rows below it for data. At least one file stays.
func (i *Instance) withRows(ctx context.Context, r *reader, files []*planv1.PinnedFile) ([]*planv1.PinnedFile, error) {
	if r.format == formatParquet || len(files) < 2 {
		return files, nil
	}
	full := dropIf(files, noBytes)
	if _, given := r.options["header"]; given || r.format != formatCSV || len(full) < 2 {
		return full, nil
	}
	var header []byte
	var withHeader *planv1.PinnedFile // a file that has rows below that line
	only := map[*planv1.PinnedFile]bool{}
	for _, f := range full {
		line := firstLine(f)
		if header == nil {
			header = line
		}
		if only[f] = isOnly(f, header); !only[f] && withHeader == nil && bytes.Equal(line, header) {
			withHeader = f
		}
	}
	rest := dropIf(full, func(f *planv1.PinnedFile) bool { return only[f] })
	if len(rest) == len(full) || withHeader == nil {
		return full, nil
	}
	has, err := i.hasHeader(ctx, r, withHeader)
	if err != nil || !has {
		return full, err
	}
	return rest, nil
}

// noBytes: the file was pinned, and is empty.
func noBytes(f *planv1.PinnedFile) bool {
	return f.GetSizeBytes() == 0 && (f.GetMtimeNanos() != 0 || f.GetUri() != "")
}

// dropIf keeps at least the first file.
func dropIf(files []*planv1.PinnedFile, drop func(*planv1.PinnedFile) bool) []*planv1.PinnedFile {
	var out []*planv1.PinnedFile
	for _, f := range files {
		if !drop(f) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return files[:1]
	}
	return out
}

// hasHeader asks DuckDB whether it takes a file's first line for a header.
func (i *Instance) hasHeader(ctx context.Context, r *reader, f *planv1.PinnedFile) (has bool, err error) {
	sniff := &reader{function: "sniff_csv", format: formatCSV, options: map[string]string{}}
	for _, name := range []string{"delim", "sep", "delimiter", "quote", "escape", "skip", "comment", "nullstr", "sample_size"} {
		if v, given := r.options[name]; given {
			sniff.options[name] = v
		}
	}
	pattern, err := globEscape(f.GetPath())
	if err != nil {
		return false, err
	}
	err = i.conn.QueryRowContext(ctx, "SELECT HasHeader FROM "+sniff.callOn(Literal(pattern))).Scan(&has)
	return has, err
}

// isOnly reports whether a file is nothing but the line.
func isOnly(f *planv1.PinnedFile, line []byte) bool {
	if len(line) == 0 || f.GetSizeBytes() > maxHeaderOnly {
		return false
	}
	body, err := os.ReadFile(f.GetPath())
	return err == nil && bytes.Equal(bytes.TrimRight(body, "\r\n"), line) // what cannot be read is left to DuckDB's error
}

func firstLine(f *planv1.PinnedFile) []byte {
	in, err := os.Open(f.GetPath())
	if err != nil {
		return nil
	}
	defer in.Close()
	buf := make([]byte, maxHeaderOnly)
	n, err := in.Read(buf)
	if err != nil {
		return nil
	}
	line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	return bytes.TrimRight(line, "\r")
}
