package sinktest

import (
	"context"
	"errors"
	"io"
	"net"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/sdk"
)

type sealService struct {
	hostv1.UnimplementedSealServer
	h *Host
}

// Take seals: from here on the request may be under way.
func (s sealService) Take(ctx context.Context, req *hostv1.TakeRequest) (*hostv1.TakeResponse, error) {
	l, err := s.h.enter(ctx, "Take")
	if err != nil {
		return nil, err
	}
	if err := s.h.vet(l, req.GetCommitPoint()); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	s.h.asked++
	n, before, refuse := s.h.asked, s.h.before, s.h.refuse
	s.h.mu.Unlock()
	if before != nil {
		before(n)
	}
	s.h.mu.Lock()
	closed := s.h.fenced || l.revoked
	s.h.mu.Unlock()
	if closed {
		return nil, sdk.Refuse(sdk.Fenced, "the job was cancelled")
	}
	if refuse != nil {
		if err := refuse(n); err != nil {
			return nil, err
		}
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.h.sealed[int64(n)] = req.GetCommitPoint()
	return &hostv1.TakeResponse{Attempt: int64(n)}, nil
}

func (s sealService) Report(ctx context.Context, req *hostv1.ReportRequest) (*hostv1.ReportResponse, error) {
	if _, err := s.h.enter(ctx, "Report"); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	point, after := s.h.sealed[req.GetAttempt()], s.h.after
	landed := req.GetKind() == hostv1.RefusalKind_REFUSAL_KIND_UNSPECIFIED
	if point != nil && landed {
		s.h.commits = append(s.h.commits, point)
	}
	if req.GetKind() != sdk.Unknown {
		delete(s.h.sealed, req.GetAttempt())
	}
	s.h.mu.Unlock()
	if point == nil {
		return nil, s.h.overstepped("report attempt %d, which is not open", req.GetAttempt())
	}
	if landed && after != nil {
		if err := after(int(req.GetAttempt())); err != nil {
			return nil, err
		}
	}
	return &hostv1.ReportResponse{}, nil
}

type secretsService struct {
	hostv1.UnimplementedSecretsServer
	h *Host
}

func (s secretsService) GetSecret(ctx context.Context, req *hostv1.GetSecretRequest) (*hostv1.GetSecretResponse, error) {
	if _, err := s.h.enter(ctx, "GetSecret"); err != nil {
		return nil, err
	}
	v, ok := s.h.secrets[req.GetName()]
	if !ok {
		return nil, s.h.overstepped("read the secret %q, which nobody listed", req.GetName())
	}
	return &hostv1.GetSecretResponse{Value: []byte(v)}, nil
}

type dialService struct {
	hostv1.UnimplementedDialServer
	h *Host
}

// Dial proxies to a listed address.
func (s dialService) Dial(stream hostv1.Dial_DialServer) error {
	if _, err := s.h.enter(stream.Context(), "Dial"); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	address, ok := s.h.dial[first.GetName()]
	if !ok {
		return s.h.overstepped("dial %q, which nobody listed", first.GetName())
	}
	conn, err := (&net.Dialer{}).DialContext(stream.Context(), "tcp", address)
	if err != nil {
		return sdk.Refuse(sdk.Retryable, "dial %s: %v", first.GetName(), err)
	}
	defer conn.Close()
	go func() {
		data := first.GetData()
		for {
			if _, err := conn.Write(data); err != nil {
				break
			}
			m, err := stream.Recv()
			if err != nil {
				break
			}
			data = m.GetData()
		}
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.CloseWrite()
		}
	}()
	stop := context.AfterFunc(stream.Context(), func() { _ = conn.Close() })
	defer stop()
	buf := make([]byte, rpc.Chunk)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if err := stream.Send(&hostv1.DialResponse{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || stream.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return sdk.Refuse(sdk.Retryable, "the connection to %s broke: %v", first.GetName(), err)
		}
	}
}

type logService struct {
	hostv1.UnimplementedLogServer
	h *Host
}

func (s logService) Write(ctx context.Context, req *hostv1.WriteRequest) (*hostv1.WriteResponse, error) {
	if _, err := s.h.enter(ctx, "Log"); err != nil {
		return nil, err
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	line := req.GetMessage()
	for k, v := range req.GetAttributes() {
		line += " " + k + "=" + v
	}
	s.h.messages = append(s.h.messages, line)
	return &hostv1.WriteResponse{}, nil
}

type progressService struct {
	hostv1.UnimplementedProgressServer
	h *Host
}

func (s progressService) Update(ctx context.Context, _ *hostv1.UpdateRequest) (*hostv1.UpdateResponse, error) {
	_, err := s.h.enter(ctx, "Progress")
	return &hostv1.UpdateResponse{}, err
}
