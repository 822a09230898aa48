package objects

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Names of properties, those of PyIceberg and of Iceberg's Java library.
const (
	Endpoint     = "s3.endpoint"          // https://host:port; without one, Amazon's of the region
	Region       = "s3.region"            // us-east-1 where there is an endpoint
	ClientRegion = "client.region"        // the same, as Java spells it
	PathStyle    = "s3.path-style-access" // true: endpoint/bucket/key; the default where there is an endpoint
	VirtualHosts = "s3.force-virtual-addressing"
	AccessKeyID  = "s3.access-key-id"
	SecretKey    = "s3.secret-access-key"
	SessionToken = "s3.session-token"
	TokenExpires = "s3.session-token-expires-at-ms"
)

// Static is the Source of the keys that properties hold; nil where they hold none.
func Static(p Props) Source {
	c := Credentials{AccessKeyID: p[AccessKeyID], SecretAccessKey: p[SecretKey], SessionToken: p[SessionToken]}
	if c.AccessKeyID == "" {
		return nil
	}
	if ms, err := strconv.ParseInt(p[TokenExpires], 10, 64); err == nil {
		c.Expires = time.UnixMilli(ms)
	}
	return func(context.Context) (Credentials, error) { return c, nil }
}

// place is where a bucket is.
type place struct {
	endpoint  string // empty: Amazon's
	region    string
	pathStyle bool
}

func (p Props) place() (place, error) {
	at := place{endpoint: strings.TrimRight(p[Endpoint], "/"), region: p[Region]}
	if at.region == "" {
		at.region = p[ClientRegion]
	}
	if at.endpoint != "" {
		u, err := url.Parse(at.endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return at, fmt.Errorf("property %s: want http://host:port or https://host:port, without a user and a query", Endpoint) // what it is may hold a password
		}
		at.pathStyle = true
		if at.region == "" {
			at.region = "us-east-1"
		}
	}
	if at.region == "" {
		return at, fmt.Errorf("property %s is missing: the bucket's region, or %s for another store than Amazon's", Region, Endpoint)
	}
	for _, name := range []string{PathStyle, VirtualHosts} {
		text, ok := p[name]
		if !ok {
			continue
		}
		on, err := strconv.ParseBool(text)
		if err != nil {
			return at, fmt.Errorf("property %s = %q: want true or false", name, text)
		}
		at.pathStyle = on == (name == PathStyle)
	}
	return at, nil
}
