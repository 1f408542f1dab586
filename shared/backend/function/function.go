// Package function registers a function with the Functions Framework. A function
// reads its settings from the environment and opens its backends at its first
// request, not when its process starts. A function with wrong settings therefore
// starts, answers 503, and logs everything that is wrong until it is corrected. The
// answer names none of it: anybody can read it. Cloud Run's probes are the first
// requests of an instance, so a revision with wrong settings serves no client.
package function

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"github.com/affinityengine/affinity/shared/telemetry"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Open returns the handler of a function with these settings. Requests outlive
// ctx's first one: the handler serves all that follow.
type Open[Settings any] func(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error)

// registration is a function that this process can serve.
type registration struct {
	name      string
	variables func() ([]env.FieldParams, error) // the settings' variables
}

var registrations []registration

// Register makes a function known to the framework under its entry point's name.
// Settings is a struct that package env fills from the environment; if it has a
// method Validate() error, that is called too.
func Register[Settings any](name string, open Open[Settings]) {
	registrations = append(registrations, registration{name, func() ([]env.FieldParams, error) {
		return env.GetFieldParams(new(Settings))
	}})
	functions.HTTP(name, newLazy(telemetry.Default(), open).ServeHTTP)
}

// lazy opens a function at its first request, and again at each request until
// that succeeds.
type lazy[Settings any] struct {
	log  *slog.Logger
	open Open[Settings]

	mu      sync.Mutex
	handler http.Handler
	logged  time.Time // when the last fault was logged
}

func newLazy[Settings any](log *slog.Logger, open Open[Settings]) *lazy[Settings] {
	return &lazy[Settings]{log: log, open: open}
}

// readyPath is what the probes of terraform/modules/function ask for, without a key: 200 once the function has opened
// its backends. It asks none of them, because no other instance would reach them either.
const readyPath = "/ready"

func (l *lazy[Settings]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := l.opened()
	if err != nil {
		l.report(r.Context(), err)
		h = unconfigured()
	} else if r.URL.Path == readyPath && r.Method == http.MethodGet {
		return
	}
	h.ServeHTTP(w, r)
}

// reportEvery is the shortest time between two lines about what keeps a function
// closed: strangers must not fill the log with requests.
const reportEvery = time.Minute

func (l *lazy[Settings]) report(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.logged) < reportEvery {
		return
	}
	l.logged = time.Now()
	l.log.LogAttrs(ctx, slog.LevelError, "the function is not configured", slog.Any("error", err))
}

func (l *lazy[Settings]) opened() (http.Handler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handler != nil {
		return l.handler, nil
	}
	var s Settings
	err := env.Parse(&s)
	if v, ok := any(s).(interface{ Validate() error }); ok {
		err = errors.Join(err, v.Validate())
	}
	if err != nil {
		return nil, err
	}
	// Not the request's context: the clients stay open after the request.
	l.handler, err = l.open(context.Background(), l.log, s)
	if err == nil {
		err = os.Unsetenv(platformService)
	}
	return l.handler, err
}

// platformService is the variable by which the framework recognizes Cloud Run. There
// it writes two empty lines after every request, to flush what a function printed
// without an end of line. The engine prints whole lines only. Libraries read the
// variable when a client is opened, so it is removed after that.
const platformService = "K_SERVICE"

// unconfigured answers every request of a function that does not open.
func unconfigured() http.Handler {
	rt := httpapi.NewRouter(slog.New(slog.DiscardHandler)) // the reason is logged
	rt.Handle("/", func(http.ResponseWriter, *http.Request) error {
		return httpapi.Errorf(http.StatusServiceUnavailable, "The function is not configured: its log says what is wrong")
	})
	return rt
}
