package azure

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/signet-io/signet/internal/objects"
)

// Unhurried is a client that waits for nothing.
func (i *Identity) Unhurried(authority string) (objects.Client, error) {
	return i.client(authority, func(ctx context.Context, _ int, _ time.Duration) error { return ctx.Err() })
}

// Place is place.
func (i *Identity) Place(authority string) (container, endpoint string, err error) {
	return i.place(authority)
}

// Endpoint is the account's.
func (i *Identity) Endpoint() string { return i.endpoint }

// Through is the same identity, behind a proxy.
func (i *Identity) Through(proxy string) (*Identity, error) {
	u, err := url.Parse(i.endpoint)
	if err != nil {
		return nil, err
	}
	out := *i
	out.endpoint = proxy + u.Path
	return &out, nil
}

// MakeContainer makes a container, if it is not there.
func (i *Identity) MakeContainer(ctx context.Context, name string) error {
	a := &api{who: i, container: name, endpoint: i.endpoint}
	if err := a.open(http.DefaultClient); err != nil {
		return err
	}
	_, err := a.client.Create(ctx, nil)
	if bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil
	}
	return err
}
