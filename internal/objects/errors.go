package objects

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/signet-io/signet/internal/bounded"
)

// verdict says what is known of a request that failed.
type verdict int

const (
	refused verdict = iota // nothing happened, and asking again is useless
	again                  // nothing happened, and asking again may help
	doubt                  // it may have taken effect
)

// codeNoSuchUpload is an error to some callers only.
const codeNoSuchUpload = "NoSuchUpload"

type class struct {
	err     error
	verdict verdict
	hint    string
}

// byCode are the codes of S3 that mean the same on every store; what is not among them goes by its HTTP status.
var byCode = map[string]class{
	"NoSuchKey": {err: ErrNotFound}, "NotFound": {err: ErrNotFound}, codeNoSuchUpload: {err: ErrNotFound, hint: "the upload was completed or aborted"},
	"NoSuchBucket":       {err: ErrNoBucket, hint: "create the bucket, or correct its name"},
	"AccessDenied":       {err: ErrDenied, hint: "the credentials lack the permission for this step"},
	"AllAccessDisabled":  {err: ErrDenied},
	"AccountProblem":     {err: ErrDenied},
	"InvalidAccessKeyId": {err: ErrDenied, hint: "the store does not know the access key: s3.access-key-id is wrong, or belongs to another endpoint"},
	"SignatureDoesNotMatch": {
		err: ErrDenied, hint: "s3.secret-access-key is wrong, or something between here and the store changes requests",
	},
	"ExpiredToken": {err: ErrExpired}, "ExpiredTokenException": {err: ErrExpired}, "TokenRefreshRequired": {err: ErrExpired},
	"InvalidToken":                       {err: ErrExpired, hint: "the session token is over, or belongs to another store"},
	"RequestTimeTooSkewed":               {err: ErrSkew, hint: "set this machine's clock, or the store's: they are more than 15 minutes apart"},
	"RequestExpired":                     {err: ErrSkew},
	"PermanentRedirect":                  {err: ErrRegion},
	"TemporaryRedirect":                  {err: ErrRegion},
	"AuthorizationHeaderMalformed":       {err: ErrRegion},
	"AuthorizationQueryParametersError":  {err: ErrRegion},
	"IllegalLocationConstraintException": {err: ErrRegion},
	"SlowDown":                           {err: ErrBusy, verdict: again},
	"SlowDownRead":                       {err: ErrBusy, verdict: again},
	"SlowDownWrite":                      {err: ErrBusy, verdict: again},
	"TooManyRequests":                    {err: ErrBusy, verdict: again},
	"TooManyRequestsException":           {err: ErrBusy, verdict: again},
	"Throttling":                         {err: ErrBusy, verdict: again},
	"ThrottlingException":                {err: ErrBusy, verdict: again},
	"RequestLimitExceeded":               {err: ErrBusy, verdict: again},
	"BandwidthLimitExceeded":             {err: ErrBusy, verdict: again},
	"ConditionalRequestConflict":         {err: ErrBusy, verdict: again}, // another conditional write is going on: nothing was decided
	"OperationAborted":                   {err: ErrBusy, verdict: again},
	"RequestTimeout":                     {err: ErrBusy, verdict: again},
	"IncompleteBody":                     {err: errDamaged, verdict: again},
	"BadDigest":                          {err: errDamaged, verdict: again},
	"XAmzContentSHA256Mismatch":          {err: errDamaged, verdict: again},
	"XAmzContentChecksumMismatch":        {err: errDamaged, verdict: again},
	"EntityTooLarge":                     {err: errors.New("object too large")},
	"NotImplemented":                     {err: errors.New("the store cannot do this")},
	"InvalidObjectState":                 {err: ErrDenied, hint: "the object is archived: restore it first"},
}

var errDamaged = errors.New("the body did not arrive as it was sent")

// explain makes this package's error of the SDK's. Nothing of a URL but its path is in it: a query may be a credential.
func (c *s3Client) explain(ctx context.Context, op, key string, err error) (*Error, verdict) {
	if e := new(Error); errors.As(err, &e) {
		return e, refused
	}
	e := &Error{Op: op, URI: c.URI(key)}
	if err := ctx.Err(); err != nil {
		e.Err = context.Cause(ctx)
		return e, doubt
	}
	if said := new(Answer); errors.As(err, &said) {
		e.Status, e.Code, e.RequestID = said.Status, clip(said.Code), clip(said.RequestID)
		return e, c.classify(e, cmp.Or(said.Means, said.Code), "", said.Header)
	}
	var re *awshttp.ResponseError
	var header http.Header
	if errors.As(err, &re) {
		e.RequestID = re.ServiceRequestID()
		if re.Response != nil && re.Response.Response != nil {
			e.Status, header = re.HTTPStatusCode(), re.Response.Header
		}
	}
	var api smithy.APIError
	if errors.As(err, &api) && e.Status != 0 {
		e.Code = clip(api.ErrorCode())
		if e.Code == "UnknownError" {
			e.Code = ""
		}
		return e, c.answered(e, clip(api.ErrorMessage()), header)
	}
	if e.Status >= 300 {
		return e, c.answered(e, "", header)
	}
	return e, c.unanswered(e, err)
}

