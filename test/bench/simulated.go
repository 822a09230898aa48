package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// simulated is an executor whose tasks do nothing: each is reported done as soon as it comes.
type simulated struct {
	gateway executorv1.ExecutorGatewayClient
	session grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse]
	out     chan *executorv1.SessionRequest
	tasks   *atomic.Int64
}

// simulate runs n executors with sessions of their own until ctx ends. joined is called when all of them have registered.
func simulate(ctx context.Context, addr string, n, slots int, joined func()) error {
	g, ctx := errgroup.WithContext(ctx)
	var tasks, up atomic.Int64
	for i := range n {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		g.Go(func() error {
			defer conn.Close()
			e := &simulated{gateway: executorv1.NewExecutorGatewayClient(conn), out: make(chan *executorv1.SessionRequest, 2*slots), tasks: &tasks}
			err := e.run(ctx, fmt.Sprintf("simulated-%03d", i), slots, func() {
				if up.Add(1) == int64(n) {
					joined()
				}
			})
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

func (e *simulated) run(ctx context.Context, id string, slots int, joined func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if e.session, err = e.gateway.Session(ctx); err != nil {
		return err
	}
	reg := &executorv1.Register{ExecutorId: id, Slots: int32(slots), ExchangeAddress: "127.0.0.1:1"} //nolint:gosec // small number
	if err := e.session.Send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: reg}}); err != nil {
		return err
	}
	go func() { // ends with ctx
		for {
			select {
			case m := <-e.out:
				if e.session.Send(m) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		m, err := e.session.Recv()
		if err != nil {
			return err
		}
		switch m := m.Message.(type) {
		case *executorv1.SessionResponse_Registered:
			joined()
		case *executorv1.SessionResponse_Analyze:
			column := &planv1.Column{Name: "n", EngineType: "INTEGER", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}}
			e.out <- &executorv1.SessionRequest{Message: &executorv1.SessionRequest_Analyzed{Analyzed: &executorv1.AnalyzeResult{
				RequestId: m.Analyze.GetRequestId(), Sql: m.Analyze.GetSql(), Columns: []*planv1.Column{column},
			}}}
		case *executorv1.SessionResponse_Launch:
			if err := e.work(ctx, m.Launch.Task); err != nil {
				return err
			}
		}
	}
}

func (e *simulated) work(ctx context.Context, t *planv1.Task) error {
	e.tasks.Add(1)
	st := &executorv1.TaskStatus{Attempt: &executorv1.AttemptRef{JobId: t.JobId, Stage: t.Stage, Task: t.Task, AttemptId: t.AttemptId, Epoch: t.Epoch}}
	if t.GetResult() != nil {
		push, err := e.gateway.PushOutput(ctx)
		if err != nil {
			return err
		}
		if err := push.Send(&executorv1.PushOutputRequest{Attempt: st.Attempt, Last: true}); err != nil {
			return err
		}
		if _, err := push.CloseAndRecv(); err != nil {
			return err
		}
	}
	if t.GetExchange() != nil {
		st.Output = &planv1.ExchangeOutput{}
	}
	select {
	case e.out <- &executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: st}}:
	case <-ctx.Done():
	}
	return nil
}
