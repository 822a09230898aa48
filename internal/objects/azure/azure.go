// Package azure is the client of Azure Blob Storage, of accounts with and without a hierarchical namespace: objects.Client over azblob. What it says to the store are the operations of
// S3 by which package objects does its work, so that reads, lists, conditions and what is done after a lost answer are the same.
//
// What differs from S3:
//
//   - A name that is taken is 409 BlobAlreadyExists, not 412.
//   - Uploads in parts have no beginning and no end but the list of blocks: an upload's id is made here, names its blocks, and holds the nonce. What is not completed vanishes by itself
//     after a week.
//   - Executors get shared access signatures of one blob: to create it, or to read it. Conditions are headers that no signature covers; where a file goes as one request, the permission
//     to create does not include that to replace.
//   - Many blobs are removed one by one.
package azure

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/signet-io/signet/internal/objects"
)

// Names of properties: PyIceberg's, and those of Iceberg's Java library where they differ.
const (
	Account       = "adls.account-name" // adls.auth.shared-key.account.name
	JavaAccount   = "adls.auth.shared-key.account.name"
	Authority     = "adls.blob-storage-authority" // .blob.core.windows.net
	Scheme        = "adls.blob-storage-scheme"    // https
	TenantID      = "adls.tenant-id"
	ClientID      = "adls.client-id"
	AuthorityHost = "adls.authority-host" // https://login.microsoftonline.com

	Key          = "adls.account-key" // secret, as the ones below; adls.auth.shared-key.account.key
	JavaKey      = "adls.auth.shared-key.account.key"
	SAS          = "adls.sas-token"
	ClientSecret = "adls.client-secret"
	Connection   = "adls.connection-string"
)

// nonceKey is the metadata by which a write knows its own blob again: names are those of C# there, without dashes.
const nonceKey = "signet_put"

// Identity is who asks, for the containers of one account. It is shared by the clients of a catalog.
type Identity struct {
	account  string // empty: what a URI names
	endpoint string // of the account; empty: by its name
	scheme   string
	suffix   string // of hosts: .blob.core.windows.net
	key      string
	sas      string
	entra    *entra // nil: none
}

// NewIdentity reads properties and secrets. It sends nothing.
func NewIdentity(p objects.Props) (*Identity, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if p[n] != "" {
				return p[n]
			}
		}
		return ""
	}
	i := &Identity{account: first(Account, JavaAccount), key: first(Key, JavaKey), sas: strings.TrimPrefix(p[SAS], "?"), scheme: first(Scheme), suffix: first(Authority)}
	if i.scheme == "" {
		i.scheme = "https"
	}
	if i.suffix == "" {
		i.suffix = ".blob.core.windows.net"
	}
	if text := p[Connection]; text != "" {
		if err := i.connection(text); err != nil {
			return nil, fmt.Errorf("secret %s: %w", Connection, err)
		}
	}
	if p[TenantID] != "" || p[ClientID] != "" || p[ClientSecret] != "" {
		var err error
		if i.entra, err = newEntra(p[AuthorityHost], p[TenantID], p[ClientID], p[ClientSecret]); err != nil {
			return nil, err
		}
	}
	n := 0
	for _, has := range []bool{i.key != "", i.sas != "", i.entra != nil} {
		if has {
			n++
		}
	}
	switch {
	case n == 0:
		return nil, fmt.Errorf("no credentials for Azure: set secret %s, %s or %s, or %s with %s and %s", Key, SAS, Connection, ClientSecret, ClientID, TenantID)
	case n > 1:
		return nil, fmt.Errorf("credentials for Azure: one of %s, %s and %s is enough, and there are %d", Key, SAS, ClientSecret, n)
	case i.key != "" && i.account == "":
		return nil, fmt.Errorf("property %s is missing: whose key is %s?", Account, Key)
	}
	if i.scheme != "https" && i.scheme != "http" {
		return nil, fmt.Errorf("property %s = %q: want https or http", Scheme, i.scheme)
	}
	return i, nil
}

