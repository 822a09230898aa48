package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// readHint gives the version that the last checkpoint is said to be of, -1 if nothing is said. What cannot be understood says nothing: it saves a listing, and no more hangs on
// it. A failure to read it is an error, since the next read would fail too.
func readHint(ctx context.Context, store Store) (int64, error) {
	data, err := store.Get(ctx, Hint)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", Hint, err)
	}
	return parseHint(data), nil
}

func parseHint(data []byte) int64 {
	r := &jsonReader{data: data}
	version := int64(-1)
	err := r.object(func(name string) (err error) {
		if name == "version" {
			version, err = r.integer()
			return err
		}
		return r.skip(0)
	})
	if err != nil || r.end() != nil {
		return -1
	}
	return version
}
