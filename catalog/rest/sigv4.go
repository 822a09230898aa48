package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const (
	defaultService = "execute-api"
	// skew is how far the clocks must be apart before the server's is taken.
	skew = time.Minute
)

// signer signs requests as AWS wants them (Signature Version 4).
type signer struct {
	v4              *v4.Signer
	service, region string

	mu     sync.Mutex
	creds  aws.CredentialsProvider // nil: not looked for yet
	offset time.Duration           // of the server's clock
}

func newSigner(o Options) (*signer, error) {
	text := o.Properties[propSigV4]
	if text == "" {
		return nil, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q: want true or false", propSigV4, text)
	}
	if !on {
		return nil, nil
	}
	s := &signer{v4: v4.NewSigner(), service: o.Properties[propSigningName], region: o.Properties[propSigningArea]}
	if s.service == "" {
		s.service = defaultService
	}
	if s.region == "" {
		s.region = o.Properties["s3.region"]
	}
	if s.region == "" {
		return nil, fmt.Errorf("%s: it is missing; signed requests name the region of the catalog, such as us-east-1", propSigningArea)
	}
	for _, kind := range []string{"rest.", "s3."} {
		key, secret := o.Secrets[kind+"access-key-id"], o.Secrets[kind+"secret-access-key"]
		if (key == "") != (secret == "") {
			return nil, fmt.Errorf("secret: %saccess-key-id and %ssecret-access-key go together", kind, kind)
		}
		if key != "" {
			s.creds = credentials.NewStaticCredentialsProvider(key, secret, o.Secrets[kind+"session-token"])
			break
		}
	}
	return s, nil
}

// provider is what the operator wrote, or the environment's usual chain.
func (s *signer) provider(ctx context.Context) (aws.CredentialsProvider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creds == nil {
		conf, err := config.LoadDefaultConfig(ctx, config.WithRegion(s.region))
		if err != nil {
			return nil, err
		}
		s.creds = conf.Credentials
	}
	return s.creds, nil
}

// sign adds the signature to h. A bearer token moves to the header that Iceberg's Java client moves it to.
func (s *signer) sign(ctx context.Context, r call, h http.Header) error {
	p, err := s.provider(ctx)
	if err != nil {
		return fmt.Errorf("credentials to sign with: %w", err)
	}
	creds, err := p.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("credentials to sign with: %w", err)
	}
	if bearer := h.Get("Authorization"); bearer != "" {
		h.Del("Authorization")
		h.Set("Original-Authorization", bearer)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return errors.New("the address of the request cannot be used")
	}
	req.Header = h
	sum := sha256.Sum256(r.body)
	payload := hex.EncodeToString(sum[:])
	h.Set("X-Amz-Content-Sha256", payload)
	s.mu.Lock()
	now := time.Now().Add(s.offset)
	s.mu.Unlock()
	return s.v4.SignHTTP(ctx, creds, req, payload, s.service, s.region, now.UTC())
}

// clockErrors are in answers to requests whose time is not the server's. They decide only whether to ask again with the server's time.
var clockErrors = []string{"RequestTimeTooSkewed", "InvalidSignatureException", "Signature expired", "Signature not yet current", "RequestExpired"}

// learn takes the server's clock, if that is why it refused. true: ask again.
func (s *signer) learn(a *answer) bool {
	found := false
	for _, text := range clockErrors {
		found = found || bytes.Contains(a.body, []byte(text)) || a.header.Get("X-Amzn-Errortype") == text
	}
	at, err := http.ParseTime(a.header.Get("Date"))
	if !found || err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	offset := time.Until(at)
	if (offset - s.offset).Abs() < skew {
		return false
	}
	s.offset = offset
	return true
}
