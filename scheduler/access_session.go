package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/config"
)

// sessions gives attempts credentials of a store, each bounded to the attempt's prefix.
type sessions struct {
	sts   *credentials.STS
	props map[string]string // where the store is; no keys
	life  time.Duration
}

// newSessions is for a catalog with a role; nil: it has none, and attempts get single requests signed.
func newSessions(c config.Catalog, source objects.Source) (*sessions, error) {
	o := c.Credentials
	if o.RoleARN == "" || o.Mode == config.CredentialsPresigned {
		return nil, nil
	}
	props := map[string]string{}
	for _, name := range []string{objects.Endpoint, objects.Region, objects.ClientRegion, objects.PathStyle, objects.VirtualHosts} {
		if v, ok := c.Properties[name]; ok {
			props[name] = v
		}
	}
	endpoint := o.STSEndpoint
	if endpoint == "" {
		endpoint = props[objects.Endpoint]
	}
	s, err := credentials.NewSTS(credentials.STSOptions{RoleARN: o.RoleARN, ExternalID: o.ExternalID, Endpoint: endpoint, Region: props[objects.Region], Source: source})
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return &sessions{sts: s, props: props, life: o.Duration}, nil
}

// open makes a session for an attempt's prefix. nil: no policy can bound one to it, so that requests have to be signed one by one.
func (s *sessions) open(ctx context.Context, job, attempt, prefix string) (*executorv1.StoreAccess, time.Duration, error) {
	at, err := uri.Parse(prefix)
	if err != nil {
		return nil, 0, err
	}
	if at.Scheme != uri.S3 {
		return nil, 0, nil
	}
	policy, err := credentials.Policy(s.sts.Partition(), at.Authority, at.Segments, nil)
	if errors.Is(err, credentials.ErrUnsafe) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	c, left, err := s.sts.Session(ctx, short(job)+"-"+short(attempt), policy, s.life)
	if errors.Is(err, credentials.ErrPolicyTooLarge) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	props := maps.Clone(s.props)
	props[objects.AccessKeyID], props[objects.SecretKey], props[objects.SessionToken] = c.AccessKeyID, c.SecretAccessKey, c.SessionToken
	return &executorv1.StoreAccess{Prefix: prefix, Properties: props}, left, nil
}

// short is the end of an id, of which the beginning is the time for jobs.
func short(id string) string { return id[strings.LastIndexByte(id, '-')+1:] }

// writeSession answers an attempt that asks for a session.
func (s *Server) writeSession(ctx context.Context, a *attempt, until *time.Time) (*executorv1.StoreAccess, error) {
	w, err := a.writes()
	if err != nil {
		return nil, err
	}
	sessions := w.target.entry.sessions
	prefix := attemptPrefix(w.spec, a.ref.GetJobId(), a.ref.GetStage(), a.ref.GetTask(), a.ref.GetAttemptId())
	if sessions == nil || !isRemote(prefix) {
		return nil, nil
	}
	out, left, err := sessions.open(ctx, a.ref.GetJobId(), a.ref.GetAttemptId(), prefix)
	if err != nil {
		return nil, fmt.Errorf("files below %s: %w", prefix, err)
	}
	if at := time.Now().Add(left); out != nil && at.Before(*until) {
		*until = at
	}
	return out, nil
}
