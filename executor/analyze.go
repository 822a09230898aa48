package executor

import (
	"fmt"
	"runtime/debug"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze"
	"github.com/signet-io/signet/internal/fault"
)

// analyze answers a request beside the running tasks.
func (e *Executor) analyze(req *executorv1.Analyze) {
	e.work.Go(func() {
		select {
		case e.analyst <- struct{}{}:
		case <-e.life.Done():
			return
		}
		defer func() { <-e.analyst }()
		res := e.analyzeGuarded(req)
		e.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Analyzed{Analyzed: res}})
	})
}

func (e *Executor) analyzeGuarded(req *executorv1.Analyze) (res *executorv1.AnalyzeResult) {
	defer func() {
		if r := recover(); r != nil {
			e.log.Error("panic in an analysis", "panic", r, "stack", string(debug.Stack()))
			res = failedAnalysis(req, fmt.Sprintf("the executor met a defect in its own code: %v", r))
		}
	}()
	if err := fault.Hit("executor.analyze.start"); err != nil {
		return failedAnalysis(req, err.Error())
	}
	return analyze.Analyze(e.life, e.pool, req)
}

func failedAnalysis(req *executorv1.Analyze, message string) *executorv1.AnalyzeResult {
	return &executorv1.AnalyzeResult{RequestId: req.GetRequestId(), Error: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: message}}
}
