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

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// may says what the scheduler has to be allowed to do below a warehouse, and what S3's policies call it.
func (r *run) may(do, actions string) string {
	who := "the scheduler has to be allowed to "
	if r.target.Vended {
		who, do = "what the catalog's server gives has to allow the scheduler to ", strings.Replace(do, "below the warehouse", "below the table", 1)
	}
	do = strings.Replace(do, "below the warehouse", "below the "+r.places, 1)
	text := who + do
	if r.scheme == uri.S3 {
		text += ": " + actions
	}
	return text
}

func (r *run) mayWrite() string { return r.may("write below the warehouse", "s3:PutObject") }
func (r *run) mayRead() string  { return r.may("read below the warehouse", "s3:GetObject") }

// tooFarOff is how far clocks may be apart: stores refuse signatures at 15 minutes.
const tooFarOff = 5 * time.Minute

// place is the store that is tried, and what was written there.
type place struct {
	storage.Store
	prober  storage.Prober // nil: a local place
	signer  storage.Signer // nil: likewise
	bucket  string
	prefix  string
	file    string // that is there
	body    []byte // of it
	made    []string
	mayList bool
}

// name is a new one below the prefix, which is removed at the end.
func (p *place) name(rel string) string {
	name := storage.Join(p.prefix, rel)
	p.made = append(p.made, name)
	return name
}

// storage tries the store at a location: that of a table, with what the catalog gives for it, or that of the warehouse.
func (r *run) storage(open storage.OpenerFunc, location string) {
	p := &place{body: []byte("signet check\n"), mayList: true}
	at, unparsed := uri.Parse(location)
	r.scheme = at.Scheme
	if !r.step("open storage", "check "+r.setting(r.places)+", and "+r.setting("properties")+" of the store", func() (_ string, err error) {
		p.Store, err = open(r.ctx, location)
		return location, err
	}) {
		return
	}
	nonce := make([]byte, 8)
	_, _ = rand.Read(nonce) // never fails
	p.prefix = storage.Join(location, Directory+hex.EncodeToString(nonce))
	p.prober, _ = p.Store.(storage.Prober)
	p.signer, _ = p.Store.(storage.Signer)
	if unparsed == nil && at.Remote() {
		p.bucket, r.where = at.Authority, r.bucket(at.Authority)
	}
	if p.prober != nil && !r.reach(p) {
		return
	}
	defer r.remove(p)
	p.file = p.name("a")
	if !r.step("write", r.mayWrite(), func() (string, error) {
		_, err := p.PutIfAbsent(r.ctx, p.file, bytes.NewReader(p.body))
		return "", err
	}) {
		return
	}
	r.step("write only what is not there", "Delta tables and other storage sinks commit by it, and refuse a store without it: tables of Iceberg do not need it", func() (string, error) {
		_, err := p.PutIfAbsent(r.ctx, p.file, bytes.NewReader([]byte("another")))
		switch {
		case errors.Is(err, storage.ErrExists):
			return "", nil
		case err != nil:
			return "", err
		}
		return "", errors.New("the store replaces a file that exists, though it is asked not to (If-None-Match)")
	})
	readable := r.step("read", r.mayRead(), func() (string, error) { return "", readBack(r.ctx, p, p.file, p.body) })
	r.list(p)
	if p.signer != nil {
		r.executors(p, readable)
	}
}

// bucket says where a bucket is looked for. The names of Azure's containers say it.
func (r *run) bucket(name string) string {
	if r.scheme != uri.S3 {
		return "bucket " + name
	}
	endpoint, region := r.target.Endpoint, r.target.Region
	if endpoint == "" {
		endpoint = "AWS"
	}
	if region == "" {
		region = "us-east-1"
	}
	return fmt.Sprintf("bucket %s at %s, region %s", name, endpoint, region)
}

// reach finds out, before anything is written, whether the store is there, knows the account, and lets it remove what it will write.
func (r *run) reach(p *place) bool {
	if !r.step("reach the bucket", "check "+r.setting("secret"), func() (string, error) {
		err := p.List(r.ctx, p.prefix, func(storage.Info) error { return nil })
		if e := new(objects.Error); errors.As(err, &e) && e.Code == "AccessDenied" { // it is there, and knows who asks
			p.mayList = false
			return "", nil
		}
		return "", err
	}) {
		return false
	}
	r.step("clock", "set this machine's clock: the scheduler goes by the store's, but what else signs here is refused", func() (string, error) {
		ahead := p.prober.Ahead()
		way := "ahead of"
		if ahead < 0 {
			way = "behind"
		}
		off := ahead.Abs().Round(10*time.Second).String() + " " + way
		switch {
		case ahead.Abs() > tooFarOff:
			return "", fmt.Errorf("the store's clock is %s this machine's: %w", off, objects.ErrSkew)
		case ahead != 0:
			return "the store's is " + off + " this machine's", nil
		}
		return "", nil
	})
	return r.step("may remove", r.may("remove", "s3:DeleteObject")+"; nothing was written, as it would stay", func() (string, error) { return "", p.prober.Forget(r.ctx, storage.Join(p.prefix, "none")) })
}

func (r *run) list(p *place) {
	p.mayList = r.step("list", r.may("list", "s3:ListBucket")+"; clean-up and orphan removal go by it", func() (string, error) {
		n := 0
		err := p.List(r.ctx, p.prefix, func(storage.Info) error { n++; return nil })
		if err == nil && n != 1 {
			err = fmt.Errorf("%d files are listed where one was written", n)
		}
		return "", err
	})
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
func (r *run) remove(p *place) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), cleanUp)
	defer cancel()
	r.step("remove", "remove what is left of "+p.prefix+" by hand", func() (string, error) {
		if p.prober != nil {
			for _, name := range p.made { // by name: an account that may not list can clean up, too
				if err := p.prober.Forget(ctx, name); err != nil {
					return "", err
				}
			}
			if !p.mayList {
				return fmt.Sprintf("%d files, by their names", len(p.made)), nil
			}
		}
		if _, err := p.RemoveAll(ctx, p.prefix); err != nil {
			return "", err
		}
		var left []string
		if err := p.List(ctx, p.prefix, func(i storage.Info) error { left = append(left, i.URI); return nil }); err != nil {
			return "", err
		}
		if len(left) > 0 {
			return "", fmt.Errorf("there are still %s", strings.Join(left, ", "))
		}
		return "", nil
	})
}
