package checkup

import (
	"errors"
	"net/http"

	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// mend says what to do about an error: what the error itself tells, or else what is usual for the step.
func (r *run) mend(err error, usual string) string {
	var e *objects.Error
	isStore := errors.As(err, &e)
	s3s := func(section, name string) string { // other stores have other names there
		if r.scheme != uri.S3 {
			return r.setting(section)
		}
		return r.setting(section) + "." + name
	}
	endpoint := s3s("properties", objects.Endpoint)
	switch {
	case errors.Is(err, credentials.ErrAssume):
		return "check " + r.setting("credentials.role_arn") + ", its trust policy, and that the keys of " + r.setting("secret") + " may assume it; or set credentials.mode: presigned"
	case errors.Is(err, objects.ErrNoBucket):
		return "create the bucket, or correct " + r.setting(r.places) + " or " + endpoint
	case errors.Is(err, objects.ErrRegion):
		return "set " + s3s("properties", objects.Region) + " to the bucket's region"
	case errors.Is(err, objects.ErrSkew):
		return "set this machine's clock, or the store's"
	case errors.Is(err, rest.ErrNotVended):
		return vending
	case r.target.Vended && (errors.Is(err, objects.ErrExpired) || isStore && e.Status == http.StatusForbidden && e.Code != "AccessDenied"): // the keys are the server's
		return "the store does not take what the catalog's server gives: its settings of vending are for another store, or old; compare " + endpoint
	case errors.Is(err, objects.ErrExpired):
		return "renew what " + s3s("secret", objects.SessionToken) + " and the keys beside it refer to"
	case isStore && e.Code == "InvalidAccessKeyId":
		return "correct " + s3s("secret", objects.AccessKeyID) + ", or " + endpoint + " if it is another store's"
	case isStore && e.Code == "SignatureDoesNotMatch":
		return "correct " + s3s("secret", objects.SecretKey)
	case isStore && e.Status == 0 && !errors.Is(err, objects.ErrNotFound) && r.scheme != "": // a web server has no settings
		return "correct " + endpoint + ", or make this machine reach it"
	}
	return usual
}
