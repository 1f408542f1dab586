package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// denialsEvery is the time that a line about denied requests covers.
	denialsEvery = time.Minute
	// maxDenied bounds the pairs of app and reason in memory. Strangers choose the
	// apps that they name.
	maxDenied = 200
	otherApps = "(others)"
)

// denials counts requests whose credentials permit nothing, and logs them once a
// minute for each app and reason: a line for each would let strangers fill the log.
// It keeps no key.
type denials struct {
	log   *slog.Logger
	after func(time.Duration, func())

	mu     sync.Mutex
	counts map[denial]int64
}

type denial struct {
	app    string // as the request names it
	status int
	reason string
}

func newDenials(log *slog.Logger) *denials {
	return &denials{log: log, after: func(d time.Duration, f func()) { time.AfterFunc(d, f) }, counts: map[denial]int64{}}
}

func (d *denials) count(r *http.Request, status int, reason string) {
	of := denial{namedApp(r), status, reason}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.counts) >= maxDenied && d.counts[of] == 0 {
		of.app = otherApps
	}
	if len(d.counts) == 0 {
		d.after(denialsEvery, d.write)
	}
	d.counts[of]++
}

func (d *denials) write() {
	d.mu.Lock()
	counts := d.counts
	d.counts = map[denial]int64{}
	d.mu.Unlock()
	for of, n := range counts {
		d.log.LogAttrs(context.Background(), slog.LevelWarn, "requests are denied", slog.String("app", of.app),
			slog.Int("status", of.status), slog.String("reason", of.reason), slog.Int64("requests", n))
	}
}

// namedApp is the app that a request names, if the name has the form of one.
func namedApp(r *http.Request) string {
	const name = "X-Algolia-Application-Id"
	app := r.Header.Get(name)
	if app == "" {
		for spelling, values := range r.URL.Query() {
			if strings.EqualFold(spelling, name) {
				app = values[0]
			}
		}
	}
	if app == "" || len(app) > 64 || strings.ContainsFunc(app, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	}) {
		return ""
	}
	return app
}
