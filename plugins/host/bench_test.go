package host_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/host"
)

func benchConfig(b *testing.B) host.Config {
	cfg, _ := config(b, "")
	return cfg
}

func BenchmarkStart(b *testing.B) {
	cfg := benchConfig(b)
	for b.Loop() {
		p, err := host.Start(context.Background(), cfg)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, p.Stop(context.Background()))
		b.StartTimer()
	}
}

func BenchmarkCall(b *testing.B) {
	p, err := host.Start(context.Background(), benchConfig(b))
	require.NoError(b, err)
	defer p.Stop(context.Background())
	for b.Loop() {
		_, err := p.Client().PrepareWrite(context.Background(), &sinkv1.PrepareWriteRequest{})
		require.NoError(b, err)
	}
}
