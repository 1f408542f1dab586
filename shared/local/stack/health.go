package stack

import (
	"bytes"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// healthEvery is how long the result of a check counts.
const healthEvery = time.Second

// health knows whether the database takes writes, and gives them back.
type health struct {
	records documents.Records
	sync    func() error // returns once what is written is safe
	now     func() time.Time

	mu   sync.Mutex // held during a check, so that all who wait have its result
	at   time.Time  // of the end of the last check
	err  error
	last int // distinguishes the writes
}

func newHealth(records documents.Records, sync func() error, now func() time.Time) *health {
	return &health{records: records, sync: sync, now: now}
}

// check writes a cell and reads it, unless that was done less than healthEvery ago.
func (h *health) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && h.now().Sub(h.at) < healthEvery {
		return h.err
	}
	h.last++
	h.err = h.writeAndRead([]byte(strconv.Itoa(h.last)))
	h.at = h.now()
	return h.err
}

func (h *health) writeAndRead(want []byte) error {
	err := h.records.Save(documents.Record{Name: "health", Value: want})
	if err == nil {
		err = h.sync()
	}
	if err != nil {
		return err
	}
	var got []byte
	err = h.records.Load(func(_ string, value []byte) error { got = bytes.Clone(value); return nil })
	if err == nil && !bytes.Equal(got, want) {
		err = errors.New("the database does not give back what was written")
	}
	return err
}

// healthy is the answer of GET /healthz.
type healthy struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Commit  string `json:"commit"` // empty if the build recorded none
}

func (h *health) serve(w http.ResponseWriter, _ *http.Request) error {
	if err := h.check(); err != nil {
		return httpapi.WriteMessage(w, http.StatusServiceUnavailable,
			"The engine cannot use its database: "+err.Error())
	}
	info, _ := debug.ReadBuildInfo()
	return httpapi.WriteJSON(w, http.StatusOK, healthy{"ok", api.Version, api.Release(info)})
}
