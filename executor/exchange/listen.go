package exchange

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/signet-io/signet/internal/exchangeclient"
)

// DefaultListen is where executors of one machine serve each other.
const DefaultListen = "127.0.0.1:0"

// Endpoint says where an executor serves its outputs.
type Endpoint struct {
	Listen    string      // host:port; default DefaultListen
	Advertise string      // host:port, or a host alone, by which others reach it; default: where it listens
	TLS       *tls.Config // with a certificate; nil: plain text, on loopback addresses only
}

// Open listens, and answers the address that others are to dial.
func (e Endpoint) Open() (net.Listener, string, error) {
	if e.Listen == "" {
		e.Listen = DefaultListen
	}
	host, _, err := net.SplitHostPort(e.Listen)
	if err != nil {
		return nil, "", fmt.Errorf("exchange address %q (--exchange-listen): want host:port", e.Listen)
	}
	if e.TLS == nil && !exchangeclient.IsLoopback(e.Listen) {
		return nil, "", fmt.Errorf("the exchange must not listen on %s in plain text: rows and tickets would travel in the open; give it a certificate (--exchange-tls-cert, --exchange-tls-key)", e.Listen)
	}
	if ip := net.ParseIP(host); e.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return nil, "", fmt.Errorf("the exchange listens on every address of this machine (%s): say which one others reach it by (--exchange-address host:port)", e.Listen)
	}
	l, err := net.Listen("tcp", e.Listen)
	if err != nil {
		return nil, "", fmt.Errorf("exchange (--exchange-listen): %w", err)
	}
	address, err := e.address(l)
	if err == nil {
		err = e.checkAddress(address)
	}
	if err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	return l, address, nil
}

// address completes what is advertised with what is listened on.
func (e Endpoint) address(l net.Listener) (string, error) {
	listenHost, _, err := net.SplitHostPort(e.Listen)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	if e.Advertise == "" {
		return net.JoinHostPort(listenHost, port), nil // the name that was given: a certificate may be for it
	}
	host, given, err := net.SplitHostPort(e.Advertise)
	if err != nil {
		return net.JoinHostPort(e.Advertise, port), nil //nolint:nilerr // a host alone
	}
	if given != "" && given != "0" {
		port = given
	}
	if host == "" {
		return "", fmt.Errorf("exchange address %q (--exchange-address): it has no host", e.Advertise)
	}
	return net.JoinHostPort(host, port), nil
}

// checkAddress refuses addresses that clients would speak to otherwise than this executor listens.
func (e Endpoint) checkAddress(address string) error {
	switch loopback := exchangeclient.IsLoopback(address); {
	case e.TLS == nil && !loopback:
		return fmt.Errorf("exchange address %s (--exchange-address): others use TLS with it, and this executor has no certificate (--exchange-tls-cert, --exchange-tls-key)", address)
	case e.TLS != nil && loopback:
		return fmt.Errorf("exchange address %s is of this machine only, where TLS is not used: leave out --exchange-tls-cert, or say how others reach it (--exchange-address)", address)
	}
	return nil
}
