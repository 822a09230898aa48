package export

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace/noop"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestWanted_OnlyIfTheEnvironmentAsks(t *testing.T) {
	for env, want := range map[string]bool{
		"": false, "OTEL_SERVICE_NAME=x": false, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318": true, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318": true,
		"OTEL_TRACES_EXPORTER=otlp": true, "OTEL_TRACES_EXPORTER=none;OTEL_EXPORTER_OTLP_ENDPOINT=http://c": false,
		"OTEL_SDK_DISABLED=true;OTEL_TRACES_EXPORTER=otlp": false, "OTEL_SDK_DISABLED=;OTEL_TRACES_EXPORTER=otlp": true, "OTEL_EXPORTER_OTLP_ENDPOINT= ": false,
	} {
		require.Equal(t, want, Wanted(func(name string) (string, bool) {
			for kv := range strings.SplitSeq(env, ";") {
				if k, v, _ := strings.Cut(kv, "="); k == name {
					return v, true
				}
			}
			return "", false
		}), env)
	}
}

// collector takes OTLP over HTTP.
func collector(t *testing.T) (string, <-chan *coltrace.ExportTraceServiceRequest) {
	t.Helper()
	got := make(chan *coltrace.ExportTraceServiceRequest, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		m := &coltrace.ExportTraceServiceRequest{}
		if proto.Unmarshal(b, m) == nil {
			got <- m
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func TestSetup_SendsWhatIsLeftAtTheEnd(t *testing.T) {
	url, got := collector(t)
	t.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	stop, err := Setup(t.Context(), "signet", "v1")
	require.NoError(t, err)
	_, span := otel.Tracer("t").Start(t.Context(), "work")
	span.End()
	require.NoError(t, stop(t.Context()))
	m := <-got
	require.Equal(t, "work", m.ResourceSpans[0].ScopeSpans[0].Spans[0].Name)
	attrs := map[string]string{}
	for _, a := range m.ResourceSpans[0].Resource.Attributes {
		attrs[a.Key] = a.Value.GetStringValue()
	}
	require.Equal(t, "signet", attrs["service.name"])
	require.Equal(t, "v1", attrs["service.version"])
	require.Equal(t, "test", attrs["deployment.environment.name"])
}

func TestSetup_WithoutVariablesDoesNothing(t *testing.T) {
	before := otel.GetTracerProvider()
	stop, err := Setup(t.Context(), "signet", "v1")
	require.NoError(t, err)
	require.NoError(t, stop(t.Context()))
	require.Equal(t, before, otel.GetTracerProvider())
}

func TestSetup_NamesTheVariableThatIsWrong(t *testing.T) {
	for name, value := range map[string]string{"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "carrier-pigeon"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(name, value)
			stop, err := Setup(t.Context(), "signet", "v1")
			require.ErrorContains(t, err, value)
			require.NoError(t, stop(context.Background()))
		})
	}
}

func TestComplaints_AreFew(t *testing.T) {
	var b strings.Builder
	old := slog.Default()
	t.Cleanup(func() { slog.SetDefault(old) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	c := &complaints{}
	for range 5 {
		c.Handle(errors.New("connection refused"))
	}
	require.Equal(t, 1, strings.Count(b.String(), "connection refused"))
}
