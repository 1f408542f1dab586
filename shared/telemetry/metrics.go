package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics are what one process counts. The provider that made them says who reads them,
// see package export. Names are those of OpenTelemetry: Prometheus shows affinity.events
// as affinity_events_total.
type Metrics struct {
	meter                                                  metric.Meter
	lag, reads                                             metric.Float64Histogram
	events, messages, unknown, auditUsers, auditDifference metric.Int64Counter
}

// NewMetrics returns metrics that are all zero.
func NewMetrics(p metric.MeterProvider) *Metrics {
	m := &Metrics{meter: p.Meter(scope)}
	var err error
	m.lag, err = m.meter.Float64Histogram("affinity.event_to_visible", metric.WithUnit("s"),
		metric.WithDescription("Time from receipt of an event until every read of its user's profile counts it."),
		metric.WithExplicitBucketBoundaries(lagBuckets()...))
	report(err)
	m.reads, err = m.meter.Float64Histogram("affinity.stored_read", metric.WithUnit("s"),
		metric.WithDescription("Time in which a stored profile was read and answered."),
		metric.WithExplicitBucketBoundaries(readBuckets...))
	report(err)
	m.events = m.counter("affinity.events", "{event}",
		"Events by outcome: applied, deleted, refused, superseded, reenriched.")
	m.messages = m.counter("affinity.messages", "{message}",
		"Messages by outcome: applied, split, retried, dropped, dead.")
	m.unknown = m.counter("affinity.events_with_unknown_objects", "{event}",
		"Events that were logged while the catalog did not know all of their objects.")
	m.auditUsers = m.counter("affinity.audit_users", "{user}", "Users whose profiles were compared with the log.")
	m.auditDifference = m.counter("affinity.audit_differences", "{difference}",
		"Differences between profiles and the log that audits have found.")
	for _, c := range []metric.Int64Counter{m.unknown, m.auditUsers, m.auditDifference} {
		c.Add(context.Background(), 0) // a reader sees them before they count
	}
	return m
}

// readBuckets have a boundary at each limit that an objective may have; see
// terraform/modules/monitoring/metrics.json.
var readBuckets = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// lagBuckets go from a millisecond to half an hour, each twice the last.
func lagBuckets() []float64 {
	bounds := make([]float64, 21)
	for i := range bounds {
		bounds[i] = 0.001 * float64(int64(1)<<i)
	}
	return bounds
}

func (m *Metrics) counter(name, unit, description string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	report(err)
	return c
}

// report reports an instrument that cannot be made. It records nothing then.
func report(err error) {
	if err != nil {
		otel.Handle(err)
	}
}

// CountEvents counts n events by outcome: applied; deleted, with their user; refused, by
// an opt-out; reenriched with objects that arrived later; or superseded by the log.
func (m *Metrics) CountEvents(ctx context.Context, outcome string, n int) {
	m.events.Add(ctx, int64(n), by(outcome))
}

// CountMessage counts a message by outcome: applied, split, retried, dropped or dead.
func (m *Metrics) CountMessage(ctx context.Context, outcome string) {
	m.messages.Add(ctx, 1, by(outcome))
}

func by(outcome string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("outcome", outcome))
}

// CountUnknownObjects counts n events that were logged while the catalog did not hold all
// their objects.
func (m *Metrics) CountUnknownObjects(ctx context.Context, n int) { m.unknown.Add(ctx, int64(n)) }

// RecordLag records, for each of n events, the time from its receipt until its user's
// profile counts it.
func (m *Metrics) RecordLag(ctx context.Context, lag time.Duration, n int) {
	for range n {
		m.lag.Record(ctx, lag.Seconds())
	}
}

// RecordStoredRead records the time in which a stored profile was read and answered.
func (m *Metrics) RecordStoredRead(ctx context.Context, took time.Duration) {
	m.reads.Record(ctx, took.Seconds())
}

// CountAudit counts users whose profiles an audit compared with the log, and the
// differences that it found.
func (m *Metrics) CountAudit(ctx context.Context, users, differences int) {
	m.auditUsers.Add(ctx, int64(users))
	m.auditDifference.Add(ctx, int64(differences))
}

// Watch adds a counter whose value read returns. Its name has no suffix _total.
func (m *Metrics) Watch(name, description string, read func() int64) {
	_, err := m.meter.Int64ObservableCounter(name, metric.WithDescription(description),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(read())
			return nil
		}))
	report(err)
}

// WatchSeconds adds a gauge of seconds whose value read returns. Prometheus adds _seconds to its name.
func (m *Metrics) WatchSeconds(name, description string, read func() float64) {
	_, err := m.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(read())
			return nil
		}))
	report(err)
}
