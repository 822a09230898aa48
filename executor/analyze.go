package executor

import (
	"fmt"
	"runtime/debug"

	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze"
	"github.com/signet-io/signet/internal/bounded"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/rpc"
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
	req, done, perr := e.stageAnalysis(req)
	if perr != nil {
		return sendable(&executorv1.AnalyzeResult{RequestId: req.GetRequestId(), Error: perr})
	}
	defer func() { done(res) }()
	if req.GetSplice() != nil {
		return sendable(e.spliceReport(req))
	}
	if req.GetAddFiles() != nil && len(req.GetSources()) == 1 {
		return sendable(e.addFilesReport(req))
	}
	return sendable(analyze.Analyze(e.life, e.pool, req))
}

// sendable makes an answer fit into a message: a query of many megabytes is not taken apart, and one that is too large even so is refused.
func sendable(res *executorv1.AnalyzeResult) *executorv1.AnalyzeResult {
	res.Error = bounded.Error(res.GetError())
	res.PlanText = bounded.Text(res.GetPlanText(), maxPlanText)
	if proto.Size(res) <= rpc.MaxPayload {
		return res
	}
	res.Staged = nil
	if res.NotRowWise == "" {
		res.NotRowWise, res.RowWise = "its text is too long to be taken apart", false
	}
	if n := proto.Size(res); n > rpc.MaxPayload {
		return &executorv1.AnalyzeResult{RequestId: res.GetRequestId(), Error: &planv1.Error{
			Class: planv1.ErrorClass_ERROR_CLASS_LIMIT, Message: fmt.Sprintf("what is known of the statement after its analysis takes %d bytes; at most %d can be sent", n, rpc.MaxPayload),
			Hint: "read large values from files instead of literals, and name columns that are long expressions",
		}}
	}
	return res
}

// maxPlanText bounds DuckDB's own plan, which is for EXPLAIN.
const maxPlanText = 256 << 10

func failedAnalysis(req *executorv1.Analyze, message string) *executorv1.AnalyzeResult {
	return &executorv1.AnalyzeResult{RequestId: req.GetRequestId(), Error: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_INTERNAL, Message: message}}
}
