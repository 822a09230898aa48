package scheduler

import (
	"errors"
	"strconv"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

// scanOf is what a query reads of a table that it names.
func scanOf(u *executorv1.UnresolvedSource) tableRead {
	r := tableRead{name: u.GetTable()}
	switch _, err := strconv.ParseInt(u.GetVersion(), 10, 64); {
	case u.AsOfMicros != nil:
		millis := u.GetAsOfMicros() / 1000
		r.asOf = &millis
	case u.GetVersion() == "":
	case err == nil:
		r.id = u.GetVersion()
	default:
		r.ref = u.GetVersion()
	}
	return r
}

// Prefixes of the last part of a name that means a branch or a tag of the table before it, unless there is a table of that very name.
const (
	branchPrefix = "branch_"
	tagPrefix    = "tag_"
)

// reference is the other meaning of a name such as t.branch_x.
func (r tableRead) reference() (tableRead, bool) {
	if len(r.name) < 2 || r.ref != "" || r.id != "" || r.asOf != nil {
		return r, false
	}
	last := r.name[len(r.name)-1]
	for _, p := range []string{branchPrefix, tagPrefix} {
		if len(last) > len(p) && strings.EqualFold(last[:len(p)], p) {
			out := r
			out.name, out.ref = r.name[:len(r.name)-1], last[len(p):]
			return out, true
		}
	}
	return r, false
}

// isMissing reports whether an error says that there is no such table, or no such catalog or schema.
func isMissing(err error) bool {
	var f *jobFailure
	return errors.As(err, &f) && (f.Code == codeNotFound || f.Code == codeDenied) // the last part may be a branch of a table that is permitted
}
