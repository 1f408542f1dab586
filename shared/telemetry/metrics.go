package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are what one process counts.
type Metrics struct {
	registry *prometheus.Registry
	// Lag is the time from an event's receipt to the moment its user's profile
	// counts it, in seconds, one observation an event.
	Lag prometheus.Histogram
	// Events counts what process made of events: applied or deleted, reenriched
	// with objects that came after them, or superseded by what the log holds.
	Events *prometheus.CounterVec
	// UnknownObjects counts events that went to the log while the catalog did not
	// know all of their objects.
	UnknownObjects prometheus.Counter
	// Messages counts messages by outcome: applied, resolved, retried, dead.
	Messages *prometheus.CounterVec
	// AuditUsers counts users whose profiles were compared with the log, and
	// AuditDifferences what was not as it should be.
	AuditUsers, AuditDifferences prometheus.Counter
}

// NewMetrics makes a set of metrics, all zero.
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
			Name: "affinity_events_total", Help: "Events by what became of them.",
		}, []string{"outcome"}),
		UnknownObjects: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "affinity_events_with_unknown_objects_total", Help: "Events that were logged while the catalog did not know all of their objects.",
		}),
		Messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "affinity_messages_total", Help: "Messages by outcome: applied, resolved, retried, dead.",
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

// Handler shows the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
