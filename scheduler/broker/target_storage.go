package broker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/coordinator"
)

// storageTarget is an object whose creation makes a commit visible.
type storageTarget struct {
	store  storage.Store
	bodies *bodies
}

func (t *storageTarget) send(ctx context.Context, a *coordinator.Attempt) (string, error) {
	if a.Apart == nil {
		_, err := t.store.PutIfAbsent(ctx, a.URI, bytes.NewReader(a.Body))
		return a.URI, err
	}
	f, err := t.bodies.open(a.Apart)
	if err != nil {
		return "", err
	}
	_, err = t.store.PutIfAbsent(ctx, a.URI, f)
	return a.URI, errors.Join(err, f.Close())
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
	same, err := sameBody(o, a)
	if err := errors.Join(err, o.Close()); err != nil {
		return coordinator.Outcome{}, err
	}
	if same {
		return coordinator.Outcome{Kind: coordinator.OutcomeLanded, Version: a.Version, Location: a.URI}, nil
	}
	return outcome(coordinator.OutcomeDead, "version %s was taken by another commit", a.Version), nil
}

// sameBody compares by digest: neither side need be in memory.
func sameBody(o storage.Object, a *coordinator.Attempt) (bool, error) {
	var size int64
	var want []byte
	if a.Apart != nil {
		size, want = a.Apart.Size, a.Apart.SHA256
	} else {
		sum := sha256.Sum256(a.Body)
		size, want = int64(len(a.Body)), sum[:]
	}
	if o.Size() != size {
		return false, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(o, 0, size)); err != nil {
		return false, err
	}
	return bytes.Equal(sum.Sum(nil), want), nil
}
