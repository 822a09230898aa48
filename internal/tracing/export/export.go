package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// flushWithin bounds what the end of a process waits for its collector.
const flushWithin = 3 * time.Second

// Wanted tells whether the environment asks for traces. The SDK itself would send to localhost without being asked.
func Wanted(lookup func(string) (string, bool)) bool {
	get := func(name string) string { v, _ := lookup(name); return strings.TrimSpace(v) }
	if off, err := strconv.ParseBool(get("OTEL_SDK_DISABLED")); err == nil && off {
		return false
	}
	switch get("OTEL_TRACES_EXPORTER") {
	case "none":
		return false
	case "":
		return get("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	}
	return true
}

// Setup makes the process send its spans where the OTEL_* variables say, and returns what has to be called at its end. Without such variables it
// does nothing. Its error says which variable is wrong; the process goes on without traces then.
func Setup(ctx context.Context, service, version string) (stop func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	if !Wanted(os.LookupEnv) {
		return nothing, nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return nothing, err
	}
	// The environment comes last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithProcessPID(), resource.WithAttributes(
		attribute.String("service.name", service), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nothing, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	otel.SetTracerProvider(p)
	otel.SetErrorHandler(&complaints{})
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushWithin)
		defer cancel()
		return p.Shutdown(ctx)
	}, nil
}

// newExporter reads the variables that name the protocol; the exporters read all others themselves.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if e := os.Getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; otlp and none are supported", e)
	}
	protocol := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	}
	return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; grpc and http/protobuf are supported", protocol)
}

// complaints logs the errors of exports, at most one a minute: a collector that is gone must not fill the log.
type complaints struct{ last atomic.Int64 }

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	now := time.Now().Unix()
	if last := c.last.Load(); now-last < 60 || !c.last.CompareAndSwap(last, now) {
		return
	}
	slog.Warn("traces cannot be sent", "error", err)
}
