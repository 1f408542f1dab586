package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Watch adds a counter whose value read returns.
func (m *Metrics) Watch(name, help string, read func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}
