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
	"github.com/signet-io/signet/scheduler/sources"
)

// schedulerSession is how long a session lives in which the scheduler itself reads and writes.
const schedulerSession = time.Hour

// openStores is how the scheduler reaches what the tables of a catalog name, and what attempts get of it: sessions, or nil.
func openStores(c config.Catalog) (storage.Opener, *sessions, error) {
	roots, err := cloudRoots(c)
	if err != nil {
		return nil, nil, err
	}
	_, own := c.Secret[objects.AccessKeyID]
	if !uses(c, "s3.", "s3://") || c.Credentials.Mode == config.CredentialsVended && !own { // vended: the catalog says where a table's store is
		if len(roots) == 0 {
			return storage.Local, nil, nil
		}
		opener, err := storage.NewOpener(roots...)
		return opener, nil, err
	}
	props := storeProps(c.Properties)
	source, err := ownSource(c, props)
	if err != nil {
		return nil, nil, err
	}
	opener, err := storage.NewOpener(append(roots, storage.Root{Props: props, Source: source})...)
	if err != nil {
		return nil, nil, err
	}
	s, err := newSessions(c, source)
	return opener, s, err
}

// storeProps are those of the properties that are about the store.
func storeProps(all map[string]string) objects.Props {
	props := objects.Props{}
	for name, v := range all {
		if strings.HasPrefix(name, "s3.") {
			props[name] = v
		}
	}
	return props
}

// remoteSource is how the scheduler looks at a place that statements may read, and signs the reads of executors.
func remoteSource(r config.RemoteSource) (sources.Remote, error) {
	out := sources.Remote{Prefix: r.Prefix}
	if r.IsWeb() {
		return out, nil
	}
	props := storeProps(r.Properties)
	source, err := ownSource(config.Catalog{Properties: r.Properties, Secret: r.Secret}, props)
	if err != nil {
		return out, err
	}
	out.Open = func(bucket string) (objects.Client, error) { return objects.NewS3(props, bucket, source) }
	return out, nil
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

// uses says whether a configuration is about a kind of store at all, whose properties and places begin so.
func uses(c config.Catalog, property string, places ...string) bool {
	about := func(name string) bool { return strings.HasPrefix(name, property) }
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
	named := append(append(slices.Clone(c.DataPaths), c.AddFilesPaths...), c.Warehouse, c.Root)
	return slices.ContainsFunc(named, func(at string) bool {
		return slices.ContainsFunc(places, func(p string) bool { return strings.HasPrefix(at, p) })
	})
}
