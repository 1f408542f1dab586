package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of one process.
type Metrics struct {
	registry *prometheus.Registry
	// Lag is the time in seconds from the receipt of an event until its user's
	// profile counts it. Each event is one observation.
	Lag prometheus.Histogram
	// Events counts events by outcome: applied; deleted, with their user;
	// reenriched with objects that arrived later; or superseded by the log.
	Events *prometheus.CounterVec
	// UnknownObjects counts events that were logged while the catalog did not hold
	// all their objects.
	UnknownObjects prometheus.Counter
	// Messages counts messages by outcome: applied, split, retried, dead.
	Messages *prometheus.CounterVec
	// AuditUsers counts users whose profiles an audit compared with the log, and
	// AuditDifferences the differences it found.
	AuditUsers, AuditDifferences prometheus.Counter
}

// NewMetrics returns metrics that are all zero.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		Lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "affinity_event_to_visible_seconds",
			Help: "Time from receipt of an event until every read of its user's profile counts it.",
			// From a millisecond to half an hour, each bucket twice the last.
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 21),
		}),
		Events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "affinity_events_total", Help: "Events by outcome.",
		}, []string{"outcome"}),
		UnknownObjects: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "affinity_events_with_unknown_objects_total", Help: "Events that were logged while the catalog did not know all of their objects.",
		}),
		Messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "affinity_messages_total", Help: "Messages by outcome: applied, split, retried, dropped, dead.",
		}, []string{"outcome"}),
		AuditUsers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "affinity_audit_users_total", Help: "Users whose profiles were compared with the log.",
		}),
		AuditDifferences: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "affinity_audit_differences_total", Help: "Differences between profiles and the log that audits have found.",
		}),
	}
	m.registry.MustRegister(m.Lag, m.Events, m.UnknownObjects, m.Messages, m.AuditUsers, m.AuditDifferences)
	return m
}

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
