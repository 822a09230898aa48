package delta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/delta/log"
)

// refHeader is the first line of a staged reference, and says what follows it: the lines of add actions as the log will have them. All of it is compressed, since the
// host journals it.
type refHeader struct {
	TableUUID string     `json:"table"`
	JobID     string     `json:"job"`
	SchemaID  int32      `json:"schema"`
	SpecID    int32      `json:"spec"`
	Files     int64      `json:"files"`
	Rows      int64      `json:"rows"`
	Bytes     int64      `json:"bytes"`
	Replaced  []replaced `json:"replaced,omitempty"`
}

// replaced is a file that the commit removes.
type replaced struct {
	Path    string `json:"path"` // a URI
	Records int64  `json:"records"`
	Deleted int64  `json:"deleted,omitempty"`
	Updated int64  `json:"updated,omitempty"`
}

// maxRefBytes is the size of the largest reference before it is compressed, and a bound for what is read of one.
const maxRefBytes = 64 << 20

// errRef: a reference is none that Stage has made.
var errRef = errors.New("the staged reference is not one that this sink has made for the write")

var (
	encoder = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) })
	decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxRefBytes))
	})
)

// encodeRef compresses a header and lines of adds.
func encodeRef(h *refHeader, lines []byte) (*sinkv1.StagedRef, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	enc, err := encoder()
	if err != nil {
		return nil, err
	}
	raw := append(append(head, '\n'), lines...)
	return &sinkv1.StagedRef{Data: enc.EncodeAll(raw, nil)}, nil
}

// unpack gives the header of a reference and its lines. raw is used for what they are parts of, and comes back.
func unpack(in *sinkv1.StagedRef, raw []byte) (head, lines, grown []byte, err error) {
	dec, err := decoder()
	if err != nil {
		return nil, nil, raw, err
	}
	if raw, err = dec.DecodeAll(in.GetData(), raw[:0]); err != nil {
		return nil, nil, raw, fmt.Errorf("%w: %w", errRef, err)
	}
	head, lines, _ = bytes.Cut(raw, []byte{'\n'})
	return head, lines, raw, nil
}

// readRef reads a reference of a job, and its adds without their statistics. raw is as in unpack; what is read is no part of it.
func readRef(p *plan, job string, in *sinkv1.StagedRef, raw *[]byte) (*refHeader, []*log.Add, error) {
	head, lines, grown, err := unpack(in, *raw)
	if err != nil {
		return nil, nil, err
	}
	*raw = grown
	h := &refHeader{}
	if err := json.Unmarshal(head, h); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errRef, err)
	}
	if h.TableUUID != p.GetTableUuid() || h.JobID != job || h.SchemaID != p.GetSchemaId() || h.SpecID != p.GetSpecId() {
		return nil, nil, fmt.Errorf("%w: it is of job %s, table %s, schema %d, spec %d; wanted %s, %s, %d, %d", errRef, h.JobID, h.TableUUID, h.SchemaID, h.SpecID,
			job, p.GetTableUuid(), p.GetSchemaId(), p.GetSpecId())
	}
	if len(lines) == 0 {
		return h, nil, nil
	}
	adds, err := log.ParseAdds(lines)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errRef, err)
	}
	if int64(len(adds)) != h.Files {
		return nil, nil, fmt.Errorf("%w: it holds %d files, and says %d", errRef, len(adds), h.Files)
	}
	return h, adds, nil
}
