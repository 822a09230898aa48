package broker

import (
	"bytes"
	"context"
	"errors"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
)

// storageTarget is an object whose creation makes a commit visible.
type storageTarget struct{ store storage.Store }

func (t *storageTarget) send(ctx context.Context, a *coordinator.Attempt) (string, error) {
	_, err := t.store.PutIfAbsent(ctx, a.URI, bytes.NewReader(a.Body))
	return a.URI, err
}

// look compares what stands under the name. The name is taken for good: whoever holds it has won.
func (t *storageTarget) look(ctx context.Context, a *coordinator.Attempt) (coordinator.Outcome, error) {
	o, err := t.store.Open(ctx, a.URI)
	if errors.Is(err, storage.ErrNotFound) {
		return outcome(coordinator.OutcomeUnknown, "the object does not exist"), nil
	}
	if err != nil {
		return coordinator.Outcome{}, err
	}
	size := o.Size()
	if err := o.Close(); err != nil {
		return coordinator.Outcome{}, err
	}
	if size == int64(len(a.Body)) {
		there, err := readAll(ctx, t.store, a.URI, coordinator.MaxBody)
		if err != nil {
			return coordinator.Outcome{}, err
		}
		if bytes.Equal(there, a.Body) {
			return coordinator.Outcome{Kind: coordinator.OutcomeLanded, Version: a.Version, Location: a.URI}, nil
		}
	}
	return outcome(coordinator.OutcomeDead, "version %s was taken by another commit", a.Version), nil
}
