package iceberg

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/signet-io/signet/internal/icemanifest"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// read reads a manifest of the head, whose entries will stand in one that this commit writes. Its header is mended first: other writers leave keys out, or
// put the schema of the manifest's entries where the table's belongs (duckdb/duckdb-iceberg#799), which would go on from manifest to manifest.
func (r *removal) read(ctx context.Context, m *icefile.Manifest) (*icemanifest.Manifest, error) {
	held, err := r.a.read(ctx, m)
	if err == nil {
		mendHeader(held.Meta, m.SpecID, r.base)
	}
	return held, err
}

// mendHeader makes a manifest's header say what it must. What the list and the table's metadata say goes before what the header says.
func mendHeader(header map[string]string, specID int32, base *meta.Metadata) {
	header["partition-spec-id"] = strconv.Itoa(int(specID))
	if spec, err := base.Spec(specID); err == nil && spec != nil {
		header["partition-spec"] = string(spec.JSON)
	}
	var is struct {
		Type   string            `json:"type"`
		ID     *int32            `json:"schema-id"`
		Fields []json.RawMessage `json:"fields"`
	}
	if json.Unmarshal([]byte(header["schema"]), &is) == nil && is.Type == "struct" && len(is.Fields) > 0 {
		if header["schema-id"] == "" && is.ID != nil {
			header["schema-id"] = strconv.Itoa(int(*is.ID))
		}
		return
	}
	if current, err := base.CurrentSchema(); err == nil && current != nil {
		header["schema"], header["schema-id"] = string(current.JSON), strconv.Itoa(int(current.ID))
	}
}
