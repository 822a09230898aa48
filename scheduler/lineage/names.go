package lineage

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/google/uuid"
)

// Parent is the run that this one is a part of.
type Parent struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	RunID     string `json:"run_id"`
}

// ParseParent reads NAMESPACE/JOB/RUN, as OPENLINEAGE_PARENT_ID has it. A namespace may have slashes, as in a URL.
func ParseParent(s string) (*Parent, error) {
	rest, id, ok1 := cutLast(s)
	namespace, name, ok2 := cutLast(rest)
	if !ok1 || !ok2 || namespace == "" || name == "" {
		return nil, fmt.Errorf("want NAMESPACE/JOB/RUN")
	}
	if u, err := uuid.Parse(id); err != nil || len(id) != 36 {
		return nil, fmt.Errorf("want NAMESPACE/JOB/RUN, and a run's id is a UUID")
	} else {
		id = u.String()
	}
	return &Parent{Namespace: namespace, Name: name, RunID: id}, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// FromLocation names what lies at a location, by the naming specification.
func FromLocation(location string) (namespace, name string) {
	scheme, rest, ok := strings.Cut(location, "://")
	if !ok {
		rest, isFile := strings.CutPrefix(location, "file:")
		if !isFile && !strings.HasPrefix(rest, "/") {
			return "file", location
		}
		return "file", path.Clean(rest)
	}
	if scheme == "file" {
		return "file", path.Clean("/" + strings.TrimPrefix(rest[strings.IndexByte(rest+"/", '/'):], "/"))
	}
	host, key, _ := strings.Cut(rest, "/")
	if key = strings.Trim(key, "/"); key == "" || scheme == "hdfs" || scheme == "dbfs" {
		key = "/" + key
	}
	return scheme + "://" + host, key
}

// CatalogNamespace is a catalog's address as a namespace: without what may be secret, and without options.
func CatalogNamespace(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		scheme, _, _ := strings.Cut(address, ":")
		return scheme
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
