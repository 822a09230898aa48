package log

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/signet-io/signet/sinks/delta/log/partition"
)

// AppendAction writes an action as one line with its end. An action without a member, text that is not UTF-8, and an Extra that names a field which is set already are
// errors; dst is then as it was.
func AppendAction(dst []byte, a *Action) ([]byte, error) {
	w := &jsonWriter{out: append(dst, '{')}
	switch {
	case a.CommitInfo != nil:
		w.commitInfo(a.CommitInfo)
	case a.Protocol != nil:
		w.protocol(a.Protocol)
	case a.Metadata != nil:
		w.metadata(a.Metadata)
	case a.Add != nil:
		w.add(a.Add)
	case a.Remove != nil:
		w.remove(a.Remove)
	case a.Txn != nil:
		w.open("txn").text("appId", a.Txn.AppID).integer("version", &a.Txn.Version).integer("lastUpdated", a.Txn.LastUpdated).close(a.Txn.Extra)
	case a.DomainMetadata != nil:
		d := a.DomainMetadata
		w.open("domainMetadata").text("domain", d.Domain).text("configuration", d.Configuration).boolean("removed", &d.Removed).close(d.Extra)
	case a.CDC != nil:
		c := a.CDC
		w.open("cdc").text("path", rawPath(c.Path, c.RawPath)).texts("partitionValues", c.PartitionValues, true).integer("size", &c.Size).
			boolean("dataChange", &c.DataChange).texts("tags", c.Tags, false).close(c.Extra)
	case a.Sidecar != nil:
		s := a.Sidecar
		w.open("sidecar").text("path", partition.EncodePath(s.Path)).integer("sizeInBytes", &s.SizeInBytes).integer("modificationTime", &s.ModificationTime).
			texts("tags", s.Tags, false).close(s.Extra)
	case a.Checkpoint != nil:
		w.open("checkpointMetadata").integer("version", &a.Checkpoint.Version).texts("tags", a.Checkpoint.Tags, false).close(a.Checkpoint.Extra)
	case a.Unknown != nil:
		w.key(a.Unknown.Name)
		w.raw(a.Unknown.Name, a.Unknown.Body)
	default:
		w.err = errors.New("an action without a member")
	}
	if w.err != nil {
		return dst, fmt.Errorf("action that cannot be written: %w", w.err)
	}
	return append(w.out, '}', '\n'), nil
}

func (w *jsonWriter) commitInfo(c *CommitInfo) {
	w.open("commitInfo").integer("inCommitTimestamp", c.InCommitTimestamp).integer("timestamp", c.Timestamp)
	if c.Operation != "" {
		w.text("operation", c.Operation)
	}
	w.settings("operationParameters", c.OperationParameters, false).integer("readVersion", c.ReadVersion).optional("isolationLevel", c.IsolationLevel).
		boolean("isBlindAppend", c.IsBlindAppend).settings("operationMetrics", c.OperationMetrics, false).optional("userMetadata", c.UserMetadata).
		optional("engineInfo", c.EngineInfo).optional("txnId", c.TxnID).close(c.Extra)
}

func (w *jsonWriter) protocol(p *Protocol) {
	reader, writer := int64(p.MinReaderVersion), int64(p.MinWriterVersion)
	w.open("protocol").integer("minReaderVersion", &reader).integer("minWriterVersion", &writer).list("readerFeatures", p.ReaderFeatures).
		list("writerFeatures", p.WriterFeatures).close(p.Extra)
}

func (w *jsonWriter) metadata(m *Metadata) {
	w.open("metaData").text("id", m.ID).optional("name", m.Name).optional("description", m.Description).key("format")
	format := &jsonWriter{out: append(w.out, '{'), err: w.err}
	format.text("provider", m.Format.Provider).settings("options", m.Format.Options, true).close(nil)
	w.out, w.err = format.out, format.err
	columns := m.PartitionColumns
	if columns == nil {
		columns = []string{}
	}
	w.text("schemaString", m.SchemaString).list("partitionColumns", columns).settings("configuration", m.Configuration, true).
		integer("createdTime", m.CreatedTime).close(m.Extra)
}

func (w *jsonWriter) add(a *Add) {
	w.open("add").text("path", rawPath(a.Path, a.RawPath)).texts("partitionValues", a.PartitionValues, true).integer("size", &a.Size).
		integer("modificationTime", &a.ModificationTime).boolean("dataChange", &a.DataChange).optional("stats", a.Stats).texts("tags", a.Tags, false).
		deletionVector(a.DeletionVector).integer("baseRowId", a.BaseRowID).integer("defaultRowCommitVersion", a.DefaultRowCommitVersion).
		optional("clusteringProvider", a.ClusteringProvider).close(a.Extra)
}

