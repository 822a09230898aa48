package host

// Running counts the calls of a plugin, for tests that wait for one to begin.
func Running(p *Plugin) int {
	p.facade.mu.Lock()
	defer p.facade.mu.Unlock()
	return p.facade.running
}
