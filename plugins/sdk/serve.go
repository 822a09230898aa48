package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/heapfloor"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/protocol"
)

// Serve is the whole main of a plugin. Started by a host it serves until the host stops it or is gone; `describe` prints what the sink is
// as JSON; started by hand it explains itself. It ends the process.
func Serve(sink Sink) {
	os.Exit(run(sink, os.Args[1:], os.Stdout, os.Stderr))
}

func run(sink Sink, args []string, stdout, errout io.Writer) int {
	switch {
	case len(args) == 1 && args[0] == "describe":
		if err := printDescription(sink, stdout); err != nil {
			fmt.Fprintln(errout, err)
			return 1
		}
		return 0
	case os.Getenv(protocol.CookieKey) != protocol.CookieValue || len(args) > 0:
		explain(sink, errout)
		return 2
	}
	if err := serve(sink); err != nil {
		log().Error(err.Error())
		return 1
	}
	return 0
}

// heapFloor is the garbage that a plugin leaves alone, in bytes.
const heapFloor = 16 << 20

func serve(sink Sink) error {
	out, err := shieldStdout()
	if err != nil {
		return err
	}
	defer out.restore()
	slog.SetDefault(slog.New(NewHandler(stderr, slog.LevelInfo)))
	if _, err := describe(sink); err != nil {
		return err
	}
	heapfloor.Set(heapFloor)
	life := newLife()
	go life.watchSignals()
	go life.watchParent()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  protocol.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.Service: &served{sink: sink}}},
		GRPCServer:       life.newServer,
		// go-plugin's own words; its JSON is what the host parses.
		Logger: hclog.New(&hclog.LoggerOptions{Name: "go-plugin", Level: hclog.Warn, Output: stderr, JSONFormat: true}),
	})
	return nil
}

// served registers the sink on go-plugin's server.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	sink Sink
}

func (p *served) GRPCServer(broker *plugin.GRPCBroker, s *grpc.Server) error {
	sinkv1.RegisterSinkServer(s, NewServer(p.sink, dialOnce(broker)))
	return nil
}

// GRPCClient is the host's half; a plugin has none.
func (p *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the plugin's side")
}

// dialOnce connects to the host's services at the first Describe and keeps the connection: a dial costs 20 ms.
func dialOnce(broker *plugin.GRPCBroker) Connector {
	var mu sync.Mutex
	var conn *grpc.ClientConn
	return func(_ context.Context, id uint32) (grpc.ClientConnInterface, error) {
		mu.Lock()
		defer mu.Unlock()
		if conn == nil {
			c, err := broker.DialWithOptions(id, rpc.DialOptions()...)
			if err != nil {
				return nil, err
			}
			conn = c
		}
		return conn, nil
	}
}
