package write

import (
	"context"
	"errors"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func (r *rewrite) mergeOnRead(context.Context) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
	return nil, nil, errors.New("delete files are not written yet")
}
