package iceberg

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Table properties that the sink acts on.
const (
	propTargetFileSize = "write.target-file-size-bytes"
	propCodec          = "write.parquet.compression-codec"
	propCodecLevel     = "write.parquet.compression-level"
	propRowGroupBytes  = "write.parquet.row-group-size-bytes"
	propRowGroupRows   = "write.parquet.row-group-limit"
	propDistribution   = "write.distribution-mode"
	propPageVersion    = "write.parquet.page-version"
	propDataPath       = "write.data.path"
	propFolderPath     = "write.folder-storage.path" // its old name
	propFormat         = "write.format.default"
	propManifestSize   = "commit.manifest.target-size-bytes"
	propMetricsDefault = "write.metadata.metrics.default"
	propMetricsColumn  = "write.metadata.metrics.column."
	propMetricsMax     = "write.metadata.metrics.max-inferred-column-defaults"
	propFormatVersion  = "format-version"
	propEncryptionKey  = "encryption.key-id"
	propSplice         = "signet.splice.enabled"
	propAcceptAny      = "signet.accept-any-schema"            // the scheduler's business
	propNoExpiry       = "signet.maintenance.expire-snapshots" // the same
)

const (
	defaultTargetFileSize = 512 << 20
	defaultManifestSize   = 8 << 20
	defaultCodec          = "zstd"
)

var codecs = []string{"zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"}

// levels are the compression levels that exist.
var levels = map[string][2]int64{"zstd": {1, 22}, "gzip": {1, 9}, "brotli": {0, 11}}

// properties reads table properties and collects what it has to say about them.
type properties struct {
	all      map[string]string
	warnings []string
}

func (p *properties) warn(key, why string) {
	p.warnings = append(p.warnings, fmt.Sprintf("table property %s=%s is not honoured: %s", key, p.all[key], why))
}

