package log

import (
	"strings"

	"github.com/signet-io/signet/sinks/delta/log/partition"
)

// decodePath reads a path of the log, and gives the raw text where encoding would not write it again.
func decodePath(raw string) (path, keep string, err error) {
	if path, err = partition.DecodePath(raw); err != nil {
		return "", "", err
	}
	if partition.EncodePath(path) != raw {
		keep = raw
	}
	return path, keep, nil
}

func rawPath(path, raw string) string {
	if raw != "" {
		return raw
	}
	return partition.EncodePath(path)
}

// pathKey is a path by which files are told apart: /a, file:/a and file:///a are the same file.
func pathKey(path string) string {
	if rest, ok := strings.CutPrefix(path, "file:"); ok && strings.HasPrefix(rest, "/") {
		if local, ok := strings.CutPrefix(rest, "//"); ok && strings.HasPrefix(local, "/") {
			return local
		}
		return rest
	}
	return path
}
