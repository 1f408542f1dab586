package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Watch shows a counter that something else keeps.
func (m *Metrics) Watch(name, help string, read func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}
