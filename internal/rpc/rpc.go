// Package rpc holds the settings that both ends of every gRPC channel must share. A limit raised on one side only works in tests
// and fails on the first large message (multigres/multigres#1214).
//
// Invariants: every server is built with ServerOptions and every connection with DialOptions; larger things than MaxMessage are streamed in
// chunks of at most Chunk bytes.
package rpc

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// MaxMessage caps a gRPC message, in bytes, in both directions on every channel.
	MaxMessage = 16 << 20
	// MaxPayload is what fits into a message beside its envelope, in bytes.
	MaxPayload = MaxMessage - 64<<10
	// Chunk is the largest payload of one message of a stream, in bytes.
	Chunk = 1 << 20
	// workers of a server take the calls. A call whose goroutine is its own grows a stack each time; with more calls than workers the others get one.
	workers = 16
)

// ServerOptions are the options of every server.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.NumStreamWorkers(workers),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 20 * time.Second}),
	}
}

// DialOptions are the options of every connection.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 20 * time.Second, PermitWithoutStream: true}),
	}
}
