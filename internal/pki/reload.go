package pki

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// Keeper holds a certificate and its key, and reads them anew when their files have changed: a certificate can be renewed without a restart.
type Keeper struct {
	cert, key string
	failed    func(error)

	mu   sync.Mutex
	pair *tls.Certificate
	seen [2]stamp
}

type stamp struct {
	modified time.Time
	size     int64
}

// Keep reads a pair of PEM files. failed, if given, is told of each change that cannot be read; the pair before it stays in use.
func Keep(cert, key string, failed func(error)) (*Keeper, error) {
	k := &Keeper{cert: cert, key: key, failed: failed}
	k.seen = k.stamps()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", cert, key, err)
	}
	k.pair = &pair
	return k, nil
}

func (k *Keeper) stamps() (out [2]stamp) {
	for i, path := range []string{k.cert, k.key} {
		if st, err := os.Stat(path); err == nil {
			out[i] = stamp{st.ModTime(), st.Size()}
		}
	}
	return out
}

// Current is the pair as its files have it now.
func (k *Keeper) Current() *tls.Certificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.stamps()
	if now == k.seen {
		return k.pair
	}
	k.seen = now // what is half written is looked at again when the rest is there
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	switch {
	case err == nil:
		k.pair = &pair
	case k.failed != nil:
		k.failed(fmt.Errorf("certificate %s with key %s: %w; the one before stays in use", k.cert, k.key, err))
	}
	return k.pair
}

// Serve has a server show the pair.
func (k *Keeper) Serve(c *tls.Config) {
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.Current(), nil }
}

// Show has a client show the pair to servers that ask for one.
func (k *Keeper) Show(c *tls.Config) {
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return k.Current(), nil }
}
