package function

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/telemetry"
)

// exitTime limits what a process does before it ends. Cloud Run ends an instance ten
// seconds after SIGTERM, and gives it CPU until then.
const exitTime = 8 * time.Second

// exits are what AtExit was given.
var exits struct {
	mu   sync.Mutex
	list []func(context.Context) error
}

var watchExit = sync.OnceFunc(func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		if err := runExits(); err != nil {
			telemetry.Default().Error("the process ends and loses what it kept in memory", slog.Any("error", err))
		}
		os.Exit(0)
	}()
})

// AtExit makes the process call f when the platform ends it: to write what it keeps
// in memory. All such functions run at once and have eight seconds. A process that is
// killed calls none of them. Only deployed functions call AtExit, when they open.
func AtExit(f func(context.Context) error) {
	exits.mu.Lock()
	exits.list = append(exits.list, f)
	exits.mu.Unlock()
	watchExit()
}

func runExits() error {
	ctx, cancel := deadline.Begin(context.Background(), exitTime)
	defer cancel()
	exits.mu.Lock()
	defer exits.mu.Unlock()
	done := make(chan error, len(exits.list))
	for _, f := range exits.list {
		go func() { done <- f(ctx) }()
	}
	var errs []error
	for range exits.list {
		select {
		case err := <-done:
			errs = append(errs, err)
		case <-ctx.Done():
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
	return errors.Join(errs...)
}
