package config

// Flight is the Arrow Flight SQL listener.
type Flight struct {
	// Listen is its address; "" means that it is off.
	Listen string `koanf:"listen"`
	// MaxMessageBytes bounds one message of a client, a batch of an ingest for instance; 64 MiB if 0.
	MaxMessageBytes Bytes `koanf:"max_message_bytes"`
	// Endpoints is who serves the rows of large results: EndpointsExecutors, which is the default, or EndpointsScheduler.
	Endpoints string `koanf:"endpoints"`
	// EndpointBytes is from which size on a result is large; 16 MiB if 0.
	EndpointBytes Bytes `koanf:"endpoint_bytes"`
}

// The values of Flight.Endpoints.
const (
	EndpointsExecutors = "executors"
	EndpointsScheduler = "scheduler"
)

func (v *validator) flight(c *Config) {
	const minMessage = 1 << 20
	f := &c.Flight
	v.check(f.MaxMessageBytes == 0 || f.MaxMessageBytes >= minMessage && f.MaxMessageBytes <= 1<<30, "flight.max_message_bytes", f.MaxMessageBytes, "want 1MiB to 1GiB")
	v.check(f.Endpoints == "" || f.Endpoints == EndpointsExecutors || f.Endpoints == EndpointsScheduler, "flight.endpoints", f.Endpoints, "want executors or scheduler")
	// A smaller result is held in memory until its end.
	v.check(f.EndpointBytes >= 0 && f.EndpointBytes <= 256<<20, "flight.endpoint_bytes", f.EndpointBytes, "want 1 to 256MiB")
	v.listener(c, "flight.listen", f.Listen, "127.0.0.1:7430", false)
}