// connection reads a connection string, as Azure's portal shows it. No error repeats it.
func (i *Identity) connection(text string) error {
	for _, pair := range strings.Split(strings.Trim(text, "; \n"), ";") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("want NAME=VALUE;NAME=VALUE, as Azure's portal shows it")
		}
		switch name {
		case "AccountName":
			i.account = value
		case "AccountKey":
			i.key = value
		case "SharedAccessSignature":
			i.sas = value
		case "DefaultEndpointsProtocol":
			i.scheme = value
		case "EndpointSuffix":
			i.suffix = ".blob." + value
		case "BlobEndpoint":
			u, err := url.Parse(value)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
				return fmt.Errorf("BlobEndpoint: want http://host:port/path or https://host")
			}
			i.endpoint = strings.TrimRight(value, "/")
		}
	}
	return nil
}

// place takes what a URI names apart: container@account.dfs.core.windows.net, or only the container.
func (i *Identity) place(authority string) (container, endpoint string, err error) {
	container, host, _ := strings.Cut(authority, "@")
	account, _, _ := strings.Cut(host, ".")
	switch {
	case container == "":
		return "", "", fmt.Errorf("%q names no container: write abfss://container@account.dfs.core.windows.net/path", authority)
	case account == "" && i.account == "":
		return "", "", fmt.Errorf("%q names no account: write abfss://container@account.dfs.core.windows.net/path, or set %s", authority, Account)
	case account != "" && i.account != "" && account != i.account:
		return "", "", fmt.Errorf("%q is of account %s, and the credentials are those of %s", authority, account, i.account)
	case i.endpoint != "":
		return container, i.endpoint, nil
	case host != "" && strings.Contains(host, "."):
		return container, i.scheme + "://" + strings.Replace(host, ".dfs.", ".blob.", 1), nil
	case account == "":
		account = i.account
	}
	return container, i.scheme + "://" + account + i.suffix, nil
}

// Client is for one container, as the authority of its URIs names it. It sends nothing.
func (i *Identity) Client(authority string) (objects.Client, error) { return i.client(authority, nil) }

func (i *Identity) client(authority string, pause func(context.Context, int, time.Duration) error) (objects.Client, error) {
	container, endpoint, err := i.place(authority)
	if err != nil {
		return nil, err
	}
	a := &api{who: i, container: container, endpoint: endpoint}
	return objects.NewOver(authority, objects.Dialect{
		Scheme: "abfss", Endpoint: Account, Pause: pause, Hints: hints, Sign: a.sign,
		API: func(t http.RoundTripper) (objects.API, error) {
			return a, a.open(&http.Client{Transport: t, CheckRedirect: noRedirect})
		},
	})
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// means are the codes of S3 that mean the same.
var means = map[string]string{
	"BlobNotFound": "NoSuchKey", "ContainerNotFound": "NoSuchBucket", "ContainerBeingDeleted": "NoSuchBucket", "ResourceNotFound": "NoSuchKey", "ServerBusy": "SlowDown",
	"BlobAlreadyExists": "PreconditionFailed", "ConditionNotMet": "PreconditionFailed", "Md5Mismatch": "BadDigest", "Crc64Mismatch": "BadDigest", "BlobArchived": "InvalidObjectState",
	"AuthenticationFailed": "SignatureDoesNotMatch", "AccountBeingCreated": "SlowDown", "RequestBodyTooLarge": "EntityTooLarge",
}

// hints say what to do, by the store's code or the status of another one.
var hints = map[string]string{
	"AuthenticationFailed": Key + " or " + SAS + " is wrong or over, or this machine's clock is more than 15 minutes off",
	"403":                  "grant the identity the permission for this step (the role Storage Blob Data Contributor)",
	"401":                  "grant the identity the permission for this step (the role Storage Blob Data Contributor)",
	"ContainerNotFound":    "create the container, or correct its name",
	"LeaseIdMissing":       "somebody holds a lease on the blob: break it",
}
