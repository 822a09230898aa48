package config

import "strings"

// HTTP is the listener of the REST API. Certificates and tokens are those of the gRPC listener.
type HTTP struct {
	// Listen is its address; "" means that it is off.
	Listen string `koanf:"listen"`
}

// Missing names what the configuration lacks for the listener's address; "" if nothing. Addresses that others can reach need TLS and tokens.
func (h *HTTP) Missing(c *Config) string {
	host, _, err := splitAddr(h.Listen)
	if err != nil {
		return "the form host:port"
	}
	if IsLoopback(host) {
		return ""
	}
	var missing []string
	if !c.TLS.Enabled() {
		missing = append(missing, "tls.cert and tls.key")
	}
	if len(c.Auth.Tokens) == 0 {
		missing = append(missing, "auth.tokens")
	}
	return strings.Join(missing, ", ")
}

func (v *validator) http(c *Config) {
	if c.HTTP.Listen == "" {
		return
	}
	if _, _, err := splitAddr(c.HTTP.Listen); !v.check(err == nil, "http.listen", c.HTTP.Listen, "want host:port, like 127.0.0.1:7080") {
		return
	}
	missing := c.HTTP.Missing(c)
	v.check(missing == "", "http.listen", c.HTTP.Listen, "others can reach this address, which needs "+missing+"; or listen on 127.0.0.1")
}
