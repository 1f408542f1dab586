package stack

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// room knows whether the disk has room for new events.
type room struct {
	check func() error // see disk.Disk.NearlyFull
	log   *slog.Logger
	full  atomic.Bool // what the log says
}

// lacking returns why events are refused, or nil.
func (m *room) lacking() error {
	err := m.check()
	if full := err != nil; m.full.CompareAndSwap(!full, full) {
		if full {
			m.log.Error("events are refused until the disk has room", "error", err)
		} else {
			m.log.Info("events are accepted again: the disk has room")
		}
	}
	return err
}

// fullRetry is when clients send refused events again, in seconds.
const fullRetry = "30"

// guard refuses new events while the disk is nearly full. Reads, settings, deletions, and the processing of
// what is accepted go on.
func (m *room) guard(h http.Handler) http.Handler {
	events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if why := m.lacking(); why != nil {
				w.Header().Set("Access-Control-Allow-Origin", "*") // so that a page can read it
				w.Header().Set("Retry-After", fullRetry)
				_ = httpapi.WriteMessage(w, http.StatusServiceUnavailable, "Events are refused: "+why.Error())
				return
			}
		}
		h.ServeHTTP(w, r)
	})
	return httpapi.Prefixes{{Prefix: "/1/events", Handler: events}, {Prefix: "/v1", Handler: events},
		{Prefix: "/beacon", Handler: events}, {Prefix: "", Handler: h}}
}
