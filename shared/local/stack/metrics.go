package stack

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"

	"github.com/affinityengine/affinity/shared/telemetry/export"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// startExporters starts what exports the engine's spans and metrics where the environment
// says. The engine also shows its metrics itself, see loopbackOnly.
func (s *Stack) startExporters(ctx context.Context, o Options) (metric.MeterProvider, error) {
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics for Prometheus: %w", err)
	}
	exporters, err := export.Start(ctx, o.Log, reader)
	if err != nil {
		return nil, err
	}
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := exporters.Shutdown(ctx); err != nil {
			o.Log.Warn("the engine ends and loses its last spans and metrics", slog.Any("error", err))
		}
		return nil
	})
	s.metrics = loopbackOnly(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return exporters.Meters, nil
}

// loopbackOnly lets only clients of this machine read: metrics count the events of all
// apps, and they ask for no key.
func loopbackOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			_ = httpapi.WriteMessage(w, http.StatusForbidden,
				"Only clients on the engine's own machine can read /metrics: run Prometheus there, or export the metrics "+
					"with OTEL_METRICS_EXPORTER")
			return
		}
		h.ServeHTTP(w, r)
	})
}
