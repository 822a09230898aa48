package sinktest

// Outward lists what sinks may ask the host for: values of secrets by name, and addresses (host:port) by name.
func (h *Host) Outward(secrets, dial map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.secrets, h.dial = secrets, dial
}