// positive reads a positive number; absent or unusable: the fallback.
func (p *properties) positive(key string, fallback int64) int64 {
	text, ok := p.all[key]
	if !ok {
		return fallback
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 1 {
		p.warn(key, "it must be a positive number")
		return fallback
	}
	return n
}

// fileRules are the rules for data files, without metrics modes.
func (p *properties) fileRules() *planv1.FileRules {
	r := &planv1.FileRules{
		TargetFileSizeBytes: p.positive(propTargetFileSize, defaultTargetFileSize), Codec: defaultCodec,
		RowGroupBytes: p.positive(propRowGroupBytes, 0), RowGroupRows: p.positive(propRowGroupRows, 0),
	}
	if text, ok := p.all[propSplice]; ok {
		on, err := strconv.ParseBool(strings.TrimSpace(text))
		if r.NoSplice = err == nil && !on; err != nil {
			p.warn(propSplice, "it must be true or false")
		}
	}
	c, ok := p.all[propCodec]
	r.AnyCodec = !ok
	if ok {
		if r.Codec = strings.ToLower(strings.TrimSpace(c)); r.Codec == "none" {
			r.Codec = "uncompressed"
		}
		if !slices.Contains(codecs, r.Codec) {
			p.warn(propCodec, "files are written with "+defaultCodec+"; known are "+strings.Join(codecs, ", "))
			r.Codec = defaultCodec
		}
	}
	if text, ok := p.all[propCodecLevel]; ok {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		limits, has := levels[r.Codec]
		switch {
		case !has:
			p.warn(propCodecLevel, r.Codec+" has no levels")
		case err != nil || n < limits[0] || n > limits[1]:
			p.warn(propCodecLevel, fmt.Sprintf("%s has levels %d to %d", r.Codec, limits[0], limits[1]))
		default:
			r.CodecLevel = int32(n)
		}
	}
	switch strings.ToLower(p.all[propPageVersion]) {
	case "":
	case "v1", "v2":
		r.ParquetVersion = strings.ToUpper(p.all[propPageVersion])
	default:
		p.warn(propPageVersion, "it must be v1 or v2")
	}
	return r
}

// distribution is the mode of write.distribution-mode.
func (p *properties) distribution() string {
	switch mode := strings.ToLower(strings.TrimSpace(p.all[propDistribution])); mode {
	case "", "none", "hash", "range":
		return mode
	}
	p.warn(propDistribution, "it must be none, hash or range")
	return ""
}

// dataLocation is where data files go.
func (p *properties) dataLocation(tableLocation string) string {
	for _, key := range []string{propDataPath, propFolderPath} {
		if path := strings.TrimRight(p.all[key], "/"); path != "" {
			return path
		}
	}
	return strings.TrimRight(tableLocation, "/") + "/data"
}

// unhonoured names properties that ask for something that neither the sink nor an executor does. A key that ends in a dot stands for all that begin with it.
var unhonoured = []struct{ key, why string }{
	{"commit.retry.", "the scheduler decides how often a commit is tried"},
	{"write.delete.format.default", "position delete files are written as Parquet"},
	{"write.delete.granularity", "each position delete file is about one data file"},
	{"write.location-provider.impl", "files are laid out by job and task"},
	{"write.metadata.path", "Iceberg manifests are written below the table's location"},
	{"write.object-storage.enabled", "files are laid out by job and task"},
	{"write.object-storage.partitioned-paths", "files are laid out by job and task"},
	{"write.object-storage.path", "files are laid out by job and task"},
	{"write.parquet.bloom-filter-enabled.column.", "bloom filters are not written"},
	{"write.parquet.bloom-filter-fpp.column.", "bloom filters are not written"},
	{"write.parquet.bloom-filter-max-bytes", "bloom filters are not written"},
	{"write.parquet.bloom-filter-ndv.column.", "bloom filters are not written"},
	{"write.parquet.dict-enabled", "the executor chooses the encoding"},
	{"write.parquet.dict-size-bytes", "the executor chooses the encoding"},
	{"write.parquet.page-row-limit", "the executor chooses the size of pages"},
	{"write.parquet.page-size-bytes", "the executor chooses the size of pages"},
	{"write.parquet.shred-variants", "variants are not written"},
	{"write.parquet.stats-enabled.column.", "the executor writes statistics of all columns"},
	{"write.summary.partition-limit", "snapshot summaries do not list partitions"},
}

// harmless are values by which a property of the list above asks for what happens anyway.
var harmless = map[string]string{
	"write.delete.format.default": "parquet", "write.delete.granularity": "file", "write.object-storage.enabled": "false",
	"write.summary.partition-limit": "0", "write.parquet.shred-variants": "false", propFormat: "parquet",
}

// review warns of everything that is not honoured. It is called once, after the other readers.
func (p *properties) review() {
	for _, key := range slices.Sorted(maps.Keys(p.all)) {
		if strings.EqualFold(p.all[key], harmless[key]) && harmless[key] != "" {
			continue
		}
		if key == propFormat {
			p.warn(key, "files are written as Parquet")
		}
		for _, u := range unhonoured {
			if key == u.key || strings.HasSuffix(u.key, ".") && strings.HasPrefix(key, u.key) {
				if on := strings.HasSuffix(key, ".enabled") || strings.Contains(key, "-enabled.column."); on && strings.EqualFold(p.all[key], "false") {
					continue
				}
				p.warn(key, u.why)
			}
		}
		if strings.HasPrefix(key, "write.parquet.") && !knownParquet(key) {
			p.warn(key, "Signet does not know it")
		}
	}
}

func knownParquet(key string) bool {
	switch key {
	case propCodec, propCodecLevel, propRowGroupBytes, propRowGroupRows, propPageVersion,
		"write.parquet.row-group-check-min-record-count", "write.parquet.row-group-check-max-record-count":
		return true
	}
	for _, u := range unhonoured {
		if key == u.key || strings.HasSuffix(u.key, ".") && strings.HasPrefix(key, u.key) {
			return true
		}
	}
	return false
}
