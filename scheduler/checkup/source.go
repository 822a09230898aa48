package checkup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// Source is a place that statements may read.
type Source struct {
	Setting string // that names it: sources.remote[0]
	Prefix  string // s3://bucket/prefix, or http(s)://host/path
	// Open makes a client of a bucket; nil: it is on a web server.
	Open func(bucket string) (objects.Client, error)
	// Endpoint and Region of the store, as they are configured.
	Endpoint, Region string
}

// RunSource checks a place that statements may read, and reports each step as it ends. It answers whether none has failed. It only reads.
func RunSource(ctx context.Context, s Source, report func(Step)) bool {
	r := &run{ctx: ctx, target: Target{Name: s.Setting, Endpoint: s.Endpoint, Region: s.Region}, report: report, ok: true, key: s.Setting, places: "prefix"}
	if s.Open == nil {
		r.web(s.Prefix)
	} else {
		r.objects(s)
	}
	return r.ok
}

// web looks whether a server answers. A prefix need not be a file, so that every answer will do.
func (r *run) web(prefix string) {
	r.where = prefix
	r.step("reach the server", "check "+r.setting("prefix")+", and that this machine and the executors reach the server", func() (string, error) {
		u, err := url.Parse(prefix)
		if err != nil {
			return "", errors.New("the prefix is no URL")
		}
		_, err = objects.NewWeb(func(*url.URL) error { return nil }).Head(r.ctx, u)
		if e := new(objects.Error); errors.As(err, &e) && e.Status != 0 && e.Status < http.StatusInternalServerError {
			return fmt.Sprintf("it answers %d for the prefix itself, which need not be a file", e.Status), nil
		}
		return "", err
	})
}

// errEnough ends a list.
var errEnough = errors.New("enough")

func (r *run) objects(s Source) {
	at, err := uri.Parse(s.Prefix)
	if err != nil {
		r.step("open", "correct "+r.setting("prefix"), func() (string, error) { return "", err })
		return
	}
	r.scheme = at.Scheme
	r.where = r.bucket(at.Authority)
	var client objects.Client
	if !r.step("open", "check "+r.setting("properties")+" and "+r.setting("secret"), func() (_ string, err error) {
		client, err = s.Open(at.Authority)
		return s.Prefix, err
	}) {
		return
	}
	key := ""
	if !r.step("list", "the account of "+r.setting("secret")+" has to be allowed to list below the prefix: s3:ListBucket; patterns and directories go by it", func() (string, error) {
		prefix := at.Path()
		if prefix != "" {
			prefix += "/"
		}
		err := client.List(r.ctx, prefix, "", func(i objects.Info) error {
			if i.Size == 0 {
				return nil
			}
			key = i.Key
			return errEnough
		})
		switch {
		case err != nil && !errors.Is(err, errEnough):
			return "", err
		case key == "":
			return "there are no files", nil
		}
		return "", nil
	}) {
		return
	}
	if key == "" {
		r.skip("read", "there is no file below "+s.Prefix+" to try it with")
		return
	}
	mayRead := "the account of " + r.setting("secret") + " has to be allowed to read below the prefix: s3:GetObject"
	if !r.step("read", mayRead, func() (string, error) {
		_, err := client.Head(r.ctx, key)
		return client.URI(key), err
	}) {
		return
	}
	r.step("read by a signed request", mayRead, func() (string, error) {
		q, err := client.Sign(r.ctx, objects.Signing{Method: http.MethodGet, Key: key, For: time.Minute})
		if err != nil {
			return "", err
		}
		q.Header = q.Header.Clone()
		if q.Header == nil {
			q.Header = http.Header{}
		}
		q.Header.Set("Range", "bytes=0-0")
		s := &signing{run: r, client: requests()}
		a, err := s.send(q, nil)
		if err == nil && !a.done() {
			err = a.error("a request that was signed to read " + client.URI(key))
		}
		return "", err
	})
}
