package executor

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/inputs"
	"github.com/signet-io/signet/executor/signed"
	"github.com/signet-io/signet/executor/upload"
)

// Files in object stores: this process has no credentials for them. What it reads of them are single requests that the scheduler has signed for the attempt, or for the
// analysis; what it writes likewise, or with a session that the store bounds to the attempt's prefix.

// inputsDir is where an attempt's or analysis' files of object stores are named.
func inputsDir(dir string) string { return filepath.Join(dir, "in") }

// storeOf is where an attempt's data files go.
func (e *Executor) storeOf(a *attempt) upload.Store {
	return e.storeFor(a.ref, a.task.GetWrite().GetPrefix())
}

func (e *Executor) storeFor(ref *executorv1.AttemptRef, prefix string) upload.Store {
	if upload.IsRemote(prefix) {
		return &upload.Remote{Signer: &storeSession{access: access{e: e, attempt: ref}, prefix: prefix}, Client: e.objects}
	}
	return e.cfg.Store
}

// stage brings the attempt's files in object stores into its directory. From then on the task reads them there.
func (e *Executor) stage(a *attempt, dir string) error {
	if !inputs.Any(a.task.GetSources()) {
		return nil
	}
	var sources []*planv1.Source
	var err error
	if mayCopy(a.task) {
		var left *inputs.Left
		sources, left, err = e.cache.StageFooters(a.ctx, access{e: e, attempt: a.ref}, a.task.GetSources(), inputsDir(dir))
		a.left = left
	} else {
		sources, err = e.cache.Stage(a.ctx, access{e: e, attempt: a.ref}, a.task.GetSources(), inputsDir(dir), inputs.All)
	}
	if err != nil {
		return err
	}
	task := proto.CloneOf(a.task)
	task.Sources = sources
	a.task = task
	return nil
}

// computes tells queries that do more than to pass columns through. It need not tell all of them: the others are found out when their files' footers are there.
var computes = regexp.MustCompile(`(?i)[(]|\b(WHERE|JOIN|GROUP|HAVING|QUALIFY|LIMIT|ORDER|SAMPLE|UNION|DISTINCT)\b`)

// mayCopy says whether a store may copy the rows of a task by itself, so that its files are best left there until more is known. Nothing reads their rows before that.
func mayCopy(task *planv1.Task) bool {
	w := task.GetWrite()
	if !w.GetCopies() || !w.GetSplice() || w.GetRowLineage() || w.GetAdd() != nil || w.GetSpec().GetSortOrderId() != 0 || len(task.GetSources()) != 1 || computes.MatchString(task.GetSql()) {
		return false
	}
	r := w.GetRewrite()
	if r == nil {
		return true
	}
	counted := func(f *planv1.PinnedFile) bool { return f.GetRecordCount() > 0 && len(f.GetDeletes()) == 0 }
	return r.GetChangesSql() == "" && r.GetCheckSql() == "" && r.GetPositionsSql() == "" && r.GetChanged() == nil && !slices.ContainsFunc(task.GetSources()[0].GetTable().GetFiles(), func(f *planv1.PinnedFile) bool { return !counted(f) })
}

// stageAnalysis does the same for an analysis. done removes what was staged, and makes the answer name the files as they were asked for.
func (e *Executor) stageAnalysis(req *executorv1.Analyze) (_ *executorv1.Analyze, done func(*executorv1.AnalyzeResult), perr *planv1.Error) {
	sources := req.GetSources()
	if req.GetSplice() != nil {
		sources = req.GetSplice().GetSources()
	}
	if req.GetFilters() || !inputs.Any(sources) || req.GetSplice() != nil && mayCopy(req.GetSplice()) { // which stages by itself
		return req, func(*executorv1.AnalyzeResult) {}, nil
	}
	dir := filepath.Join(e.scratch.Path, "analysis-"+uuid.NewString())
	remove := func() {
		if err := os.RemoveAll(dir); err != nil {
			e.log.Warn("cannot remove scratch", "directory", dir, "error", err)
		}
	}
	need := inputs.Schemas
	if req.GetSplice() != nil || req.GetAddFiles() != nil { // which look at pages
		need = inputs.All
	}
	staged, err := e.cache.Stage(e.life, access{e: e, analysis: req.GetRequestId()}, sources, dir, need)
	if err != nil {
		remove()
		return req, nil, planError(e.life, nil, e.scratch.Path, err)
	}
	req = proto.CloneOf(req)
	if req.GetSplice() != nil {
		req.Splice.Sources = staged
	} else {
		req.Sources = staged
	}
	return req, func(res *executorv1.AnalyzeResult) {
		nameAsAsked(res, staged)
		remove()
	}, nil
}

// nameAsAsked puts the URIs of remote files in place of the paths of their copies.
func nameAsAsked(res *executorv1.AnalyzeResult, sources []*planv1.Source) {
	uris := map[string]string{}
	for _, src := range sources {
		for _, f := range src.GetFile().GetFiles() {
			uris[f.GetPath()] = f.GetUri()
		}
		for _, f := range src.GetTable().GetFiles() {
			uris[f.GetPath()] = f.GetUri()
		}
	}
	for _, st := range res.GetStats() {
		for _, f := range st.GetFiles() {
			if uri := uris[f.GetPath()]; uri != "" {
				f.Path = uri
			}
		}
	}
}

// storeError says what an error of an object store, or of access to it, means for the job; nil: it is another one.
func storeError(err error) *planv1.Error {
	var in *inputs.Error
	var answer *signed.Error
	switch {
	case errors.As(err, &in):
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: in.Message, Hint: in.Hint}
	case errors.Is(err, errNeverAccess):
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_USER, Message: err.Error(), Hint: "signet check tries the role and the keys of each catalog"}
	case errors.Is(err, errNoAccess):
		return &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: err.Error(), Hint: "the scheduler's log says why; check the credentials of the catalog, or of the place in sources.remote"}
	case errors.As(err, &answer):
		out := &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_IO, Message: err.Error()}
		if errors.Is(err, signed.ErrNetwork) {
			out.Hint = "executors must be able to reach the object store: check its endpoint, as configured for the catalog or in sources.remote, from the executor's machine"
		}
		return out
	}
	return nil
}

var _ interface {
	inputs.Access
	upload.Signer
} = access{}
