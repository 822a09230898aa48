package credentials

import (
	"context"
	"sync"
	"time"

	"github.com/signet-io/signet/internal/objects"
)

// RoleSource is the scheduler's own credentials where they are a role's, under the rules of Renewing.
func RoleSource(s *STS, name string, life time.Duration) objects.Source {
	return Renewing(func(ctx context.Context) (objects.Credentials, time.Duration, error) {
		return s.Session(ctx, name, "", life)
	})
}

// Renewing keeps what fetch gave, credentials and how long they live from then on, until four fifths of their life are over, or a store refuses them. One renewal runs at a
// time; while a session still lives, whoever asks meanwhile gets that one, also when the renewal fails.
func Renewing(fetch func(context.Context) (objects.Credentials, time.Duration, error)) objects.Source {
	r := &renewing{fetch: fetch}
	return r.credentials
}

type renewing struct {
	fetch func(context.Context) (objects.Credentials, time.Duration, error)

	mu    sync.Mutex
	now   objects.Credentials
	made  time.Time
	renew time.Time
}

// justMade is how young a session is that is not renewed because a store refused one: the refusal was the last one's.
const justMade = 10 * time.Second

func (r *renewing) credentials(ctx context.Context) (objects.Credentials, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	refused := objects.Renew(ctx) && now.Sub(r.made) > justMade // the store says that they are over, whatever the clock says
	if !refused && now.Before(r.renew) {
		return r.now, nil
	}
	c, left, err := r.fetch(ctx)
	if err != nil {
		if !refused && now.Before(r.now.Expires.Add(-time.Minute)) {
			r.renew = now.Add(10 * time.Second)
			return r.now, nil
		}
		return objects.Credentials{}, err
	}
	r.now, r.made, r.renew = c, now, now.Add(left*4/5)
	return c, nil
}