func (w *jsonWriter) remove(m *Remove) {
	w.open("remove").text("path", rawPath(m.Path, m.RawPath)).integer("deletionTimestamp", m.DeletionTimestamp).boolean("dataChange", &m.DataChange).
		boolean("extendedFileMetadata", m.ExtendedFileMetadata).texts("partitionValues", m.PartitionValues, m.ExtendedFileMetadata != nil && *m.ExtendedFileMetadata).
		integer("size", m.Size).optional("stats", m.Stats).texts("tags", m.Tags, false).deletionVector(m.DeletionVector).integer("baseRowId", m.BaseRowID).
		integer("defaultRowCommitVersion", m.DefaultRowCommitVersion).close(m.Extra)
}

// jsonWriter appends the members of an action; a nil value is left out. The first error stays.
type jsonWriter struct {
	out   []byte
	names []string   // members of the action so far, for Extra
	few   [16]string // where the names are, for most actions
	err   error
}

func (w *jsonWriter) open(kind string) *jsonWriter {
	w.key(kind)
	w.names = w.few[:0]
	w.out = append(w.out, '{')
	return w
}

func (w *jsonWriter) close(extra Extra) {
	for _, name := range sortedNames(extra) {
		if slices.Contains(w.names, name) {
			w.err = errors.Join(w.err, fmt.Errorf("field %q comes twice", name))
		}
		w.key(name)
		w.raw(name, extra[name])
	}
	w.out = append(w.out, '}')
}

func (w *jsonWriter) raw(name string, v json.RawMessage) {
	if !json.Valid(v) || slices.Contains(v, '\n') {
		w.err = errors.Join(w.err, fmt.Errorf("field %q is not JSON in one line", name))
	}
	w.out = append(w.out, v...)
}

func (w *jsonWriter) key(name string) *jsonWriter {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.names = append(w.names, name)
	w.quote(name)
	w.out = append(w.out, ':')
	return w
}

func (w *jsonWriter) text(name, v string) *jsonWriter {
	w.key(name).quote(v)
	return w
}

func (w *jsonWriter) optional(name string, v *string) *jsonWriter {
	if v != nil {
		w.text(name, *v)
	}
	return w
}

func (w *jsonWriter) integer(name string, v *int64) *jsonWriter {
	if v != nil {
		w.key(name)
		w.out = strconv.AppendInt(w.out, *v, 10)
	}
	return w
}

func (w *jsonWriter) boolean(name string, v *bool) *jsonWriter {
	if v != nil {
		w.key(name)
		w.out = strconv.AppendBool(w.out, *v)
	}
	return w
}

func (w *jsonWriter) list(name string, v []string) *jsonWriter {
	if v == nil {
		return w
	}
	w.key(name)
	w.out = append(w.out, '[')
	for i, s := range v {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.quote(s)
	}
	w.out = append(w.out, ']')
	return w
}

// texts writes a map in the order of its names; an empty one only if always.
func (w *jsonWriter) texts(name string, v map[string]*string, always bool) *jsonWriter {
	if v == nil && !always {
		return w
	}
	w.key(name)
	w.out = append(w.out, '{')
	for i, name := range sortedNames(v) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.quote(name)
		w.out = append(w.out, ':')
		if text := v[name]; text != nil {
			w.quote(*text)
		} else {
			w.out = append(w.out, "null"...)
		}
	}
	w.out = append(w.out, '}')
	return w
}

func (w *jsonWriter) settings(name string, v map[string]string, always bool) *jsonWriter {
	if v == nil {
		return w.texts(name, nil, always)
	}
	texts := make(map[string]*string, len(v))
	for name, text := range v {
		texts[name] = &text
	}
	return w.texts(name, texts, true)
}

func (w *jsonWriter) deletionVector(d *DeletionVector) *jsonWriter {
	if d == nil {
		return w
	}
	w.key("deletionVector")
	inner := &jsonWriter{out: append(w.out, '{'), err: w.err}
	var offset *int64
	if d.Offset != nil {
		n := int64(*d.Offset)
		offset = &n
	}
	size := int64(d.SizeInBytes)
	inner.text("storageType", d.StorageType).text("pathOrInlineDv", d.PathOrInlineDv).integer("offset", offset).integer("sizeInBytes", &size).
		integer("cardinality", &d.Cardinality).integer("maxRowIndex", d.MaxRowIndex).close(d.Extra)
	w.out, w.err = inner.out, inner.err
	return w
}

func (w *jsonWriter) quote(s string) {
	if !utf8.ValidString(s) {
		w.err = errors.Join(w.err, fmt.Errorf("%.100q is not UTF-8", s))
	}
	w.out = append(w.out, '"')
	from := 0
	for i := range len(s) {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		w.out = append(w.out, s[from:i]...)
		from = i + 1
		switch b {
		case '"', '\\':
			w.out = append(w.out, '\\', b)
		case '\n':
			w.out = append(w.out, '\\', 'n')
		case '\t':
			w.out = append(w.out, '\\', 't')
		case '\r':
			w.out = append(w.out, '\\', 'r')
		default:
			w.out = append(w.out, '\\', 'u', '0', '0', "0123456789abcdef"[b>>4], "0123456789abcdef"[b&15])
		}
	}
	w.out = append(append(w.out, s[from:]...), '"')
}

func sortedNames[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
