package credentials

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/signet-io/signet/internal/objects"
)

// STSOptions say how sessions are made.
type STSOptions struct {
	RoleARN    string         // arn:aws:iam::123456789012:role/name; what the sessions are narrowed from
	ExternalID string         // which the role's trust policy may ask for
	Endpoint   string         // "": that of AWS in the region
	Region     string         // "": us-east-1
	Source     objects.Source // of the keys that may assume the role
	Client     *http.Client   // nil: one of its own
}

// STS makes sessions of a role, each narrowed to what a policy says. It is safe for concurrent use.
type STS struct {
	o         STSOptions
	partition string
	client    *sts.Client
	slots     chan struct{} // requests at a time: STS throttles
}

// What callers tell apart with errors.Is.
var (
	// ErrPolicyTooLarge: STS packs policies, and this one does not fit. Presigned requests do without.
	ErrPolicyTooLarge = errors.New("policy is too large for STS")
	// ErrAssume: the role cannot be assumed; asking again is useless until somebody changes a policy.
	ErrAssume = errors.New("role cannot be assumed")
)

// Bounds of a session's life by AWS, in seconds. A role that was assumed with a session of its own lives for an hour at most.
const (
	MinSession = 15 * time.Minute
	MaxSession = time.Hour
)

var roleARN = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]*:role/[\w+=,.@/-]{1,512}$`)

// NewSTS checks the options; it sends nothing.
func NewSTS(o STSOptions) (*STS, error) {
	// SeaweedFS writes arn:aws:iam::role/name: no account.
	partition, ok := "aws", strings.HasPrefix(o.RoleARN, "arn:aws:iam::role/")
	if m := roleARN.FindStringSubmatch(o.RoleARN); m != nil {
		partition, ok = m[1], true
	}
	if !ok {
		return nil, fmt.Errorf("role %q: want arn:aws:iam::ACCOUNT:role/NAME", o.RoleARN)
	}
	if o.Source == nil {
		return nil, errors.New("no credentials that could assume a role")
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	s := &STS{o: o, partition: partition, slots: make(chan struct{}, 16)}
	options := sts.Options{
		Region:     o.Region,
		HTTPClient: o.Client,
		Retryer:    retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts = 5; r.MaxBackoff = 5 * time.Second }),
		Credentials: aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			c, err := o.Source(ctx)
			return aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}, err
		}),
	}
	if o.Endpoint != "" {
		options.BaseEndpoint = aws.String(o.Endpoint)
	}
	s.client = sts.New(options)
	return s, nil
}

// Partition is that of the role, of which a policy's resources are.
func (s *STS) Partition() string { return s.partition }

// Session assumes the role under a name, narrowed by the policy, for so long (bounded by MinSession and MaxSession). How long it lives from now on is told by the server's
// own clock, whatever this machine's says.
func (s *STS) Session(ctx context.Context, name, policy string, life time.Duration) (objects.Credentials, time.Duration, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return objects.Credentials{}, 0, ctx.Err()
	}
	in := &sts.AssumeRoleInput{
		RoleArn: aws.String(s.o.RoleARN), RoleSessionName: aws.String(sessionName(name)), DurationSeconds: aws.Int32(int32(min(max(life, MinSession), MaxSession) / time.Second)),
	}
	if policy != "" {
		in.Policy = aws.String(policy)
	}
	if s.o.ExternalID != "" {
		in.ExternalId = aws.String(s.o.ExternalID)
	}
	var date time.Time
	asked := time.Now()
	out, err := s.client.AssumeRole(ctx, in, func(o *sts.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error { return stack.Deserialize.Add(dateOf(&date), middleware.After) })
	})
	if err != nil {
		return objects.Credentials{}, 0, s.explain(err)
	}
	c := out.Credentials
	if c == nil || aws.ToString(c.AccessKeyId) == "" || aws.ToString(c.SecretAccessKey) == "" || aws.ToString(c.SessionToken) == "" {
		return objects.Credentials{}, 0, fmt.Errorf("assume role %s: the answer holds no session", s.o.RoleARN)
	}
	left := min(max(life, MinSession), MaxSession) - time.Since(asked)
	if c.Expiration != nil && !date.IsZero() {
		left = min(left, c.Expiration.Sub(date)-time.Since(asked))
	}
	if left <= 0 {
		return objects.Credentials{}, 0, fmt.Errorf("assume role %s: the session has run out already: %w", s.o.RoleARN, objects.ErrExpired)
	}
	return objects.Credentials{
		AccessKeyID: *c.AccessKeyId, SecretAccessKey: *c.SecretAccessKey, SessionToken: *c.SessionToken, Expires: time.Now().Add(left),
	}, left, nil
}

// dateOf notes what the server's clock says.
func dateOf(date *time.Time) middleware.DeserializeMiddleware {
	return middleware.DeserializeMiddlewareFunc("SignetDate", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleDeserialize(ctx, in)
		if r, ok := out.RawResponse.(*smithyhttp.Response); ok {
			if t, err := http.ParseTime(r.Header.Get("Date")); err == nil {
				*date = t
			}
		}
		return out, meta, err
	})
}

func (s *STS) explain(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Errorf("assume role %s: %w", s.o.RoleARN, err)
	}
	say := func(kind error, hint string) error {
		return fmt.Errorf("assume role %s: %s: %s; %s: %w", s.o.RoleARN, api.ErrorCode(), api.ErrorMessage(), hint, kind)
	}
	switch api.ErrorCode() {
	case "PackedPolicyTooLarge", "PackedPolicyTooLargeException":
		return say(ErrPolicyTooLarge, "the attempt is given presigned requests instead")
	case "AccessDenied", "AccessDeniedException":
		return say(ErrAssume, "the role's trust policy has to allow sts:AssumeRole for the scheduler's own keys, and those have to be allowed to ask")
	case "InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException", "InvalidAccessKeyId":
		return say(ErrAssume, "check s3.access-key-id and s3.secret-access-key")
	case "ExpiredToken", "ExpiredTokenException":
		return say(objects.ErrExpired, "the scheduler's own credentials have run out")
	case "RegionDisabledException":
		return say(ErrAssume, "STS is not on in this region")
	case "MalformedPolicyDocument", "MalformedPolicyDocumentException", "ValidationError":
		return say(ErrAssume, "STS does not take the policy of an attempt; credentials.mode: presigned does without")
	case "RequestExpired", "RequestTimeTooSkewed":
		return say(objects.ErrSkew, "this machine's clock differs from the server's; set it right")
	}
	return fmt.Errorf("assume role %s: %s: %s", s.o.RoleARN, api.ErrorCode(), api.ErrorMessage())
}

var notInName = regexp.MustCompile(`[^\w+=,.@-]`)

// sessionName is what the store's own log shows: 2 to 64 characters.
func sessionName(name string) string {
	name = notInName.ReplaceAllString(name, "-")
	return ("signet-" + name)[:min(64, len("signet-")+len(name))]
}

// LogValue holds no key.
func (s *STS) LogValue() slog.Value { return slog.StringValue(s.o.RoleARN) }
