package backend

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/telemetry/export"
)

// Opener opens what a function needs, one service after the other. Once one cannot be opened
// it opens no more, and Err closes those before it: the next request tries again.
type Opener struct {
	Base
	opened []io.Closer
	err    error
}

// Start opens the base of a function.
func Start(ctx context.Context, log *slog.Logger, s Settings) *Opener {
	o := &Opener{}
	o.Base, o.err = Open(ctx, log, s)
	if o.err == nil {
		o.opened = append(o.opened, o.Base)
	}
	return o
}

// Regional is the configuration of a service that must know where apps live.
type Regional[C any] interface {
	// In returns the configuration with where, which returns the region of an app.
	In(where func(ctx context.Context, app string) (string, error)) C
}

// Use opens a service with its configuration. It returns the zero value once something could
// not be opened: see Err.
func Use[C Regional[C], T io.Closer](ctx context.Context, o *Opener, cfg C,
	open func(context.Context, C, ...option.ClientOption) (T, error)) (service T) {
	if o.err != nil {
		return service
	}
	opened, err := open(ctx, cfg.In(o.RegionOf), export.ClientOptions()...)
	if err != nil {
		o.err = err
		return service
	}
	o.opened = append(o.opened, opened)
	return opened
}

// Get returns what get makes of from and its configuration. It returns the zero value once
// something could not be opened.
func Get[F, C, T any](ctx context.Context, o *Opener, from F, cfg C,
	get func(context.Context, F, C) (T, error)) (got T) {
	if o.err == nil {
		got, o.err = get(ctx, from, cfg)
	}
	return got
}

// Err returns the error of what could not be opened, after it has closed the rest, the last
// one first.
func (o *Opener) Err() error {
	if o.err == nil {
		return nil
	}
	for len(o.opened) > 0 {
		last := len(o.opened) - 1
		o.err, o.opened = errors.Join(o.err, o.opened[last].Close()), o.opened[:last]
	}
	return o.err
}
