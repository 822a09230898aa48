package host

import (
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/plugins/protocol"
)

var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// environment is all that a plugin inherits; go-plugin adds its handshake. The environment of a process can be read in /proc, and its
// children inherit it, so nothing in here may be a secret: a proxy's address is left out where it holds a password.
func environment(c *Config, tmp string) []string {
	allowed := append([]string{"PATH", fault.Env}, c.AllowEnv...)
	if c.Isolation.network() {
		allowed = append(allowed, proxies...)
	}
	var env []string
	for _, name := range allowed {
		v, ok := os.LookupEnv(name)
		if !ok || slices.Contains(proxies, name) && holdsPassword(v) {
			continue
		}
		env = append(env, name+"="+v)
	}
	return append(env, "TMPDIR="+tmp, protocol.PathEnv+"="+c.Path)
}

func holdsPassword(address string) bool {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	return err != nil || u.User != nil
}
