// Package checkup tries what a scheduler will need of a catalog and of the store its tables are in, step by step, and says of the first that fails what is wrong and what to do.
//
// Everything it writes lies in one directory of its own below the warehouse, .signet-check-…, and is removed again, also after a failure. It changes nothing in a catalog.
package checkup

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
	Skipped State = "skipped"
)

// Step is one thing that was tried.
type Step struct {
	Catalog string `json:"catalog"`
	Name    string `json:"step"`
	State   State  `json:"state"`
	Detail  string `json:"detail,omitempty"` // what was found, or why it failed or was left out
	Fix     string `json:"fix,omitempty"`    // what to do
	Millis  int64  `json:"millis"`
}

// Target is what is checked.
type Target struct {
	Name string
	// Warehouse is the URI that new tables go below; "" if the catalog alone knows it.
	Warehouse string
	// Open opens the catalog.
	Open func(ctx context.Context) (catalog.Catalog, error)
}

// Directory begins the name of the directory below a warehouse in which a check writes.
const Directory = ".signet-check-"

// cleanUp is how long removing may take after the check was cut off.
const cleanUp = 20 * time.Second

// Run checks a catalog, and reports each step as it ends. It answers whether none has failed.
func Run(ctx context.Context, t Target, report func(Step)) bool {
	r := &run{ctx: ctx, target: t, report: report, ok: true}
	r.catalog()
	return r.ok
}

type run struct {
	ctx    context.Context //nolint:containedctx // of one run
	target Target
	report func(Step)
	ok     bool
}

// step tries one thing. Its error ends what depends on it.
func (r *run) step(name, fix string, f func() (string, error)) bool {
	start := time.Now()
	detail, err := f()
	s := Step{Catalog: r.target.Name, Name: name, State: OK, Detail: detail, Millis: time.Since(start).Milliseconds()}
	if err != nil {
		s.State, s.Detail, s.Fix, r.ok = Failed, strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' }), " "), fix, false
	}
	r.report(s)
	return err == nil
}

func (r *run) skip(name, why string) {
	r.report(Step{Catalog: r.target.Name, Name: name, State: Skipped, Detail: why})
}

func (r *run) catalog() {
	var c catalog.Catalog
	if !r.step("open", "check uri and secret of the catalog, and that this machine reaches it", func() (_ string, err error) {
		c, err = r.target.Open(r.ctx)
		return "", err
	}) {
		return
	}
	defer c.Close()
	if !r.step("list namespaces", "the catalog has to answer, and the scheduler's account has to be allowed to list", func() (string, error) {
		all, err := c.Namespaces(r.ctx)
		return fmt.Sprintf("%d", len(all)), err
	}) {
		return
	}
	if !strings.Contains(r.target.Warehouse, "://") {
		r.skip("storage", "the catalog chooses a place, and with credentials.mode vended what reaches it, for each table")
		return
	}
	r.storage(c)
}

func (r *run) storage(c catalog.Catalog) {
	var store storage.Store
	if !r.step("open storage", "check warehouse, and the properties of the store", func() (_ string, err error) {
		store, err = c.Store(r.ctx, nil, r.target.Warehouse)
		return r.target.Warehouse, err
	}) {
		return
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	prefix := storage.Join(r.target.Warehouse, Directory+hex.EncodeToString(id))
	defer r.remove(store, prefix)
	file, body := storage.Join(prefix, "a"), []byte("signet check\n")
	if !r.step("write", "the scheduler has to be allowed to write below the warehouse: s3:PutObject", func() (string, error) {
		_, err := store.PutIfAbsent(r.ctx, file, bytes.NewReader(body))
		return "", err
	}) {
		return
	}
	r.step("write only what is not there", "storage sinks commit by it, and refuse a store without it: tables of Iceberg do not need it", func() (string, error) {
		_, err := store.PutIfAbsent(r.ctx, file, bytes.NewReader([]byte("another")))
		switch {
		case errors.Is(err, storage.ErrExists):
			return "", nil
		case err != nil:
			return "", err
		}
		return "", errors.New("the store replaces a file that exists, though it is asked not to (If-None-Match)")
	})
	r.step("read", "the scheduler has to be allowed to read below the warehouse: s3:GetObject", func() (string, error) { return "", readBack(r.ctx, store, file, body) })
	r.step("list", "the scheduler has to be allowed to list: s3:ListBucket; clean-up and orphan removal go by it", func() (string, error) {
		n := 0
		err := store.List(r.ctx, prefix, func(storage.Info) error { n++; return nil })
		if err == nil && n != 1 {
			err = fmt.Errorf("%d files are listed where one was written", n)
		}
		return "", err
	})
	if !strings.HasPrefix(r.target.Warehouse, "file://") {
		r.skip("what executors get", "requests that are signed for them, and sessions of credentials.role_arn, are not tried; the first INSERT shows")
	}
}

func readBack(ctx context.Context, store storage.Store, file string, body []byte) error {
	o, err := store.Open(ctx, file)
	if err != nil {
		return err
	}
	defer o.Close()
	got := make([]byte, len(body)+1)
	n, err := o.ReadAt(got, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(got[:n], body) {
		return fmt.Errorf("%s was read back as something else than what was written", file)
	}
	return nil
}

// remove takes everything back, also when the check was cut off.
func (r *run) remove(store storage.Store, prefix string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), cleanUp)
	defer cancel()
	r.step("remove", "the scheduler has to be allowed to delete: s3:DeleteObject; remove what is left of "+prefix+" by hand", func() (string, error) {
		if _, err := store.RemoveAll(ctx, prefix); err != nil {
			return "", err
		}
		left := 0
		if err := store.List(ctx, prefix, func(storage.Info) error { left++; return nil }); err != nil {
			return "", err
		}
		if left > 0 {
			return "", fmt.Errorf("%d files are still there", left)
		}
		return "", nil
	})
}
