package config

import (
	"fmt"
	"net/url"
	"strings"
)

// Sources says which files statements may read. Signet's own files, /proc, /sys, /dev and /run are denied always, and so is every place in an object store or on a web
// server that is not listed.
type Sources struct {
	Roots []string `koanf:"roots" kind:"path"` // if set, only local files below these
	Deny  []string `koanf:"deny" kind:"path"`  // never local files below these
	// Remote are the places in object stores and on web servers.
	Remote []RemoteSource `koanf:"remote"`
}

// RemoteSource is a place that is not on this machine.
type RemoteSource struct {
	// Prefix is s3://bucket/prefix, https://host/path or http://host/path: what is below it may be read.
	Prefix string `koanf:"prefix"`
	// Properties of the object store by PyIceberg's names: s3.endpoint and so on.
	Properties map[string]string `koanf:"properties" kind:"flat"`
	// Secret holds the keys: s3.access-key-id and s3.secret-access-key.
	Secret map[string]Secret `koanf:"secret" kind:"flat"`
}

// IsWeb says whether the place is on a web server, which is read without credentials.
func (r *RemoteSource) IsWeb() bool {
	return strings.HasPrefix(r.Prefix, "http://") || strings.HasPrefix(r.Prefix, "https://")
}

func (v *validator) sources(s *Sources) {
	seen := map[string]int{}
	for i := range s.Remote {
		r, key := &s.Remote[i], fmt.Sprintf("sources.remote[%d]", i)
		switch scheme, _, _ := strings.Cut(r.Prefix, "://"); {
		case r.Prefix == "":
			v.say(key+".prefix", "missing; write s3://bucket/prefix or https://host/path")
			continue
		case r.IsWeb():
			v.web(key, r)
		case scheme == "s3" || scheme == "s3a" || scheme == "s3n":
			v.place(key+".prefix", &r.Prefix)
			v.properties(key, &Catalog{Properties: r.Properties, Secret: r.Secret})
		default:
			v.check(false, key+".prefix", withoutUser(r.Prefix), "want s3://bucket/prefix or https://host/path; local directories are listed at sources.roots")
		}
		if other, twice := seen[r.Prefix]; twice {
			v.check(false, key+".prefix", withoutUser(r.Prefix), fmt.Sprintf("is there already, as sources.remote[%d]", other))
		}
		seen[r.Prefix] = i
	}
}

func (v *validator) web(key string, r *RemoteSource) {
	u, err := url.Parse(r.Prefix)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(r.Prefix, "#"):
		v.say(key+".prefix", "want https://host/path, without a user, a query and a fragment") // which may be secrets
	case u.Path != "" && u.Path != "/" && strings.Contains("/"+strings.Trim(u.Path, "/")+"/", "//"):
		v.check(false, key+".prefix", r.Prefix, "must have no empty segment in its path")
	}
	if len(r.Properties) > 0 {
		v.say(key+".properties", "is for s3:// places")
	}
	if len(r.Secret) > 0 {
		v.say(key+".secret", "is for s3:// places: web servers are read without credentials")
	}
}
