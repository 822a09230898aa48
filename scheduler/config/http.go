package config

// HTTP is the listener of the REST API. Certificates and tokens are those of the gRPC listener.
type HTTP struct {
	// Listen is its address; "" means that it is off.
	Listen string `koanf:"listen"`
}

func (v *validator) http(c *Config) {
	v.listener(c, "http.listen", c.HTTP.Listen, "127.0.0.1:7080", false)
}
