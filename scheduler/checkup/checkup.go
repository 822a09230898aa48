// Package checkup tries what a scheduler and its executors will need of a catalog and of the store its tables are in, step by step, and says of each that fails what is
// wrong, where, and what to do.
//
// Everything it writes lies in one directory of its own below the warehouse, or where a catalog vends credentials, below a table, .signet-check-…, and is removed again, also after a failure: it writes nothing to a store that
// does not let it remove. It changes nothing in a catalog.
package checkup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// State is how a step ended.
type State string

// States of steps.
const (
	OK      State = "ok"
	Failed  State = "failed"
	Warning State = "warning" // it works, and somebody should know
	Skipped State = "skipped"
)

// Step is one thing that was tried.
type Step struct {
	Catalog string `json:"catalog"` // or the setting of a place that statements read, such as sources.remote[0]
	Name    string `json:"step"`
	State   State  `json:"state"`
	Detail  string `json:"detail,omitempty"` // what was found, or why it failed or was left out
	Where   string `json:"where,omitempty"`  // of what failed in a store: bucket, endpoint, region
	Fix     string `json:"fix,omitempty"`    // what to do
	Millis  int64  `json:"millis"`
}

// Target is what is checked.
type Target struct {
	Name string
	// Warehouse is the URI that new tables go below; "" if the catalog alone knows it. With Storage it is the catalog's root.
	Warehouse string
	// Storage opens a place of a catalog that is nothing but storage; nil: Open opens the catalog.
	Storage storage.OpenerFunc
	// Open opens the catalog.
	Open func(ctx context.Context) (catalog.Catalog, error)
	// Endpoint and Region of the store, as they are configured.
	Endpoint, Region string
	// Session makes one of the role that executors write with, bounded to a prefix, and answers the properties that lead to the store with it; nil properties: no policy can
	// bound one to it. A nil Session: there is no role.
	Session func(ctx context.Context, prefix string) (map[string]string, error)
	// Vended says that the catalog gives credentials for each of its tables, and that these are used.
	Vended bool
	// Restricted says that there are permissions, and Principals what each may do by them.
	Restricted bool
	Principals []Principal
}

// Principal is one that permissions are about, or that the scheduler knows.
type Principal struct {
	Name  string
	Known bool     // by a token, a certificate or an issuer
	May   []string // what it may do, and where; empty: nothing
}

// Directory begins the name of the directory below a warehouse in which a check writes.
const Directory = ".signet-check-"

// cleanUp is how long removing may take after the check was cut off.
const cleanUp = 20 * time.Second

// Run checks a catalog, and reports each step as it ends. It answers whether none has failed.
func Run(ctx context.Context, t Target, report func(Step)) bool {
	r := &run{ctx: ctx, target: t, report: report, ok: true, key: "catalogs." + t.Name, places: "warehouse"}
	r.catalog()
	r.permissions()
	return r.ok
}

type run struct {
	ctx    context.Context //nolint:containedctx // of one run
	target Target
	report func(Step)
	key    string // of the settings
	where  string // what steps are about
	places string // the setting, below key, that says where the store's files are
	scheme string // of the warehouse; empty: it is none
	ok     bool
}

// step tries one thing. Its error ends what depends on it. fix is what to do where the error does not say more.
func (r *run) step(name, fix string, f func() (string, error)) bool {
	start := time.Now()
	detail, err := f()
	s := Step{Catalog: r.target.Name, Name: name, State: OK, Detail: detail, Millis: time.Since(start).Milliseconds()}
	if err != nil {
		s.State, s.Detail, s.Where, s.Fix, r.ok = Failed, oneLine(err.Error()), r.where, r.mend(err, fix), false
	}
	r.report(s)
	return err == nil
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

func (r *run) skip(name, why string) {
	r.report(Step{Catalog: r.target.Name, Name: name, State: Skipped, Detail: why})
}

func (r *run) warn(name, what, fix string) {
	r.report(Step{Catalog: r.target.Name, Name: name, State: Warning, Detail: what, Where: r.where, Fix: fix})
}

// setting names one of the catalog's.
func (r *run) setting(name string) string { return r.key + "." + name }

func (r *run) catalog() {
	if r.target.Storage != nil {
		r.places = "root"
		r.storage(r.target.Storage, r.target.Warehouse)
		return
	}
	var c catalog.Catalog
	if !r.step("open", "check "+r.setting("uri")+" and "+r.setting("secret")+", and that this machine reaches it", func() (_ string, err error) {
		c, err = r.target.Open(r.ctx)
		return "", err
	}) {
		return
	}
	defer c.Close()
	if !r.step("list namespaces", "the catalog of "+r.setting("uri")+" has to answer, and the scheduler's account has to be allowed to list", func() (string, error) {
		all, err := c.Namespaces(r.ctx)
		return fmt.Sprintf("%d", len(all)), err
	}) {
		return
	}
	switch {
	case r.target.Vended:
		r.vended(c)
	case strings.Contains(r.target.Warehouse, "://"):
		r.storage(func(ctx context.Context, location string) (storage.Store, error) { return c.Store(ctx, nil, location) }, r.target.Warehouse)
	default:
		r.skip("storage", "the catalog chooses a place for each table")
	}
}

// permissions tells what principals may do, and of those whom nobody can be.
func (r *run) permissions() {
	r.where = ""
	if !r.target.Restricted {
		r.step("permissions", "", func() (string, error) { return "there are none: everybody who is let in may do everything", nil })
		return
	}
	for _, p := range r.target.Principals {
		may := strings.Join(p.May, "; ")
		if may == "" {
			may = "nothing"
		}
		if !p.Known {
			r.warn("permissions of "+p.Name, may+"; but nobody is "+p.Name+" here", "correct "+r.setting("permissions")+", or give "+p.Name+" a token or a certificate under auth")
			continue
		}
		r.step("permissions of "+p.Name, "", func() (string, error) { return may, nil })
	}
}
