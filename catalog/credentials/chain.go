package credentials

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/signet-io/signet/internal/objects"
)

// DefaultChain finds credentials where AWS's own tools do: variables, shared files, a container's or machine's role. It looks when it is first asked, and again when they run out.
func DefaultChain(region string) objects.Source {
	chain := &chain{region: region}
	return chain.credentials
}

type chain struct {
	region string
	once   onceOK[objects.Source]
}

func (c *chain) credentials(ctx context.Context) (objects.Credentials, error) {
	source, err := c.once.do(func() (objects.Source, error) {
		cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(c.region))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (objects.Credentials, error) {
			k, err := cfg.Credentials.Retrieve(ctx)
			if err != nil {
				return objects.Credentials{}, fmt.Errorf("no credentials for S3: neither secret has s3.access-key-id, nor is there one of those that AWS's tools use: %w", err)
			}
			out := objects.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}
			if k.CanExpire {
				out.Expires = k.Expires
			}
			return out, nil
		}, nil
	})
	if err != nil {
		return objects.Credentials{}, err
	}
	return source(ctx)
}
