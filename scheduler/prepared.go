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

	mu     sync.Mutex
	specs  map[string]preparedSpec  // by table and branch
	asking map[string]chan struct{} // closed when the sink has been asked; by table, branch and metadata
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
func (j *job) preparable(p *planned, def *sinkv1.TableDefinition) bool {
	return p.adds == nil && j.wapID(p) == "" && p.mode == sinkv1.WriteMode_WRITE_MODE_APPEND && def == nil && p.scope == nil && p.operation == "" && p.target.entry.catalog != nil
}

// preparedRounds bounds how often an append waits for what another one asks the sink: the table may move each time.
const preparedRounds = 3

// preparedAppend is the remembered spec of an append, if the table is where it was then; nil: the sink has to be asked. A commit lets many appends come back
// at one time, to a table that has moved: one of them asks, and the others wait for what it will remember. asked is to be called when that is so.
func (s *Server) preparedAppend(ctx context.Context, j *job, p *planned, plugin *host.Plugin) (spec *planv1.WriteSpec, asked func()) {
	for range preparedRounds {
		spec, metadata := s.rememberedAppend(ctx, j, p, plugin)
		if spec != nil || metadata == "" {
			return spec, func() {}
		}
		others, asked := s.prepared.ask(preparedKey(p) + "\x00" + metadata)
		if others == nil {
			return nil, asked
		}
		select {
		case <-others:
		case <-ctx.Done():
			return nil, func() {}
		}
	}
	return nil, func() {}
}

// ask gives the turn to ask the sink about a table, or what is closed when somebody who has it has done so.
func (p *prepared) ask(key string) (others <-chan struct{}, asked func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.asking[key]; c != nil {
		return c, nil
	}
	if p.asking == nil {
		p.asking = map[string]chan struct{}{}
	}
	c := make(chan struct{})
	p.asking[key] = c
	return nil, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.asking, key)
		close(c)
	}
}

// rememberedAppend is the remembered spec, if it is good for the table as it is now. Otherwise metadata is where the table is; empty: that is not known, or
// nothing was ever remembered of it.
func (s *Server) rememberedAppend(ctx context.Context, j *job, p *planned, plugin *host.Plugin) (spec *planv1.WriteSpec, metadata string) {
	key := preparedKey(p)
	known, ok := s.prepared.get(key)
	if !ok || known.plugin != plugin {
		return nil, ""
	}
	t, err := s.prepared.loads.do(ctx, key, func() (*catalog.Table, error) {
		ctx, cancel := context.WithTimeout(s.ctx, loadTimeout)
		defer cancel()
		return p.target.entry.catalog.Load(ctx, p.target.ident)
	})
	if err != nil {
		return nil, ""
	}
	if t.MetadataLocation != known.metadata {
		if known, ok = s.prepared.get(key); !ok || known.plugin != plugin || t.MetadataLocation != known.metadata { // remembered meanwhile
			return nil, t.MetadataLocation
		}
	}
	if s.checkData(p.target.entry, t.Location, known.spec.GetDataLocation()) != nil {
		return nil, ""
	}
	s.noteTableAt(j, p.target, t.Location)
	return proto.CloneOf(known.spec), t.MetadataLocation
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
