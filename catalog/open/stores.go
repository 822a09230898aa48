package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/config"
)

// Stores opens the places that a catalog's tables may be in: local ones and, where it has properties of an object store or a place in one, those of S3.
func Stores(ctx context.Context, c config.Catalog, secrets map[string]string) (storage.Opener, error) {
	props := objects.Props{}
	for name, v := range c.Properties {
		if strings.HasPrefix(name, "s3.") || name == objects.ClientRegion {
			props[name] = v
		}
	}
	remote := len(props) > 0
	for _, place := range append([]string{c.Warehouse}, c.DataPaths...) {
		l, err := uri.Parse(place)
		remote = remote || err == nil && l.Remote()
	}
	if !remote {
		return storage.Local, nil
	}
	source, err := sourceOf(ctx, c, props, secrets)
	if err != nil {
		return nil, err
	}
	return storage.NewOpener(storage.Root{Props: props, Source: source})
}

// sourceOf is where the scheduler's own credentials come from: the catalog's secrets, or else what AWS's clients find on this machine; and the role that these are for, if
// one is named.
func sourceOf(ctx context.Context, c config.Catalog, props objects.Props, secrets map[string]string) (objects.Source, error) {
	keys := objects.Props{}
	for _, name := range []string{objects.AccessKeyID, objects.SecretKey, objects.SessionToken} {
		if secrets[name] != "" {
			keys[name] = secrets[name]
		}
	}
	source := objects.Static(keys)
	switch {
	case source == nil && len(keys) > 0, source != nil && keys[objects.SecretKey] == "":
		return nil, fmt.Errorf("secret: %s and %s belong together; only one of them is set", objects.AccessKeyID, objects.SecretKey)
	case source == nil:
		var err error
		if source, err = chain(ctx); err != nil {
			return nil, err
		}
	}
	if role := props["s3.role-arn"]; role != "" {
		sts, err := credentials.NewSTS(credentials.STSOptions{
			RoleARN: role, ExternalID: c.Credentials.ExternalID, Endpoint: cmp.Or(c.Credentials.STSEndpoint, props[objects.Endpoint]),
			Region: cmp.Or(props[objects.Region], props[objects.ClientRegion]), Source: source,
		})
		if err != nil {
			return nil, fmt.Errorf("properties.s3.role-arn: %w", err)
		}
		source = credentials.RoleSource(sts, cmp.Or(props["s3.role-session-name"], "signet"), credentials.MaxSession)
	}
	return source, nil
}

// chain is what AWS's clients find on this machine: variables, files, the role of the machine or the container. It is looked for when it is needed first.
func chain(ctx context.Context) (objects.Source, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration of this machine: %w", err)
	}
	return func(ctx context.Context) (objects.Credentials, error) {
		const patience = 20 * time.Second
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		k, err := cfg.Credentials.Retrieve(ctx)
		if err != nil {
			return objects.Credentials{}, errors.Join(fmt.Errorf("no keys under secret (%s, %s), and none on this machine", objects.AccessKeyID, objects.SecretKey), err)
		}
		out := objects.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}
		if k.CanExpire {
			out.Expires = k.Expires
		}
		return out, nil
	}, nil
}
