package broker

import (
	"path"
	"slices"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
)

// matches reports whether a path relative to the table fits one of the patterns, segment by segment: a * never spans a /.
func matches(patterns []string, rel string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, rel)
		return err == nil && ok
	})
}

// plainName refuses names that a reader could take for others, or that tools hide.
func plainName(rel string) bool {
	for seg := range strings.SplitSeq(rel, "/") {
		if seg == "" || seg == "." || seg == ".." || strings.HasPrefix(seg, storage.TempPrefix) {
			return false
		}
		for _, r := range seg {
			if r < 0x20 || r == 0x7f || r == '\\' {
				return false
			}
		}
	}
	return true
}

// defines reports whether the lease creates or changes a table without committing a job: there is nothing to be sealed, so that the sink creates the commit
// point as any other object, and looks itself whether it is there.
func (l *Lease) defines() bool {
	return l.spec.Gate == nil && (l.spec.AllowCreate || l.spec.AllowAlter) && l.spec.Mode == sinkv1.WriteMode_WRITE_MODE_UNSPECIFIED
}

// creatable decides whether the lease's sink may create the object, and whether it is a commit point. Both sides must agree on the
// latter: a commit point that is not announced would go around the seal, unless the lease only defines a table.
func (l *Lease) creatable(s storage.Store, uri string, announced bool) error {
	rel, err := s.Rel(uri)
	if err != nil {
		return refuse(kindPermanent, "%q is outside of the table", uri)
	}
	d := l.spec.Sink
	point := matches(d.GetCommitPoints(), rel)
	switch {
	case rel == "" || !plainName(rel) || !strings.HasSuffix(uri, "/"+rel):
		return refuse(kindPermanent, "%q is no name for an object", rel)
	case point && !announced && !l.defines():
		return refuse(kindPermanent, "%q is a commit point of sink %s: it takes the seal", rel, d.GetName())
	case announced && !point:
		return refuse(kindPermanent, "%q is none of the commit points that sink %s declared: %s", rel, d.GetName(), strings.Join(d.GetCommitPoints(), ", "))
	case !point && !matches(d.GetCreates(), rel):
		return refuse(kindPermanent, "%q is none of the names that sink %s may create: %s", rel, d.GetName(), strings.Join(d.GetCreates(), ", "))
	}
	return nil
}
