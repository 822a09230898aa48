// Package protocol holds what a host and a plugin must agree on before their first call: the handshake of go-plugin, the protocol version
// and the names under which a service and a lease travel. Authors in other languages find every constant they need here.
//
// Invariants: nothing here changes within protocol version 1; the cookie is a courtesy to people who start a plugin by hand, never a
// security measure.
package protocol

import plugin "github.com/hashicorp/go-plugin"

const (
	// Version is the protocol that this tree speaks: the package signet.sink.v1 with signet.host.v1 on the other side.
	Version = 1
	// CookieKey and CookieValue mark an environment as one that a host prepared.
	CookieKey   = "SIGNET_SINK_PLUGIN"
	CookieValue = "9c1f6b1e2f7a4d0b"
	// Service is the name under which go-plugin dispenses the sink.
	Service = "sink"
	// LeaseKey is the gRPC metadata key of the lease on every call to host.v1.
	LeaseKey = "signet-lease"
	// PathEnv holds the path that the operator configured. The host runs a verified copy, so $0 of a script does not tell.
	PathEnv = "SIGNET_PLUGIN_PATH"
	// FilePrefix opens the file name of every sink plugin: signet-sink-<name>.
	FilePrefix = "signet-sink-"
	// Core is go-plugin's own protocol version, the first field of the handshake line.
	Core = plugin.CoreProtocolVersion
)

// Handshake is what both sides pass to go-plugin.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: Version, MagicCookieKey: CookieKey, MagicCookieValue: CookieValue}
}
