package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// mainBranch is the branch that statements mean which name none. Everywhere else it is the empty string.
const mainBranch = "main"

// resolveWritten finds the table that a statement writes, and the branch of it; empty: the main one. A last part branch_x means the branch x of
// the table before it, unless there is a table of that very name.
func (s *Server) resolveWritten(parts []string, j *job, does action) (t *target, branch string, err error) {
	branch, tag := refOfPart(parts)
	if branch == "" && tag == "" {
		t, err = s.resolveTable(parts, j, does)
		return t, ownBranch(j.settings().WapBranch), err
	}
	if len(parts) < 4 {
		t, err := s.resolveTable(parts, j, does)
		if err == nil {
			there, err := s.tableExists(j.ctx, j, t)
			if there || err != nil {
				return t, ownBranch(j.settings().WapBranch), err
			}
		} else if !isNotFound(err) && !failed(err, codeDenied) {
			return nil, "", err
		}
	}
	if t, err = s.resolveTable(parts[:len(parts)-1], j, does); err != nil {
		return nil, "", err
	}
	if tag != "" {
		return nil, "", fail(codeUser, "write to a branch: "+t.String()+"."+sql.DisplayIdent(sql.BranchPrefix+"…"), "%s is a tag of table %s: tags never change", sql.DisplayIdent(tag), t)
	}
	return t, ownBranch(branch), nil
}

// planAppend begins the plan of a write that adds rows to the table of a name.
func (s *Server) planAppend(parts []string, j *job) (*planned, error) {
	t, branch, err := s.resolveWritten(parts, j, toInsert)
	if err != nil {
		return nil, err
	}
	p := &planned{target: t, branch: branch, mode: sinkv1.WriteMode_WRITE_MODE_APPEND}
	return p, s.needsBranch(j.ctx, p)
}

func ownBranch(name string) string {
	if name == mainBranch {
		return ""
	}
	return name
}

// refOfPart is the branch or the tag that the last part of a name means, if it means one.
func refOfPart(parts []string) (branch, tag string) {
	if len(parts) < 2 {
		return "", ""
	}
	last := parts[len(parts)-1]
	for prefix, to := range map[string]*string{sql.BranchPrefix: &branch, sql.TagPrefix: &tag} {
		if len(last) > len(prefix) && strings.EqualFold(last[:len(prefix)], prefix) {
			*to = last[len(prefix):]
		}
	}
	return branch, tag
}

func isNotFound(err error) bool {
	var f *jobFailure
	return errors.As(err, &f) && f.Code == codeNotFound
}

// tableExists tells whether there is a table of exactly that name.
func (s *Server) tableExists(ctx context.Context, j *job, t *target) (bool, error) {
	_, err := s.describe(ctx, j, t)
	if isNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// needs refuses a statement that the sink of a table's catalog cannot carry out.
func (s *Server) needs(ctx context.Context, t *target, c sinkv1.Capability, what, hint string) error {
	p, err := s.steadyPlugin(ctx, t)
	if err != nil {
		return err
	}
	if slices.Contains(p.Describe().GetCapabilities(), c) {
		return nil
	}
	return fail(codeUser, hint, "%s is not supported in catalog %s by its sink %s", what, t.entry.name, t.entry.sink)
}

// needsBranch refuses a branch where the sink knows none.
func (s *Server) needsBranch(ctx context.Context, p *planned) error {
	if p.branch == "" {
		return nil
	}
	return s.needs(ctx, p.target, sinkv1.Capability_CAPABILITY_BRANCHES, "writing to a branch", "leave the branch out")
}
