package scheduler

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/plugins/host"
)

// prepared remembers how tables are appended to. A write spec follows from the table's metadata and the sink alone, so that one is good for every append
// that finds the table at the same metadata: many small appends ask the catalog where the table is, and no more.
type prepared struct {
	loads flights[*catalog.Table]

	mu    sync.Mutex
	specs map[string]preparedSpec // by table and branch
}

type preparedSpec struct {
	plugin   *host.Plugin // the process: another one may know better
	metadata string       // location
	spec     *planv1.WriteSpec
}

// maxPrepared bounds how many tables are remembered.
const maxPrepared = 1000

// loadTimeout bounds a load that several appends wait for. Each of them asks by itself then, and hears what is wrong.
const loadTimeout = 30 * time.Second

func preparedKey(p *planned) string {
	return strings.Join(append([]string{p.target.entry.name, p.branch}, p.target.ident...), "\x00")
}

// preparable says whether a write is a plain append to a table of a catalog.
func (p *planned) preparable(def *sinkv1.TableDefinition) bool {
	return p.adds == nil && p.mode == sinkv1.WriteMode_WRITE_MODE_APPEND && def == nil && p.scope == nil && p.operation == "" && p.target.entry.catalog != nil
}

// preparedAppend is the remembered spec of an append, if the table is where it was then; nil: the sink has to be asked.
func (s *Server) preparedAppend(ctx context.Context, j *job, p *planned, plugin *host.Plugin) *planv1.WriteSpec {
	key := preparedKey(p)
	known, ok := s.prepared.get(key)
	if !ok || known.plugin != plugin {
		return nil
	}
	t, err := s.prepared.loads.do(ctx, key, func() (*catalog.Table, error) {
		ctx, cancel := context.WithTimeout(s.ctx, loadTimeout)
		defer cancel()
		return p.target.entry.catalog.Load(ctx, p.target.ident)
	})
	if err != nil || t.MetadataLocation != known.metadata {
		return nil
	}
	if s.checkData(p.target.entry, t.Location, known.spec.GetDataLocation()) != nil {
		return nil
	}
	s.noteTableAt(j, p.target, t.Location)
	return proto.CloneOf(known.spec)
}

func (p *prepared) get(key string) (preparedSpec, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	spec, ok := p.specs[key]
	return spec, ok
}

// remember keeps a spec that the sink has made of the table at this metadata.
func (p *prepared) remember(key string, spec preparedSpec) {
	if spec.metadata == "" {
		return
	}
	spec.spec = proto.CloneOf(spec.spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.specs == nil || len(p.specs) >= maxPrepared {
		p.specs = map[string]preparedSpec{}
	}
	p.specs[key] = spec
}
