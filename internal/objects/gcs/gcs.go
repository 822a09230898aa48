// Package gcs is the client of Google Cloud Storage: objects.Client over the XML API, which speaks S3's protocol in words of its own, so that reads, lists, conditions and what is
// done after a lost answer are those of package objects. Requests carry an OAuth 2 token; what is presigned is signed with a service account's key, or by IAM for it (V4).
//
// What differs from S3:
//
//   - Conditions of writes are generations: a name that is free has generation 0, and an ETag is looked up for the generation that has it.
//   - Uploads in parts know no conditions. The client's own uploads are spooled to a temporary file and sent as one request, which has one. Presigned uploads in parts, of executors
//     below prefixes that only they write to, are real ones.
//   - Many objects are removed one by one.
package gcs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/internal/objects"
)

// Names of properties: those of PyIceberg and of Iceberg's Java library, and iceberg-go's for the key, which the others take from the machine.
const (
	ServiceHost  = "gcs.service.host"                // https://host:port; Google's own without
	ProjectID    = "gcs.project-id"                  // who pays for requests to a bucket that wants to know, with UserProject unset
	UserProject  = "gcs.user-project"                // who pays
	NoAuth       = "gcs.no-auth"                     // true: anonymous requests
	Impersonate  = "gcs.impersonate.service-account" // whose signatures IAM makes, without a key
	TokenExpires = "gcs.oauth2.token-expires-at"     // milliseconds since 1970
	Token        = "gcs.oauth2.token"                // secret
	JSONKey      = "gcs.jsonkey"                     // secret: a service account's key, as Google hands it out
)

// DefaultHost is where buckets are.
const DefaultHost = "https://storage.googleapis.com"

// Identity is who asks. It is shared by the clients of a catalog.
type Identity struct {
	props  objects.Props
	tokens *tokens // nil: anonymous
}

// NewIdentity reads properties and secrets. It sends nothing: credentials of the machine are looked for when a request needs them.
func NewIdentity(p objects.Props) (*Identity, error) {
	if off, err := strconv.ParseBool(p[NoAuth]); p[NoAuth] != "" && err != nil {
		return nil, fmt.Errorf("property %s = %q: want true or false", NoAuth, p[NoAuth])
	} else if off {
		return &Identity{props: p}, nil
	}
	t, err := newTokens(p)
	if err != nil {
		return nil, err
	}
	return &Identity{props: p, tokens: t}, nil
}

// Client is for one bucket. It sends nothing.
func (i *Identity) Client(bucket string) (objects.Client, error) {
	return i.client(bucket, nil)
}

func (i *Identity) client(bucket string, pause func(context.Context, int, time.Duration) error) (*client, error) {
	host := i.props[ServiceHost]
	if host == "" {
		host = DefaultHost
	}
	if u, err := url.Parse(host); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("property %s: want http://host:port or https://host:port, without a user and a query", ServiceHost)
	}
	host = strings.TrimRight(host, "/")
	c := &client{who: i, host: host, bucket: bucket}
	d := objects.Dialect{
		Scheme: "gs", Endpoint: ServiceHost, Pause: pause, Sign: c.sign, Hints: hints,
		Transport: func(next http.RoundTripper) http.RoundTripper {
			return &transport{next: next, tokens: i.tokens, payer: i.props[UserProject]}
		},
	}
	var err error
	c.Client, err = objects.NewDialect(objects.Props{objects.Endpoint: host, objects.Region: "auto", objects.PathStyle: "true"}, bucket, d)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// hints say what to do, by the store's code or the status of another one.
var hints = map[string]string{
	"AccessDenied":           "grant the account the permission for this step (roles/storage.objectUser on the bucket)",
	"403":                    "grant the account the permission for this step (roles/storage.objectUser on the bucket)",
	"401":                    "the token is not taken: renew " + Token + ", or correct " + JSONKey + " or what the machine has",
	"AuthenticationRequired": "the token is not taken: renew " + Token + ", or correct " + JSONKey + " or what the machine has",
	"InvalidAccessKeyId":     "the account that signs is not known",
	"SignatureDoesNotMatch":  "the key is not, or not any more, the account's, or something between here and the store changes requests",
	"UserProjectMissing":     "the bucket's readers pay: set " + UserProject,
	"NoSuchBucket":           "create the bucket, or correct its name",
}

// client adds to a client of S3's protocol what differs in more than words.
type client struct {
	objects.Client
	who          *Identity
	host, bucket string
}

// AbortUploads implements objects.UploadAborter.
func (c *client) AbortUploads(ctx context.Context, prefix string, before time.Time) (int, error) {
	return c.Client.(objects.UploadAborter).AbortUploads(ctx, prefix, before)
}
