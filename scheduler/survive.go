package scheduler

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// survive turns a panic of one call into its error: a defect here must not take the jobs of others along.
func (s *Server) survive() []grpc.ServerOption {
	rescue := func(method string, err *error) {
		if r := recover(); r != nil {
			s.log.Error("call panicked", "method", method, "panic", r, "stack", stack())
			*err = status.Errorf(codes.Internal, "internal error: %v; the scheduler's log has the stack", r)
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
			defer rescue(info.FullMethod, &err)
			return h(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
			defer rescue(info.FullMethod, &err)
			return h(srv, ss)
		}),
	}
}
