package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/scheduler/config"
)

// schedulerSession is how long a session lives in which the scheduler itself reads and writes.
const schedulerSession = time.Hour

// openStores is how the scheduler reaches what the tables of a catalog name, and what attempts get of it: sessions, or nil.
func openStores(c config.Catalog) (storage.Opener, *sessions, error) {
	if _, own := c.Secret[objects.AccessKeyID]; !usesS3(c) || c.Credentials.Mode == config.CredentialsVended && !own { // the catalog says where a table's store is
		return storage.Local, nil, nil
	}
	props := objects.Props{}
	for name, v := range c.Properties {
		if strings.HasPrefix(name, "s3.") {
			props[name] = v
		}
	}
	source, err := ownSource(c, props)
	if err != nil {
		return nil, nil, err
	}
	opener, err := storage.NewOpener(storage.Root{Props: props, Source: source})
	if err != nil {
		return nil, nil, err
	}
	s, err := newSessions(c, source)
	return opener, s, err
}

// ownSource gives the scheduler's own keys: those of the configuration, else those that the machine has; those of a role that is assumed with them where one is configured.
func ownSource(c config.Catalog, props objects.Props) (objects.Source, error) {
	keys := objects.Props{}
	for _, name := range []string{objects.AccessKeyID, objects.SecretKey, objects.SessionToken} {
		secret, ok := c.Secret[name]
		if !ok {
			continue
		}
		v, err := secret.Resolve()
		if err != nil {
			return nil, fmt.Errorf("secret.%s: %w", name, err)
		}
		keys[name] = v
	}
	source := objects.Static(keys)
	if source == nil {
		source = credentials.DefaultChain(props[objects.Region])
	}
	role := props["s3.role-arn"]
	if role == "" {
		return source, nil
	}
	endpoint := c.Credentials.STSEndpoint
	if endpoint == "" {
		endpoint = props[objects.Endpoint]
	}
	s, err := credentials.NewSTS(credentials.STSOptions{RoleARN: role, Endpoint: endpoint, Region: props[objects.Region], Source: source})
	if err != nil {
		return nil, fmt.Errorf("properties.s3.role-arn: %w", err)
	}
	name := props["s3.role-session-name"]
	if name == "" {
		name = "scheduler"
	}
	return credentials.RoleSource(s, name, schedulerSession), nil
}

// usesS3 says whether a configuration is about S3 at all.
func usesS3(c config.Catalog) bool {
	about := func(name string) bool { return strings.HasPrefix(name, "s3.") }
	for name := range c.Properties {
		if about(name) {
			return true
		}
	}
	for name := range c.Secret {
		if about(name) {
			return true
		}
	}
	places := append(slices.Clone(c.DataPaths), c.AddFilesPaths...)
	return slices.ContainsFunc(append(places, c.Warehouse), func(p string) bool { return strings.HasPrefix(p, "s3://") })
}
