package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// Vending says that the server is asked for the credentials with which a table's files are reached, and what is believed of its answer.
type Vending struct {
	// Props say where the store is. What the operator wrote counts; what is missing is taken from the server's answer.
	Props objects.Props
	// TrustEndpoint takes an s3.endpoint of the server's on any host. Otherwise it has to be on the catalog's own.
	TrustEndpoint bool
}

// How long credentials live. Sessions of AWS live for a quarter of an hour at least; one that does not say is taken to be one of those.
const (
	unsaidLife = 15 * time.Minute
	maxVended  = 12 * time.Hour
)

// ErrNotVended: the catalog's server gives no credentials for a place.
var ErrNotVended = errors.New("the catalog's server gives no credentials")

// Header by which a client asks for credentials, and its only value that is asked for.
const (
	delegationHeader = "X-Iceberg-Access-Delegation"
	delegationVended = "vended-credentials"
)

// vended is what a server gave for the files below a prefix.
type vended struct {
	prefix string
	props  objects.Props // where the store is; no keys
	keys   objects.Credentials
	left   time.Duration // that the keys live, from the answer on
}

// allowedProps are all that is taken of what a server says about a store. Its own addresses and tokens, signers and headers are for no one here.
var allowedProps = []string{objects.Endpoint, objects.Region, objects.ClientRegion, objects.PathStyle}

// grantDoc is the part of an answer that is about credentials: those of a loaded or a staged table, or of the endpoint for credentials alone.
type grantDoc struct {
	Metadata struct {
		Location   string            `json:"location"`
		Properties map[string]string `json:"properties"`
	} `json:"metadata"`
	Config      map[string]any `json:"config"`
	Credentials []struct {
		Prefix string         `json:"prefix"`
		Config map[string]any `json:"config"`
	} `json:"storage-credentials"`
}

// parseGrant finds the credentials for a place: those of the longest prefix, by whole segments, or else those of the table's own configuration, if the place is the table's.
func parseGrant(body []byte, location string, date time.Time) (*vended, error) {
	var doc grantDoc
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("the answer of the catalog's server is no table: %w", err)
	}
	var best map[string]any
	prefix, depth := "", -1
	for _, c := range doc.Credentials {
		if n, ok := covers(c.Prefix, location); ok && n > depth && text(c.Config, objects.AccessKeyID) != "" {
			best, prefix, depth = c.Config, strings.TrimRight(c.Prefix, "/"), n
		}
	}
	if best == nil && text(doc.Config, objects.AccessKeyID) != "" {
		for _, place := range []string{doc.Metadata.Location, doc.Metadata.Properties["write.data.path"], doc.Metadata.Properties["write.metadata.path"]} {
			if n, ok := covers(place, location); ok && n > depth {
				best, prefix, depth = doc.Config, strings.TrimRight(place, "/"), n
			}
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w for %s", ErrNotVended, location)
	}
	if depth == 0 { // every place of the store, or of a bucket: no place to open by itself
		prefix = location
	}
	v := &vended{prefix: prefix, props: objects.Props{}, keys: objects.Credentials{
		AccessKeyID: text(best, objects.AccessKeyID), SecretAccessKey: text(best, objects.SecretKey), SessionToken: text(best, objects.SessionToken),
	}}
	if v.keys.SecretAccessKey == "" {
		return nil, fmt.Errorf("the catalog's server gives half of the credentials for %s: %s without %s", location, objects.AccessKeyID, objects.SecretKey)
	}
	for _, name := range allowedProps {
		for _, from := range []map[string]any{best, doc.Config} {
			if s := text(from, name); s != "" && v.props[name] == "" {
				v.props[name] = s
			}
		}
	}
	if v.left = life(text(best, objects.TokenExpires), date); v.left <= 0 {
		return nil, fmt.Errorf("the catalog's server gives credentials for %s that have run out already: %w", location, objects.ErrExpired)
	}
	v.keys.Expires = time.Now().Add(v.left)
	return v, nil
}

// covers says whether a place lies in that of a prefix, and how many segments the prefix has. "s3" and "s3://" are all places of S3.
func covers(prefix, location string) (depth int, ok bool) {
	at, err := uri.Parse(location)
	if err != nil {
		return 0, false
	}
	switch prefix = strings.TrimRight(prefix, "/"); prefix {
	case "":
		return 0, false
	case "s3", "s3:":
		return 0, at.Scheme == uri.S3
	}
	p, err := uri.Parse(prefix)
	if err != nil {
		return 0, false
	}
	if _, err := p.Below(location); err != nil {
		return 0, false
	}
	return len(p.Segments), true
}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// life is how long credentials are good for, by the clock of who made them.
func life(expires string, date time.Time) time.Duration {
	ms, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || ms <= 0 {
		return unsaidLife
	}
	if date.IsZero() {
		date = time.Now()
	}
	return min(time.UnixMilli(ms).Sub(date), maxVended)
}

// place is where the store is: as the operator says, and for the rest as the server does.
func (c *Catalog) place(v *vended) (objects.Props, error) {
	out := objects.Props{}
	for name, value := range v.props {
		out[name] = value
	}
	own := c.vending.Props
	if own[objects.Region] != "" || own[objects.ClientRegion] != "" {
		delete(out, objects.Region)
		delete(out, objects.ClientRegion)
	}
	if own[objects.PathStyle] != "" || own[objects.VirtualHosts] != "" {
		delete(out, objects.PathStyle)
	}
	if own[objects.Endpoint] == "" && out[objects.Endpoint] != "" && !c.vending.TrustEndpoint {
		u, err := url.Parse(out[objects.Endpoint])
		if err != nil || u.Hostname() != c.base.Hostname() {
			host := "none that can be read"
			if err == nil {
				host = fmt.Sprintf("%.80q", u.Hostname())
			}
			return nil, fmt.Errorf("the catalog's server names a store on another host (%s) than its own: write it as properties.%s, or set credentials.trust_endpoint: true: %w",
				host, objects.Endpoint, catalog.ErrPermanent)
		}
	}
	for name, value := range own {
		out[name] = value
	}
	return out, nil
}

// Paths of endpoints that give credentials, as servers list them.
const pathCredentials = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"

// fetchGrant asks for credentials for a place of a table, or of one that is about to be made there.
func (c *Catalog) fetchGrant(ctx context.Context, id catalog.Ident, location string) (*vended, error) {
	s, err := c.config(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.usable(id); err != nil {
		return nil, err
	}
	ask := call{method: http.MethodGet, url: c.table(s, id, url.Values{"snapshots": {"refs"}}), header: delegation()}
	if s.endpoints[pathCredentials] {
		ask.url = c.address(s, nil, "namespaces", s.namespacePath(id.Namespace()), "tables", escape(id.Table()), "credentials")
	}
	a, err := c.client.send(ctx, ask)
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusOK {
		return parseGrant(a.body, location, dateOf(a))
	}
	err = definite(c.refusal(a))
	if !errors.Is(err, catalog.ErrNotFound) || !s.offers(pathTables) {
		return nil, err
	}
	if a, err = c.stage(ctx, s, id, location); err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, definite(c.refusal(a))
	}
	return parseGrant(a.body, location, dateOf(a))
}

func delegation() http.Header { return http.Header{delegationHeader: {delegationVended}} }

func dateOf(a *answer) time.Time {
	at, err := http.ParseTime(a.header.Get("Date"))
	if err != nil || a.header.Get("Age") != "" {
		return time.Time{}
	}
	return at
}
