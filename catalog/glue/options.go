package glue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/smithy-go/logging"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/pointer"
	"github.com/signet-io/signet/catalog/storage"
)

// Names of properties and secrets, those of PyIceberg and of Iceberg's Java library.
const (
	propRegion      = "glue.region"       // s3.region, or the environment's, if there is none
	propEndpoint    = "glue.endpoint"     // AWS's of the region, if there is none
	propID          = "glue.id"           // of the Data Catalog: the account's own, if there is none
	propSkipArchive = "glue.skip-archive" // true: Glue keeps no older version of a table it changes
	propMaxRetries  = "glue.max-retries"  // how often what reads is sent at most
	propProfile     = "glue.profile-name" // of AWS's shared files

	secretKeyID = "glue.access-key-id"
	secretKey   = "glue.secret-access-key"
	secretToken = "glue.session-token"
)

// Options say where a catalog is.
type Options struct {
	// Name is what users type. Required.
	Name string
	// Warehouse is where new tables go: a place that Stores serves, as s3://bucket/prefix. Required.
	Warehouse string
	// Properties and Secrets by the names above; those of storage are left to Stores.
	Properties, Secrets map[string]string
	// Stores opens the warehouse, and whatever else tables name; storage.Local if nil.
	Stores storage.Opener
	// CacheBytes bounds the metadata kept parsed, measured as JSON; 64 MiB if 0.
	CacheBytes int64
	// MaxBackoff is the longest pause between two tries of what reads; 20 s if 0.
	MaxBackoff time.Duration
	// Logger hears of what could not be cleaned up; slog.Default if nil.
	Logger *slog.Logger
}

// Catalog implements catalog.Catalog.
type Catalog struct {
	*pointer.Engine
	name        string
	id          *string // of the Data Catalog; nil: the account's own
	skipArchive bool
	api         *api
}

var _ catalog.Catalog = (*Catalog)(nil)

// Open checks the options. It does not talk to the service.
func Open(ctx context.Context, o Options) (*Catalog, error) {
	c := &Catalog{name: o.Name, skipArchive: true}
	var err error
	c.Engine, err = pointer.New(ctx, pointer.Options{Name: o.Name, Warehouse: o.Warehouse, Stores: o.Stores, CacheBytes: o.CacheBytes, Logger: o.Logger}, rows{c})
	if err != nil {
		return nil, err
	}
	if text, ok := o.Properties[propSkipArchive]; ok {
		if c.skipArchive, err = strconv.ParseBool(text); err != nil {
			return nil, fmt.Errorf("catalog %s: property %s = %q: want true or false", o.Name, propSkipArchive, text)
		}
	}
	if id := o.Properties[propID]; id != "" {
		c.id = aws.String(id)
	}
	conf, err := configure(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", o.Name, err)
	}
	c.api = newAPI(glue.NewFromConfig(conf, func(g *glue.Options) {
		if e := o.Properties[propEndpoint]; e != "" {
			g.BaseEndpoint = aws.String(e)
		}
	}))
	return c, nil
}

// configure finds the region and the keys: those that the operator wrote, else where AWS's own tools look.
func configure(ctx context.Context, o Options) (aws.Config, error) {
	attempts := 0
	if text := o.Properties[propMaxRetries]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return aws.Config{}, fmt.Errorf("property %s = %q: want a number from 1", propMaxRetries, text)
		}
		attempts = n
	}
	var with []func(*config.LoadOptions) error
	if region := cmp.Or(o.Properties[propRegion], o.Properties["s3.region"]); region != "" {
		with = append(with, config.WithRegion(region))
	}
	if profile := o.Properties[propProfile]; profile != "" {
		with = append(with, config.WithSharedConfigProfile(profile))
	}
	key, secret := o.Secrets[secretKeyID], o.Secrets[secretKey]
	switch {
	case (key == "") != (secret == ""):
		return aws.Config{}, fmt.Errorf("secret: %s and %s go together", secretKeyID, secretKey)
	case key != "":
		with = append(with, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(key, secret, o.Secrets[secretToken])))
	case o.Secrets[secretToken] != "":
		return aws.Config{}, fmt.Errorf("secret: %s needs %s", secretToken, secretKeyID)
	}
	with = append(with, config.WithRetryer(func() aws.Retryer {
		return retry.NewStandard(func(s *retry.StandardOptions) { s.MaxAttempts, s.MaxBackoff = attempts, o.MaxBackoff })
	}))
	conf, err := config.LoadDefaultConfig(ctx, with...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("configuration of AWS's clients: %w", err)
	}
	// What is signed is for the configured address alone, and is sent there once: no redirection is followed.
	b, ok := conf.HTTPClient.(*awshttp.BuildableClient) // with the authorities of AWS_CA_BUNDLE
	if !ok {
		b = awshttp.NewBuildableClient()
	}
	conf.HTTPClient = &http.Client{Transport: b.GetTransport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	conf.Logger = logging.Nop{} // errors say what there is to say
	if conf.Region == "" && o.Properties[propEndpoint] != "" {
		conf.Region = "us-east-1"
	}
	if conf.Region == "" {
		return aws.Config{}, errors.New("property " + propRegion + " is missing: the region of the Data Catalog")
	}
	return conf, nil
}

// Name implements catalog.Catalog.
func (c *Catalog) Name() string { return c.name }

// Close implements catalog.Catalog.
func (c *Catalog) Close() error { return nil }
