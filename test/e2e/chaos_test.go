package e2e_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/chaos"
)

// S62: statements of every kind while the scheduler, executors and sinks are killed one after the other. SIGNET_CHAOS_JOBS asks for the long form
// (make chaos).
func TestChaos_WhatClientsAreToldIsWhatTablesHold(t *testing.T) {
	o := chaos.Options{
		Seed: seed(t), Jobs: 30, Executors: 3, Clients: 6, Every: time.Second, KillFor: 15 * time.Second, Bound: 2 * time.Minute,
	}
	if v := os.Getenv("SIGNET_CHAOS_JOBS"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err)
		o.Jobs, o.Executors, o.Clients, o.KillFor = n, 4, 8, time.Duration(n)*2*time.Second
	} else {
		t.Parallel()
	}
	chaos.Run(t, o)
}

// seed is SIGNET_SEED, or another number each time.
func seed(t *testing.T) uint64 {
	v := os.Getenv("SIGNET_SEED")
	if v == "" {
		return uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	}
	out, err := strconv.ParseUint(v, 10, 64)
	require.NoError(t, err)
	return out
}