// answered classifies a failure that the store has told.
func (c *s3Client) answered(e *Error, message string, header http.Header) verdict {
	return c.classify(e, e.Code, message, header)
}

// classify goes by a code of S3.
func (c *s3Client) classify(e *Error, code, message string, header http.Header) verdict {
	k, known := byCode[code]
	if !known {
		k = byStatus(e.Status)
	}
	e.Err, e.Hint = k.err, k.hint
	if hint, ok := c.words.Hints[e.Code]; ok {
		e.Hint = hint
	} else if hint, ok := c.words.Hints[strconv.Itoa(e.Status)]; ok && !known {
		e.Hint = hint
	}
	if strings.EqualFold(message, e.Code) || message == http.StatusText(e.Status) {
		message = ""
	}
	switch {
	case k.err == nil && message == "":
		e.Err = fmt.Errorf("the store answered %d %s", e.Status, http.StatusText(e.Status))
	case k.err == nil:
		e.Err = fmt.Errorf("the store answered %d: %s", e.Status, message)
	case message != "":
		e.Err = fmt.Errorf("%w: %s", k.err, message)
	}
	if errors.Is(e.Err, ErrRegion) {
		e.Hint = "set " + Region + " to the bucket's region"
		if right := header.Get("X-Amz-Bucket-Region"); right != "" && right != c.at.region {
			e.Hint = fmt.Sprintf("set %s to %s: the request went to %s", Region, clip(right), c.at.region)
		}
	}
	if errors.Is(e.Err, ErrNoBucket) && c.at.endpoint != "" {
		e.Hint += ", or " + c.words.Endpoint
	}
	return k.verdict
}

func byStatus(status int) class {
	switch {
	case status == http.StatusNotFound:
		return class{err: ErrNotFound}
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return class{err: ErrDenied, hint: "the credentials are wrong, or lack the permission for this step"}
	case status == http.StatusPreconditionFailed:
		return class{err: ErrChanged}
	case status == http.StatusMovedPermanently, status == http.StatusTemporaryRedirect:
		return class{err: ErrRegion}
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return class{err: ErrBusy, verdict: doubt}
	case status == http.StatusNotImplemented:
		return byCode["NotImplemented"]
	case status >= 500, status < 400, status == http.StatusRequestTimeout:
		return class{verdict: doubt}
	}
	return class{verdict: refused}
}

// unanswered classifies a request whose answer never came.
func (c *s3Client) unanswered(e *Error, err error) verdict {
	if u := new(url.Error); errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	var dial *net.OpError
	var cert *tls.CertificateVerificationError
	var own *sourceError
	switch {
	case errors.As(err, &own):
		e.Err, e.Hint = own.err, "the credentials for the store could not be had"
		return refused
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Err, e.Hint = fmt.Errorf("no host %s", dns.Name), "correct "+c.words.Endpoint
		return refused
	case errors.As(err, &cert):
		e.Err, e.Hint = cert, "the store's certificate is not trusted on this machine"
		return refused
	case errors.As(err, &dial) && dial.Op == "dial":
		e.Err, e.Hint = dial, "nothing answers there: correct "+c.words.Endpoint+", or start the store"
		return again
	}
	e.Err = errors.New(withoutQuery(err.Error()))
	if known := new(smithy.SerializationError); errors.As(err, &known) {
		return refused
	}
	return doubt
}

// withoutQuery takes the query off every URL in a text.
func withoutQuery(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		if strings.Contains(w, "://") {
			words[i], _, _ = strings.Cut(w, "?")
		}
	}
	return strings.Join(words, " ")
}

// clip bounds what a store says, and takes out what would make lines of it, or is a signature.
func clip(text string) string {
	return withoutQuery(bounded.Line(text, 300))
}

// SourceFailed marks the failure of credentials: nothing was sent.
func SourceFailed(err error) error { return &sourceError{err} }

// sourceError marks the failure of a Source.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return "credentials: " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }
