package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreePort is a TCP port of this machine that a test may leave and take again: it is below those that the kernel gives to whom asks for
// any port (RFC 6335: from 49152; Linux: from 32768), so that nobody gets it meanwhile who has not chosen it.
func FreePort(t testing.TB) int {
	t.Helper()
	const low, high = 10_000, 32_000
	for range 1000 {
		port := low + rand.IntN(high-low) //nolint:gosec // no secret
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatalf("no port from %d to %d is free", low, high)
	return 0
}
