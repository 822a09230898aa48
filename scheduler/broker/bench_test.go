package broker_test

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/storage"
)

// local does what sink does, in process: on the store and the catalog themselves.
type local struct {
	b     *bench
	store storage.Store
}

func (l *local) get(uri string) ([]byte, error) {
	o, err := l.store.Open(l.b.Context(), uri)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
}

func (l *local) put(uri string, body []byte) error {
	_, err := l.store.PutIfAbsent(l.b.Context(), uri, bytes.NewReader(body))
	return err
}

// commit is the whole commit of one staged manifest: load, parent's list, own list, catalog.
func (l *local) commit(s *sink, staged func(md table.Metadata) (*built, error)) error {
	t, err := l.b.cat.Catalog.Load(l.b.Context(), ident)
	if err != nil {
		return err
	}
	made, err := staged(t.Metadata)
	if err != nil {
		return err
	}
	if err := made.finish(s.markers, l.get, l.put); err != nil {
		return err
	}
	reqs, upds, err := made.encode()
	if err != nil {
		return err
	}
	_, err = l.b.cat.Catalog.Commit(l.b.Context(), ident, reqs, upds)
	return err
}

// brokered is the same through the host services.
func brokered(s *sink, staged func(md table.Metadata) (*built, error)) error {
	t, err := s.load()
	if err != nil {
		return err
	}
	made, err := staged(t.md)
	if err != nil {
		return err
	}
	if err := made.finish(s.markers, s.get, s.put); err != nil {
		return err
	}
	_, err = s.sendBuilt(made)
	return err
}

// BenchmarkCommit compares a one-file commit through the broker with the same commit in process, in turn, on one table with few snapshots.
// The difference of the medians is what the broker costs.
func BenchmarkCommit(b *testing.B) {
	bn := newBench(b)
	var l *local
	var in, through []time.Duration
	for n := range b.N {
		if n%10 == 0 { // few snapshots: the growth of metadata is the table's, not the broker's
			if n > 0 {
				require.NoError(b, bn.cat.Drop(b.Context(), ident))
			}
			store, err := bn.cat.Store(b.Context(), nil, bn.createTable().Location)
			require.NoError(b, err)
			l = &local{b: bn, store: store}
		}
		for i, run := range []func(*sink, func(table.Metadata) (*built, error)) error{l.commit, brokered} {
			j := bn.job()
			id := int64(1 + len(in) + len(through)<<32)
			mf, err := j.stageFor(id)
			require.NoError(b, err)
			staged := func(md table.Metadata) (*built, error) {
				return &built{id: id, md: md, seq: md.LastSequenceNumber() + 1, manifests: []iceberg.ManifestFile{mf}}, nil
			}
			start := time.Now()
			require.NoError(b, run(j.sink, staged))
			d := time.Since(start)
			if i == 0 {
				in = append(in, d)
			} else {
				through = append(through, d)
			}
			j.lease.Close()
		}
	}
	b.ReportMetric(median(in), "ms/in-process")
	b.ReportMetric(median(through), "ms/brokered")
	b.ReportMetric(median(through)-median(in), "ms/broker")
	b.ReportMetric(0, "ns/op")
}

func (j *job) stageFor(id int64) (iceberg.ManifestFile, error) {
	l, err := j.sink.load()
	if err != nil {
		return nil, err
	}
	return j.sink.stage(2, l.md.Location(), l.md.PartitionSpec(), l.md.CurrentSchema(), id)
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}
