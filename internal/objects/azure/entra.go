package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/signet-io/signet/internal/objects"
)

const (
	login        = "https://login.microsoftonline.com"
	storageScope = "https://storage.azure.com/.default"
	patience     = 30 * time.Second // for a token
)

// entra gets tokens of an application from Entra ID, with its secret. It implements azcore.TokenCredential.
type entra struct{ source oauth2.TokenSource }

func newEntra(host, tenant, id, secret string) (*entra, error) {
	if tenant == "" || id == "" || secret == "" {
		return nil, fmt.Errorf("%s, %s and %s belong together; one of them is missing", TenantID, ClientID, ClientSecret)
	}
	if host == "" {
		host = login
	}
	if u, err := url.Parse(host); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("property %s: want https://host", AuthorityHost)
	}
	c := clientcredentials.Config{
		ClientID: id, ClientSecret: secret, TokenURL: strings.TrimRight(host, "/") + "/" + url.PathEscape(tenant) + "/oauth2/v2.0/token", Scopes: []string{storageScope},
		AuthStyle: oauth2.AuthStyleInParams,
	}
	return &entra{c.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: patience}))}, nil
}

// GetToken implements azcore.TokenCredential.
func (e *entra) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	t, err := e.source.Token()
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response != nil { // its text holds the whole answer
			err = fmt.Errorf("no token is given: the answer is %d %s; correct %s, %s and %s", refused.Response.StatusCode, refused.ErrorCode, TenantID, ClientID, ClientSecret)
		}
		return azcore.AccessToken{}, objects.SourceFailed(err)
	}
	return azcore.AccessToken{Token: t.AccessToken, ExpiresOn: t.Expiry}, nil
}
